"""Projections and filters over Arrow batches, in the worker that has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from tidemill.connectors.api import BatchMap
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import TidemillError
from tidemill.functions.arrays.api import Inexact
from tidemill.functions.arrays.expressions import Projection, Rows
from tidemill.operators.api import AGAIN
from tidemill.runtime.spark.exchange import MarkedRows
from tidemill.runtime.spark.kernel import Reports
from tidemill.runtime.spark.watermark_stage import task_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """Gives ``then`` the columns of ``projection`` as ``names``. ``positions``: by name those of its input
    columns; ``marked``: which of the rows; ``time``: of the epoch, in ms.

    A batch that the kernels cannot treat exactly ends the task, and the report asks the driver to run the
    epoch again without this step.
    """

    operator: str
    projection: Projection
    positions: tuple[tuple[str, int], ...]
    names: tuple[str, ...]
    epoch: int
    time: int
    then: BatchMap
    report: Reports = field(compare=False)
    marked: MarkedRows | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.then(self._made(batches))

    def _made(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            chosen = batch if self.marked is None else self.marked.of(batch)
            try:
                made = self._projected(chosen)
            except Inexact:
                self._ask()
                return
            except TidemillError as e:  # of a user's function
                raise WorkerError(e) from None
            yield made

    def _projected(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = {name: batch.column(place) for name, place in self.positions}
        rows = Rows(batch.num_rows, columns, time=self.time)
        rows = self.projection.filtered(rows)
        if not self.names:
            # Without a column a batch would not know how many rows it has.
            return pa.RecordBatch.from_arrays([pa.nulls(rows.count)], names=["$"])
        return pa.RecordBatch.from_arrays(self.projection.arrays(rows), names=list(self.names))

    def _ask(self) -> None:
        self.report.add(
            {
                f"{self.operator}/{task_number()}": {
                    "operator": self.operator,
                    "partition": task_number(),
                    "epoch": self.epoch,
                    "rows_in": 0,
                    AGAIN: True,
                }
            }
        )
