"""Keeps the values of non-deterministic columns (NOW, RAND, UUID, ...) for the life of a row.

    +I (k=1), RAND() = 0.3      kept
    -D (k=1)                    gets 0.3, not a new RAND()

Without state a -U or -D would have another value than its +I or +U, and retract a row that never existed. So
a retracted row gets the values of an equal stored row; among several equal rows it does not matter which. A
row that was never stored keeps its own values.

State: every current row with its values. Cost: the epoch's rows, and the equal stored rows of retractions.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import contiguous, hashes_of, weights_of, with_types
from tidemill.changelog.columns import Ints, single
from tidemill.changelog.grouping import group_rows
from tidemill.operators.api import EpochContext
from tidemill.operators.rows.keyed_values import KeyedValues, oldest_waiting
from tidemill.operators.rows.schemas import output_schema
from tidemill.state.layout import Layout
from tidemill.state.store import StateStore
from tidemill.state.table import StateTable

Columns = tuple[tuple[str, pa.DataType], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedOnceSpec:
    """``columns``: the row, which also partitions the input. ``computed``: the columns whose values are
    kept."""

    columns: Columns
    computed: Columns
    sequence: bool = False
    keeps_time: bool = False

    @property
    def layout(self) -> Layout:
        keys, values = (tuple(pa.field(*c) for c in part) for part in (self.columns, self.computed))
        return Layout(name="rows", keys=keys, values=values, additive=True)

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"computed-once {self.layout.schema}".encode()).hexdigest()[:16]

    def output_schema(self) -> pa.Schema:
        columns = (*self.columns, *self.computed)
        return output_schema(columns, kinds=True, sequence=self.sequence, timed=self.keeps_time)

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """The input rows; retractions have the values of the rows that they retract."""
        (table,) = inputs
        schema = self.output_schema()
        if len(table) == 0:
            return schema.empty_table()
        table = contiguous(with_types(table, dict((*self.columns, *self.computed))))
        rows = _Rows.of(self, table, state.table(self.layout))
        columns = {name: table.column(name) for name in schema.names}
        columns |= {name: rows.pool[name].take(pa.array(rows.sources)) for name, _ in self.computed}
        return pa.table([columns[f.name] for f in schema], schema=schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """The epoch's rows, and the stored rows that retractions may match. ``pool``: their computed columns,
    stored rows first. ``sources``: for each row of the epoch the index of its values in the pool."""

    pool: dict[str, pa.Array]
    sources: Ints

    @classmethod
    def of(cls, spec: ComputedOnceSpec, table: pa.Table, kept: StateTable) -> _Rows:
        """Finds the values of each row, and stores the changes."""
        keys = [table.column(name).chunk(0) for name, _ in spec.columns]
        groups = group_rows(hashes_of(table, keys), keys)
        owners = np.empty(len(table), np.int64)
        owners[groups.order] = groups.ids()
        distinct = KeyedValues(
            hashes=hashes_of(table, keys)[groups.heads], keys=[k.take(pa.array(groups.heads)) for k in keys]
        )
        weights = weights_of(table)
        goes = np.zeros(len(table), np.bool_) if weights is None else weights < 0
        stored_owners, stored_values = distinct.held(kept, np.unique(owners[goes]))
        pool = {
            name: single(pa.chunked_array([single(stored_values.column(name)), single(table.column(name))]))
            for name, _ in spec.computed
        }
        comes = np.flatnonzero(~goes)
        waiting = np.concatenate([np.arange(len(stored_owners)), len(stored_owners) + comes])
        waiting_by = np.concatenate([stored_owners, owners[comes]])
        matches = oldest_waiting(waiting_by, owners[goes])
        sources = len(stored_owners) + np.arange(len(table))
        matched_rows = np.flatnonzero(goes)[matches >= 0]
        sources[matched_rows] = waiting[matches[matches >= 0]]
        gone, stored = np.zeros(len(waiting), np.bool_), np.arange(len(waiting)) < len(stored_owners)
        gone[matches[matches >= 0]] = True
        change = np.flatnonzero(gone == stored)
        values = [column.take(pa.array(waiting[change])) for column in pool.values()]
        distinct.change(kept, waiting_by[change], values, np.where(stored[change], -1, 1))
        return cls(pool=pool, sources=sources)
