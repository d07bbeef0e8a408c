"""Aggregations in batch that Spark SQL cannot say, by the streaming kernel over the whole input.

Each group's rows are brought together by one exchange; a task holds its rows in memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.connectors.arrow_maps import map_batches
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import TidemillError
from tidemill.operators.api import EpochContext
from tidemill.operators.group_aggregate.operator import GroupAggregateSpec
from tidemill.physical.batch.nodes import Aggregate
from tidemill.runtime.compile.aggregate import call_spec
from tidemill.state.store import StateStore
from tidemill.types.physical import arrow_schema, arrow_type, quote, spark_schema

_NO_ROW = "$no-row"
_FIRST_EPOCH = 1


def kernel_frame(node: Aggregate, below: DataFrame) -> DataFrame:
    """``below`` (with ``$seq``) grouped; the columns are the node's fields."""
    inputs = node.input.fields
    keys = [F.col(quote(inputs[k].name)) for k in node.keys]
    together = below.repartition(*keys) if keys else below.coalesce(1)
    task = _AggregateTask(
        spec=_spec(node),
        input=arrow_schema(inputs).append(pa.field(SEQUENCE_COLUMN, pa.int64())),
        output=arrow_schema(node.fields),
    )
    plain = together.toDF(*(f"c{i}" for i in range(len(together.columns))))
    return map_batches(plain, task, spark_schema(node.fields))


def _spec(node: Aggregate) -> GroupAggregateSpec:
    inputs = node.input.fields
    return GroupAggregateSpec(
        keys=tuple((inputs[k].name, arrow_type(inputs[k].type)) for k in node.keys),
        calls=tuple(call_spec(call, inputs, f"$call{i}") for i, call in enumerate(node.calls)),
        emit_update_before=False,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _AggregateTask:
    """All rows of a Spark partition in, one row per group out."""

    spec: GroupAggregateSpec
    input: pa.Schema
    output: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pieces = [b for b in batches if b.num_rows]
        if not pieces and self.spec.keys:
            return
        try:
            found = self._aggregated(pieces) if pieces else self._of_nothing()
        except TidemillError as e:
            raise WorkerError(e) from None
        columns = [found.column(i) for i in range(len(self.output))]
        yield from pa.table(columns, names=self.output.names).combine_chunks().to_batches()

    def _aggregated(self, pieces: list[pa.RecordBatch]) -> pa.Table:
        return _step(self.spec, pa.Table.from_batches(pieces).rename_columns(self.input.names))

    def _of_nothing(self) -> pa.Table:
        """A global aggregation of no rows: of one row that no call counts."""
        calls = tuple(replace(call, filter=_NO_ROW) for call in self.spec.calls)
        row = pa.table([pa.nulls(1, f.type) for f in self.input], schema=self.input)
        row = row.set_column(len(row.columns) - 1, SEQUENCE_COLUMN, pa.array([0], pa.int64()))
        return _step(replace(self.spec, calls=calls), row.append_column(_NO_ROW, pa.array([False])))


def _step(spec: GroupAggregateSpec, table: pa.Table) -> pa.Table:
    """One epoch with a state that nobody keeps."""
    with tempfile.TemporaryDirectory(prefix="tidemill-") as folder:
        store = StateStore.open(folder, "aggregate", 0, None, _FIRST_EPOCH)
        context = EpochContext(epoch=_FIRST_EPOCH, time=0, partition=0, first=True)
        return spec.step((table,), store, context)
