"""How the stages of a job ran in Spark, from Spark's status store, and which tasks were slow.

Bytes and rows are those that Spark itself has read and shuffled. They do not include what decoders in Python
workers read. ``copies`` are attempts that started because another attempt was slow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

Json = dict[str, Any]
QUANTILES = (0.5, 1.0)
SLOWER = 3.0
"""By how much a task differs from its stage's median to be told of."""
SHORT_SECONDS = 1.0
"""Tasks that take less are not worth a word."""
_TIME = "%Y-%m-%dT%H:%M:%S.%fGMT"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRun:
    """One attempt at a stage. ``status``: COMPLETE, FAILED or ACTIVE. Task figures are the median
    (``median_...``) and the maximum. ``excluded``: executors that got no more of its tasks after
    failures."""

    stage: int
    attempt: int
    name: str
    status: str
    tasks: int
    failed: int
    killed: int
    copies: int
    seconds: float
    median_seconds: float
    longest_seconds: float
    rows_read: int
    bytes_read: int
    shuffle_read: int
    shuffle_written: int
    spilled: int
    median_bytes: int
    most_bytes: int
    excluded: tuple[str, ...] = ()

    @property
    def skew(self) -> float:
        """The largest task's bytes divided by the median task's bytes; 1 if unknown."""
        return self.most_bytes / self.median_bytes if self.median_bytes else 1.0

    @property
    def is_uneven(self) -> bool:
        """Whether one of its tasks may have been slow."""
        slow = self.longest_seconds >= max(SHORT_SECONDS, SLOWER * self.median_seconds)
        return slow or self.copies > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRows:
    """An operator of Spark's in a batch job, ``depth`` below the result. ``rows`` is None if it does not
    count rows."""

    name: str
    depth: int
    rows: int | None


def rows_from_sources(operators: Sequence[OperatorRows]) -> int:
    """The rows of the scans. If Python workers decode a source, Spark only scans a list of its parts, so
    the rows are those of the decoding operator."""
    return sum(_scanned(operators, place) for place in range(len(operators)) if _is_leaf(operators, place))


def with_rows_passed_on(operators: Sequence[OperatorRows]) -> tuple[OperatorRows, ...]:
    """With the rows of operators that count none and give as many rows as they read: a projection, a sort."""
    found: list[OperatorRows] = []
    for operator in reversed(operators):
        if operator.rows is None and operator.name in _PASSING and found:
            operator = replace(operator, rows=found[-1].rows)
        found.append(operator)
    return tuple(reversed(found))


def _is_leaf(operators: Sequence[OperatorRows], place: int) -> bool:
    return place + 1 == len(operators) or operators[place + 1].depth <= operators[place].depth


def _scanned(operators: Sequence[OperatorRows], place: int) -> int:
    above = [operator.name for operator in operators[max(place - 2, 0) : place]]
    return operators[place - 2 if above == [_DECODING, _PARTS] else place].rows or 0


_PASSING = ("Project", "Sort", "Exchange", "AQEShuffleRead", "Window")
"""Each has one operator below it, which comes next from the result down."""
_DECODING, _PARTS = "MapInArrow", "SerializeFromObject"
SEEN_BYTES = 64 << 10
"""References to blocks and the numbers of splits are fewer; so little takes nobody a second to read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowTask:
    """``copy``: this is the second attempt. ``more``: it read so much more than the median task that its
    time is normal."""

    stage: int
    task: int
    host: str
    status: str
    copy: bool
    seconds: float
    bytes: int
    median_seconds: float
    median_bytes: int
    more: bool

    @property
    def is_measured(self) -> bool:
        """Whether Spark saw what the task read. Spark does not see files that Python workers read, or
        blocks in files."""
        return max(self.bytes, self.median_bytes) >= SEEN_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowNode:
    """A host that got no tasks from ``begun`` to ``ended`` (seconds since 1970), because a copy of its
    ``task`` of ``stage`` finished first elsewhere."""

    host: str
    begun: float
    ended: float
    stage: int
    task: int


def stage_run(found: Json, excluded: tuple[str, ...] = ()) -> StageRun:
    """The run of Spark's ``StageData`` with the quantiles ``QUANTILES``."""
    spread = found.get("taskMetricsDistributions") or {}
    times = spread.get("executorRunTime", (0, 0))
    inputs = spread.get("inputMetrics", {}).get("bytesRead", (0, 0))
    shuffled = spread.get("shuffleReadMetrics", {}).get("readBytes", (0, 0))
    return StageRun(
        stage=found["stageId"],
        attempt=found["attemptId"],
        name=found["name"].partition("\n")[0],
        status=found["status"],
        tasks=found["numTasks"],
        failed=found["numFailedTasks"],
        killed=found["numKilledTasks"],
        copies=(found.get("speculationSummary") or {}).get("numTasks", 0),
        seconds=_seconds(found.get("submissionTime"), found.get("completionTime")),
        median_seconds=times[0] / 1000,
        longest_seconds=times[1] / 1000,
        rows_read=found["inputRecords"] + found["shuffleReadRecords"],
        bytes_read=found["inputBytes"],
        shuffle_read=found["shuffleReadBytes"],
        shuffle_written=found["shuffleWriteBytes"],
        spilled=found["diskBytesSpilled"],
        median_bytes=int(inputs[0] + shuffled[0]),
        most_bytes=int(max(inputs[1], shuffled[1])),
        excluded=excluded,
    )


def slow_tasks(stage: StageRun, tasks: Iterable[Json]) -> tuple[SlowTask, ...]:
    """The tasks that took far longer than the median, and second attempts, from Spark's ``TaskData``. Time
    per byte decides: a task that reads more may take longer."""
    found = []
    for task in tasks:
        metrics = task.get("taskMetrics") or {}
        seconds = max(metrics.get("executorRunTime", 0), task.get("duration") or 0) / 1000
        long = seconds >= max(SHORT_SECONDS, SLOWER * stage.median_seconds)
        if long or task["speculative"]:
            read = _bytes(metrics)
            found.append(
                SlowTask(
                    stage=stage.stage,
                    task=task["index"],
                    host=task["host"],
                    status=task["status"],
                    copy=task["speculative"],
                    seconds=seconds,
                    bytes=read,
                    median_seconds=stage.median_seconds,
                    median_bytes=stage.median_bytes,
                    more=read * stage.median_seconds * SLOWER > seconds * stage.median_bytes > 0,
                )
            )
    return tuple(found)


def _bytes(metrics: Json) -> int:
    shuffled = metrics.get("shuffleReadMetrics", {})
    read = metrics.get("inputMetrics", {}).get("bytesRead", 0)
    return int(read + shuffled.get("remoteBytesRead", 0) + shuffled.get("localBytesRead", 0))


def _seconds(begun: str | None, ended: str | None) -> float:
    if begun is None or ended is None:
        return 0.0
    return (datetime.strptime(ended, _TIME) - datetime.strptime(begun, _TIME)).total_seconds()
