"""How many rows of its sources an epoch reads, told to the driver by the tasks that read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from tidemill.connectors.api import BatchMap
from tidemill.runtime.read_rows import READ
from tidemill.runtime.spark.kernel import Reports
from tidemill.runtime.spark.watermark_stage import task_number


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
        self.report.add({f"{READ} {self.source}{self.reading}/{task_number()}": self._told(rows)})

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
            READ: rows,
        }
