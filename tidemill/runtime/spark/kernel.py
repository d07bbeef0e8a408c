"""Runs operator steps in a Spark Python worker: Arrow blocks in, state, Arrow batches out.

Operators whose rows need no exchange between them are one task: the upper ones call the lower ones.

The task is a plain picklable value; it reports its manifest and counts through an accumulator, so
the driver learns only of what finished tasks wrote (a crashed attempt's files are never named).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark import Accumulator, AccumulatorParam

from tidemill.connectors.api import BatchMap
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import InternalError, TidemillError
from tidemill.operators.api import EpochContext, LocalPhase, OperatorSpec
from tidemill.runtime.spark.exchange import ExchangeWriter, PortRows, Received, received
from tidemill.runtime.spark.session import ARROW_ROWS_PER_BATCH
from tidemill.state.store import StateStore

Report = dict[str, dict[str, Any]]


class ReportParam(AccumulatorParam[Report]):
    """Merges task reports; a task that ran twice reports the same under the same key."""

    def zero(self, value: Report) -> Report:
        return {}

    def addInPlace(self, value1: Report, value2: Report) -> Report:
        value1.update(value2)
        return value1


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchanged:
    """An input that comes as exchange blocks, the ``number``-th of those of the task."""

    number: int
    schema: pa.Schema | None

    @property
    def count(self) -> int:
        return 1

    def rows(self, blocks: tuple[Received, ...], partition: int) -> Received:
        return blocks[self.number]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fed:
    """An input that another operator makes in the same partition: it runs in the same task."""

    task: KernelTask
    shape: PortRows
    schema: pa.Schema | None

    @property
    def count(self) -> int:
        return self.task.count

    def rows(self, blocks: tuple[Received, ...], partition: int) -> Received:
        output = self.task.run(blocks, partition)
        return Received([] if output is None else [self.shape.of(output)], [])


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTask:
    """``base``: manifest per partition of the epoch before; ``inputs``: one per port; ``then``: what
    takes the output as it is in the same worker, the next operator's exchange or a sink."""

    operator: str
    spec: OperatorSpec
    state_root: str
    base: dict[int, str]
    epoch: int
    time: int
    inputs: tuple[Exchanged | Fed, ...]
    then: BatchMap | None
    report: Accumulator[Report] = field(compare=False)

    @property
    def count(self) -> int:
        """How many inputs come as blocks."""
        return sum(i.count for i in self.inputs)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        partition, blocks = received(batches, self.count)
        try:
            output = self.run(blocks, partition)
        except TidemillError as e:
            raise WorkerError(e) from None
        if output is None:
            return
        emitted = output.combine_chunks().to_batches(max_chunksize=ARROW_ROWS_PER_BATCH)
        yield from emitted if self.then is None else self.then(emitted)

    def run(self, blocks: tuple[Received, ...], partition: int) -> pa.Table | None:
        """The output of the step; None where no rows came in."""
        inputs = tuple(i.rows(blocks, partition) for i in self.inputs)
        rows = sum(i.rows for i in inputs)
        return self._step(inputs, rows, partition) if rows else None

    def _step(self, inputs: tuple[Received, ...], rows: int, partition: int) -> pa.Table:
        base = self.base.get(partition)
        store = StateStore.open(self.state_root, self.operator, partition, base, self.epoch, now=self.time)
        step = EpochContext(epoch=self.epoch, time=self.time, partition=partition, first=base is None)
        output = self._stepped(inputs, store, step)
        manifest = store.flush()
        self.report.add(
            {
                f"{self.operator}/{partition}": {
                    "operator": self.operator,
                    "partition": partition,
                    "manifest": manifest,
                    "rows_in": rows,
                    "rows_out": output.num_rows,
                    "state_rows": store.manifest.rows,
                    "state_bytes": store.manifest.size,
                }
            }
        )
        return output

    def _stepped(self, inputs: tuple[Received, ...], store: StateStore, step: EpochContext) -> pa.Table:
        """Where some of the rows came combined, the operator says how they go with the others."""
        if not any(i.partial for i in inputs):
            tables = tuple(_whole(i.raw, port.schema) for i, port in zip(inputs, self.inputs, strict=True))
            return self.spec.step(tables, store, step)
        if not isinstance(self.spec, LocalPhase):
            raise InternalError(f"operator {self.operator} got partial rows but has no local phase")
        (only,) = inputs
        spec, table = self.spec.merged(only.raw, only.partial)
        return spec.step((table,), store, step)


def _whole(tables: list[pa.Table], schema: pa.Schema | None) -> pa.Table:
    if tables:
        return pa.concat_tables(tables)
    if schema is None:
        raise InternalError("an operator of several inputs needs their schemas")
    return schema.empty_table()


@dataclass(frozen=True, slots=True, kw_only=True)
class InPlace:
    """A task whose input's rows lie in their partition already: written as blocks, and read, in one go."""

    writer: ExchangeWriter
    task: KernelTask

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.task(self.writer(batches))
