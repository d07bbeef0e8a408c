"""The figures of an epoch, which listeners get at its end; and how far a running one is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from tidemill.runtime.events import SoFar
from tidemill.runtime.read_rows import is_reading, read_of, rows_read

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import Accumulator, SparkContext

    from tidemill.runtime.checkpoint.epochs import EpochPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeProgress:
    """The figures of one node of a job's plan in an epoch, over all partitions. Sinks and sources have
    ``rows_in`` only.

    ``state_rows`` and ``state_bytes`` are of the partitions that the epoch touched. ``largest_key``:
    the most rows of one key. ``partitions``: the rows of each partition of an operator.
    """

    rows_in: int = 0
    rows_out: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    late: int = 0
    largest_key: int = 0
    partitions: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, tasks: list[dict[str, Any]]) -> Self:
        return cls(
            **{name: sum(task.get(name, 0) for task in tasks) for name in _SUMS},
            largest_key=max((task.get("largest_key", 0) for task in tasks), default=0),
            partitions=_partitions(tasks),
        )

    @property
    def keyed(self) -> bool:
        """Rows came to it by key."""
        return self.largest_key > 0


def _partitions(tasks: list[dict[str, Any]]) -> dict[str, int]:
    """Those that got nothing are among them."""
    found = {str(partition): 0 for task in tasks[:1] for partition in range(task.get("of", 0))}
    return found | {str(task["partition"]): task["rows_in"] for task in tasks if "of" in task}


_SUMS = ("rows_in", "rows_out", "state_rows", "state_bytes", "late")


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochProgress:
    """The figures of an epoch.

    - ``rows_in``: rows read from sources. If Spark reads a source, the rows that the first stateful
      operators got, after filters and local phases.
    - ``late``: rows that were too late for all their windows.
    - ``seconds``: from the epoch's plan to its end.
    - ``state_rows`` and ``state_bytes``: of the operators that the epoch touched.
    """

    epoch: int
    rows_in: int
    rows_out: int
    seconds: float
    state_rows: int
    state_bytes: int
    job_id: str = ""
    late: int = 0
    requests: int = 0
    """How often databases were asked for rows by key."""
    watermark: int | None = None
    """How far event time has come, in ms, over all sources that are waited for; None without event time,
    before its first row and after its last."""
    time: int = 0
    """The epoch's processing time, in ms."""
    nodes: Mapping[str, NodeProgress] = field(default_factory=dict)
    """By the ids of the job's plan: operators that were called, sinks, sources that tasks of ours read."""

    @property
    def behind(self) -> float | None:
        """The seconds by which the watermark is behind the clock."""
        return None if self.watermark is None else (self.time - self.watermark) / 1000

    @property
    def rate(self) -> float:
        """Rows per second."""
        return self.rows_in / self.seconds if self.seconds > 0 else 0.0

    @classmethod
    def of(
        cls,
        plan: EpochPlan,
        report: dict[str, dict[str, Any]],
        tokens: dict[str, list[str]],
        rows: pa.Table | None,
        *,
        seconds: float,
        job_id: str,
        watermark: int | None = None,
    ) -> Self:
        written = sum(rows_of(t) for ts in tokens.values() for t in ts)
        out = rows.num_rows if rows is not None else written
        tasks = list(report.values())
        return cls(
            epoch=plan.epoch,
            rows_in=_rows_in(report) or out,
            rows_out=out,
            seconds=seconds,
            state_rows=sum(t.get("state_rows", 0) for t in tasks),
            state_bytes=sum(t.get("state_bytes", 0) for t in tasks),
            job_id=job_id,
            late=sum(t.get("late", 0) for t in tasks),
            requests=sum(t.get("requests", 0) for t in tasks),
            watermark=watermark,
            time=plan.time,
            nodes=_nodes(tasks, tokens),
        )


def _nodes(tasks: list[dict[str, Any]], tokens: Mapping[str, list[str]]) -> dict[str, NodeProgress]:
    called: dict[str, list[dict[str, Any]]] = {}
    for task in tasks:
        if not is_reading(task):
            called.setdefault(task["operator"], []).append(task)
    read = {source: NodeProgress(rows_in=rows) for source, rows in read_of(tasks).items()}
    written = {sink: NodeProgress(rows_in=sum(map(rows_of, told))) for sink, told in tokens.items()}
    return read | {operator: NodeProgress.of(found) for operator, found in called.items()} | written


def so_far(context: SparkContext, report: Accumulator[dict[str, dict[str, Any]]]) -> SoFar:
    """A look at Spark's running stages. It is cheap, and safe from any thread."""
    tracker = context.statusTracker()
    stages = [info for s in tracker.getActiveStageIds() if (info := tracker.getStageInfo(s)) is not None]
    return SoFar(
        sum(s.numCompletedTasks for s in stages), sum(s.numTasks for s in stages), _rows_in(report.value)
    )


def _rows_in(report: dict[str, dict[str, Any]]) -> int:
    """The rows from sources. Rows between operators do not count again."""
    read = rows_read(report)
    if read is not None:
        return read
    return sum(task["rows_in"] for task in list(report.values()) if task.get("first", True))


def rows_of(token: str) -> int:
    """The rows of a sink's token: its ``rows``, or the last entry of each of its ``files``. A list has the
    rows themselves."""
    parsed = json.loads(token)
    if not isinstance(parsed, dict):
        return len(parsed)
    return int(parsed.get("rows", 0)) + sum(int(file[-1]) for file in parsed.get("files", ()))
