"""How the stages of a job ran in Spark, as its status store tells it, and which of their tasks were slow.

Bytes and rows are those that Spark itself has read and shuffled: what decoders in Python workers read is not
among them. ``copies`` are attempts that were started because another was slow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
    """One attempt at a stage. ``status``: COMPLETE, FAILED or ACTIVE. Of the stage's tasks ``median_...`` and
    the most. ``excluded``: executors that were given no more of its tasks, because some had failed there."""

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
        """How many times the median task's bytes the largest read; 1 where that is not known."""
        return self.most_bytes / self.median_bytes if self.median_bytes else 1.0

    @property
    def is_uneven(self) -> bool:
        """Whether one of its tasks may have been slow."""
        slow = self.longest_seconds >= max(SHORT_SECONDS, SLOWER * self.median_seconds)
        return slow or self.copies > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRows:
    """An operator of Spark's in a batch job, ``depth`` below the result. ``rows``: None where it counts
    none."""

    name: str
    depth: int
    rows: int | None


def rows_from_sources(operators: Sequence[OperatorRows]) -> int:
    """What the scans gave. Of a source that Python workers decode Spark scans a list of its parts: there the
    operator that decodes them gives the rows."""
    return sum(_scanned(operators, place) for place in range(len(operators)) if _is_leaf(operators, place))


def _is_leaf(operators: Sequence[OperatorRows], place: int) -> bool:
    return place + 1 == len(operators) or operators[place + 1].depth <= operators[place].depth


def _scanned(operators: Sequence[OperatorRows], place: int) -> int:
    above = [operator.name for operator in operators[max(place - 2, 0) : place]]
    return operators[place - 2 if above == [_DECODING, _PARTS] else place].rows or 0


_DECODING, _PARTS = "MapInArrow", "SerializeFromObject"
SEEN_BYTES = 64 << 10
"""References to blocks and the numbers of splits are fewer; so little takes nobody a second to read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowTask:
    """``copy``: this is the second attempt. ``more``: it had so much more to read than the median task that
    it was not slow for that."""

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
        """Whether Spark saw what was read. Files that Python workers read, and blocks that lie in
        files, it does not see."""
        return max(self.bytes, self.median_bytes) >= SEEN_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowNode:
    """A host that got no tasks from ``begun`` to ``ended``, in seconds since 1970, because a copy of ``task``
    of ``stage``, which ran there, came first elsewhere."""

    host: str
    begun: float
    ended: float
    stage: int
    task: int


def stage_run(found: Json, excluded: tuple[str, ...] = ()) -> StageRun:
    """Of Spark's ``StageData`` with the quantiles ``QUANTILES``."""
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
    """Those of Spark's ``TaskData`` that took far longer than the median, and second attempts. A task is slow
    by its time for a byte: one with more to read takes longer, and is none."""
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
