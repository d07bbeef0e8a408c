"""``tidemill history``: jobs that have ended, from the folder of this user's own, or of a gateway."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from tidemill.client.gateway_client import GatewayClient
from tidemill.client.progress import size_text, slow_node_line, slow_task_line
from tidemill.config import history_options
from tidemill.config.option import Configuration
from tidemill.deep_calls import with_room
from tidemill.errors import ValidationError
from tidemill.physical.explain.text import draw
from tidemill.runtime.stage_runs import SlowNode, SlowTask
from tidemill.session.history.keeper import own_records

Json = dict[str, Any]
_STAGE = "{:>6} {:>6} {:>7} {:>7} {:>7} {:>9} {:>9} {:>10} {:>10} {:>10} {:>6}  {}"
_TITLES = ("stage", "tasks", "failed", "killed", "copies", "time", "longest", "read", "shuffled", "spilled")


def command(parsed: argparse.Namespace) -> int:
    """One line a job, the youngest first; of one job all that is known."""
    found = _found(parsed)
    if parsed.job_id and not found:
        raise ValidationError(f"There is no history of a job '{parsed.job_id}'.")
    for job in found:
        if parsed.json:
            lines: Iterator[str] = iter([json.dumps(job, ensure_ascii=False, default=float)])
        else:
            lines = job_lines(job) if parsed.job_id else iter([job_line(job)])
        sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0


def _found(parsed: argparse.Namespace) -> list[Json]:
    if parsed.gateway:
        return GatewayClient(parsed.gateway).history(parsed.job_id, last=parsed.last)
    records = own_records(Configuration({history_options.DIRECTORY.key: parsed.directory}))
    if not parsed.job_id:
        return records.last(parsed.last)
    found = records.find(parsed.job_id)
    return [] if found is None else [found]


def job_line(job: Json) -> str:
    """``id  FINISHED  batch  2024-05-01 10:00:06+00:00  1.2 s  name``."""
    return (
        f"{job['id']}  {job['status']:<9}  {job['mode']:<9}  {_time(job['begun'])}  "
        f"{_seconds(job):>8.1f} s  {job['name']}"
    )


def job_lines(job: Json) -> Iterator[str]:
    """Lines that describe a job: its plan, its stages, and remarkable tasks and nodes."""
    yield job_line(job)
    if job["error"]:
        yield f"error: {job['error']}"
    if job["epochs_done"]:
        yield f"{job['epochs_done']:,} epochs, {job['rows_in']:,} rows in, {job['rows_out']:,} rows out"
    elif job["mode"] == "batch":
        yield f"{job['rows_in']:,} rows in, {job['rows_out']:,} rows out"
    yield from with_room(lambda: list(_plan(job["plan"])))
    for operator in job.get("operators", ()):
        rows = "" if operator["rows"] is None else f": {operator['rows']:,} rows"
        yield f"{'  ' * operator['depth']}{operator['name']}{rows}"
    if job["stages"]:
        yield _STAGE.format(*_TITLES, "skew", "name")
    yield from map(_stage, job["stages"])
    for stage in job["stages"]:
        for executor in stage["excluded"]:
            yield f"stage {stage['stage']}: executor {executor} was excluded, as its tasks failed there"
    yield from job.get("notes", ())
    for read in job["partitions"]:
        yield f"read {read['read']:,} of {read['of']:,} partitions of {read['table']}"
    for task in job["slow"]:
        yield slow_task_line(SlowTask(**task))
    for node in job.get("slow_nodes", ()):
        yield slow_node_line(SlowNode(**node))


def _plan(nodes: list[Json]) -> Iterator[str]:
    by_id = {node["id"]: node for node in nodes}
    read = {key for node in nodes for key in node["inputs"]}
    printed: set[str] = set()

    def line(node: Json) -> str:
        return (
            node["name"] if node["id"] in printed or not node["detail"] else "{name}({detail})".format(**node)
        )

    def inputs(node: Json) -> list[Json]:
        """A node's inputs; an input of several nodes is drawn only below the first of them."""
        if node["id"] in printed:
            return []
        printed.add(node["id"])
        return [by_id[key] for key in node["inputs"] if key in by_id]

    for root in (node for node in nodes if node["id"] not in read):
        yield from draw(root, line, inputs).split("\n")


def _stage(stage: Json) -> str:
    number = f"{stage['stage']}.{stage['attempt']}" if stage["attempt"] else str(stage["stage"])
    return _STAGE.format(
        number,
        stage["tasks"],
        stage["failed"],
        stage["killed"],
        stage["copies"],
        f"{stage['seconds']:.2f} s",
        f"{stage['longest_seconds']:.2f} s",
        size_text(stage["bytes_read"] + stage["shuffle_read"]),
        size_text(stage["shuffle_written"]),
        size_text(stage["spilled"]),
        f"{stage['skew']:.1f}",
        stage["name"] if stage["status"] == "COMPLETE" else f"{stage['name']} ({stage['status']})",
    )


def _seconds(job: Json) -> float:
    return float(job["ended"] - job["begun"]) / 1000


def _time(millis: int) -> str:
    return datetime.fromtimestamp(millis / 1000, UTC).isoformat(" ", "seconds")
