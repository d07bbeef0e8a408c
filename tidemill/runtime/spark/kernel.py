"""Runs one operator step in a Spark Python worker: Arrow batches in, state, Arrow batches out.

The task is a plain picklable value; it reports its manifest and counts through an accumulator, so
the driver learns only of what finished tasks wrote (a crashed attempt's files are never named).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import Accumulator, AccumulatorParam, TaskContext

from tidemill.operators.api import HASH_COLUMN, EpochContext, OperatorSpec
from tidemill.runtime.spark.session import ARROW_ROWS_PER_BATCH
from tidemill.state.store import StateStore

PORT_COLUMN = "$port"

Report = dict[str, dict[str, Any]]


class ReportParam(AccumulatorParam[Report]):
    """Merges task reports; a task that ran twice reports the same under the same key."""

    def zero(self, value: Report) -> Report:
        return {}

    def addInPlace(self, value1: Report, value2: Report) -> Report:
        value1.update(value2)
        return value1


@dataclass(frozen=True, slots=True, kw_only=True)
class PortLayout:
    """Where one port's columns stand in the exchanged rows, and the names the kernel knows them by."""

    carried: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTask:
    """``base``: manifest per partition of the epoch before. One port needs no ``$port`` column."""

    operator: str
    spec: OperatorSpec
    state_root: str
    base: dict[int, str]
    epoch: int
    time: int
    ports: tuple[PortLayout, ...]
    report: Accumulator[Report] = field(compare=False)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        partition = context.partitionId() if context else 0
        received = list(batches)
        rows = sum(b.num_rows for b in received)
        if not rows:
            return
        table = pa.Table.from_batches(received)
        del received
        base = self.base.get(partition)
        store = StateStore.open(self.state_root, self.operator, partition, base, self.epoch)
        step = EpochContext(epoch=self.epoch, time=self.time, partition=partition, first=base is None)
        output = self.spec.step(self._inputs(table), store, step)
        manifest = store.flush()
        self.report.add(
            {
                f"{self.operator}/{partition}": {
                    "operator": self.operator,
                    "partition": partition,
                    "manifest": manifest,
                    "rows_in": rows,
                    "rows_out": output.num_rows,
                }
            }
        )
        yield from output.combine_chunks().to_batches(max_chunksize=ARROW_ROWS_PER_BATCH)

    def _inputs(self, table: pa.Table) -> tuple[pa.Table, ...]:
        if len(self.ports) == 1:
            return (_renamed(table, self.ports[0]),)
        port = table.column(PORT_COLUMN)
        return tuple(_renamed(table.filter(pc.equal(port, n)), layout) for n, layout in enumerate(self.ports))


def _renamed(table: pa.Table, layout: PortLayout) -> pa.Table:
    """The port's columns under the kernel's names; Spark's signed hash bits read as uint64."""
    port = table.select(list(layout.carried)).rename_columns(list(layout.columns))
    place = port.schema.get_field_index(HASH_COLUMN)
    unsigned = pa.chunked_array([c.view(pa.uint64()) for c in port.column(place).chunks], pa.uint64())
    return port.set_column(place, HASH_COLUMN, unsigned)
