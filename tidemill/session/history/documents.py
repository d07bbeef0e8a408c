"""Converts the view of a job to JSON and back, for a gateway's store, and writes the record of an ended job.

The documents have bounded size, like a view: the plan, the totals of each node, the last epochs and failures.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from tidemill.config.secrets import masked
from tidemill.runtime.events import JobEnded, JobFailed, SavepointWritten
from tidemill.runtime.job.plan_nodes import PlanNode, PlanRole
from tidemill.runtime.progress import EpochProgress
from tidemill.runtime.stage_runs import rows_from_sources
from tidemill.session.history.watch import Failure, JobLook, NodeTotals

Json = dict[str, Any]
VERSION = 1
_TOLD = ("statement", "options", "directory")
"""Keys that documents of earlier versions lack, besides ``savepoints``."""
_COUNTS = ("name", "epochs_done", "rows_in", "rows_out", "late", "resumed")


def document(look: JobLook) -> Json:
    return {
        **{name: getattr(look, name) for name in _COUNTS},
        **{name: getattr(look, name) for name in _TOLD},
        "savepoints": [asdict(savepoint) for savepoint in look.savepoints],
        "plan": [asdict(node) | {"role": node.role.value} for node in look.plan],
        "nodes": {key: asdict(totals) for key, totals in look.nodes.items()},
        "epochs": [_epoch(epoch) for epoch in look.epochs],
        "failures": [[f.at, asdict(f.event)] for f in look.failures],
    }


def record(ended: JobEnded, seen: JobLook | None) -> Json:
    """The record of a run. ``seen``: the live view; a batch job has none."""
    look = seen or JobLook(rows_in=rows_from_sources(ended.operators), rows_out=ended.rows_out)
    full_view = replace(
        look, name=ended.name, plan=ended.plan, statement=ended.statement, options=ended.options
    )
    return {
        "version": VERSION,
        "id": ended.job_id,
        "mode": ended.mode,
        "status": ended.status,
        "error": masked(ended.error),
        "begun": int(ended.begun * 1000),
        "ended": int(ended.ended * 1000),
        **document(full_view),
        "stages": [asdict(stage) | {"skew": stage.skew} for stage in ended.stages],
        "operators": [asdict(operator) for operator in ended.operators],
        "slow": [asdict(task) for task in ended.slow],
        "slow_nodes": [asdict(node) for node in ended.slow_nodes],
        "notes": list(ended.notes),
        "partitions": [{"table": p.table, "read": p.read, "of": p.of} for p in ended.partitions],
    }


def restored(stored: Json) -> JobLook:
    return JobLook(
        **{name: stored[name] for name in _COUNTS},
        **{name: stored[name] for name in _TOLD if name in stored},
        savepoints=tuple(SavepointWritten(**savepoint) for savepoint in stored.get("savepoints", ())),
        plan=tuple(map(_node, stored["plan"])),
        nodes={key: NodeTotals(**totals) for key, totals in stored["nodes"].items()},
        epochs=tuple(EpochProgress(**epoch) for epoch in stored["epochs"]),
        failures=tuple(Failure(at, JobFailed(**event)) for at, event in stored["failures"]),
    )


def _epoch(epoch: EpochProgress) -> Json:
    """An epoch without its nodes, whose counts are in the totals."""
    return {name: value for name, value in asdict(epoch).items() if name != "nodes"}


def _node(kept: Json) -> PlanNode:
    return PlanNode(**{**kept, "role": PlanRole(kept["role"]), "inputs": tuple(kept["inputs"])})
