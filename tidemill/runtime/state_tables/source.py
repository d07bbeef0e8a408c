"""Reads a table of a savepoint: one task for each partition of the operator, in Spark's Python workers.

A column of another table of the operator is found by the rows' keys and values: the bounds of a session
beside its results. Cost: a task holds that table of its partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from tidemill.changelog.columns import single
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.connectors.api import BatchMap, Offset
from tidemill.connectors.api.source import WholeSource
from tidemill.connectors.arrow_maps import map_batches
from tidemill.connectors.task_frames import assigned, task_frame
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import StateError
from tidemill.runtime.state_tables.naming import PARTITION, StateColumn
from tidemill.state.layout import Layout
from tidemill.state.run import DELETED, HASH, TIME
from tidemill.state.slices import Slice
from tidemill.state.storage import StateFiles
from tidemill.state.whole_table import live_rows
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_schema, arrow_type, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BATCH_ROWS = 100_000
_STORED = (HASH, DELETED)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateReader:
    """``now``, ``layout``: as of ``live_rows``; ``columns``: what to give, in order."""

    files: StateFiles
    table: str
    now: int
    columns: tuple[StateColumn, ...]
    layout: Layout | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A task is a partition's number and its slices."""
        try:
            for partition, slices in assigned(batches):
                yield from self.partition_rows(partition, [Slice(*part) for part in slices])
        except StateError as e:
            raise WorkerError(e) from e

    def partition_rows(self, partition: int, slices: list[Slice]) -> Iterator[pa.RecordBatch]:
        others = {
            table: self._whole(table, slices) for table in sorted({c.table for c in self.columns} - {""})
        }
        for piece in live_rows(self.files, slices, self.table, self.now, self.layout):
            for table, rows in others.items():
                piece = _beside(piece, rows, [c.stored for c in self.columns if c.table == table])
            names = [c.name for c in self.columns]
            made = pa.table([self._column(piece, c, partition) for c in self.columns], names=names)
            yield from made.combine_chunks().to_batches(max_chunksize=_BATCH_ROWS)

    def _whole(self, table: str, slices: list[Slice]) -> pa.Table:
        pieces = list(live_rows(self.files, slices, table, self.now))
        return pa.concat_tables(pieces) if pieces else pa.table({})

    def _column(self, piece: pa.Table, column: StateColumn, partition: int) -> pa.ChunkedArray | pa.Array:
        kind = arrow_type(column.type)
        if column.stored == PARTITION:
            return pa.array([partition], kind).take(pa.nulls(len(piece), pa.int64()).fill_null(0))
        if column.stored not in piece.column_names:
            return pa.nulls(len(piece), kind)
        found = piece.column(column.stored)
        return pc.multiply(found, 1000).cast(kind) if column.stored == TIME else found.cast(kind)


def _beside(piece: pa.Table, other: pa.Table, wanted: list[str]) -> pa.Table:
    """``piece`` with the columns ``wanted`` of the rows of ``other`` that have the same keys and values."""
    same = [f for f in other.schema if f.name in piece.column_names and f.name not in _STORED]
    if not same:
        return piece
    names = [f.name for f in same]
    both = pa.concat_tables([other.select(names), piece.select(names).cast(pa.schema(same))])
    columns = [single(both.column(name)) for name in names]
    groups = group_rows(hash_columns(columns, len(both)), columns)
    found = np.empty(len(both), np.int64)
    found[groups.order] = groups.heads[groups.ids()]
    found = found[len(other) :]
    places = pa.array(found, mask=found >= len(other))
    for name in wanted:
        piece = piece.append_column(name, single(other.column(name)).take(places))
    return piece


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRows:
    """Rows that the driver has made: a task is some of them."""

    fields: tuple[Field, ...]
    wanted: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = arrow_schema(self.fields)
        for rows in assigned(batches):
            columns = zip(*rows, strict=True) if rows else ([] for _ in schema)
            made = [pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)]
            yield from pa.table(made, schema=schema).select(list(self.wanted)).to_batches()


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSource(WholeSource):
    """``tasks``: for ``run``, which gives ``fields``."""

    tasks: tuple[Any, ...]
    run: BatchMap
    fields: tuple[Field, ...]
    sequence: bool

    def read(self, spark: SparkSession, start: Offset | None, end: Offset) -> DataFrame:
        tasks = () if start else self.tasks
        frame = map_batches(task_frame(spark, tasks), self.run, spark_schema(self.fields))
        return frame.withColumn(SEQUENCE_COLUMN, F.monotonically_increasing_id()) if self.sequence else frame
