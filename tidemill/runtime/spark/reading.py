"""How many rows of its sources an epoch reads, told to the driver by the tasks that read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tidemill.connectors.api import BatchMap
from tidemill.runtime.spark.kernel import Reports
from tidemill.runtime.spark.watermark_stage import task_number

_READ = "read"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedReading:
    """``then`` over the batches of ``source``, which are counted as they go by; None hands them on.
    ``reading``: in which branch of which union; a source that two of them read is not twice as large."""

    source: str
    reading: str
    epoch: int
    report: Reports
    then: BatchMap | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = 0

        def counted() -> Iterator[pa.RecordBatch]:
            nonlocal rows
            for batch in batches:
                rows += batch.num_rows
                yield batch

        yield from counted() if self.then is None else self.then(counted())
        self.report.add({f"{_READ} {self.source}{self.reading}/{task_number()}": self._told(rows)})

    def _told(self, rows: int) -> dict[str, object]:
        """A task's report, as an operator's that keeps nothing."""
        return {
            "operator": self.source,
            "partition": task_number(),
            "reading": self.reading,
            "epoch": self.epoch,
            "manifest": None,
            "state_rows": 0,
            "marks": {},
            _READ: rows,
        }


def rows_read(report: Mapping[str, Mapping[str, Any]]) -> int | None:
    """Rows of all sources; None where none of them is read by tasks of ours."""
    counts = read_of(list(report.values()))
    return sum(counts.values()) if counts else None


def read_of(tasks: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """By source, of those that tasks of ours read."""
    counts: dict[str, dict[str, int]] = {}
    for task in tasks:
        if _READ in task:
            readings = counts.setdefault(task["operator"], {})
            readings[task["reading"]] = readings.get(task["reading"], 0) + task[_READ]
    return {source: max(readings.values()) for source, readings in counts.items()}


def is_reading(task: Mapping[str, Any]) -> bool:
    """Whether a task's report is one of reading, which touches no state."""
    return _READ in task
