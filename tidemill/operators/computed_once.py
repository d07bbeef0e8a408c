"""What is computed anew at every look (NOW, RAND, UUID, ...) keeps its value for the life of a row.

Such a column beside a changelog would give a -U or -D another value than its +I or +U had, which then takes
back a row that never was. So the values that rows came with are kept: a row that goes takes those that an
equal row came with; which of several equal rows that is cannot matter to anyone. A row that was never there
goes with the values it has now.

State: every row that is there with its values. Cost: the epoch's rows, and for those that go the equal rows
in state.
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
from tidemill.operators.rows.keyed_values import KeyedValues, first_come
from tidemill.operators.rows.schemas import output_schema
from tidemill.state.layout import Layout
from tidemill.state.store import StateStore
from tidemill.state.table import StateTable

Columns = tuple[tuple[str, pa.DataType], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedOnceSpec:
    """``columns``: what a row is, by which it is also sent; ``computed``: its values that stay."""

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
        """The rows as they came, those that go with the values that they had come with."""
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
    """The epoch's rows and those equal to ones that go: ``pool`` has their computed columns, what waits in
    state before what came. ``sources``: per row of the epoch where in the pool its values are."""

    pool: dict[str, pa.Array]
    sources: Ints

    @classmethod
    def of(cls, spec: ComputedOnceSpec, table: pa.Table, kept: StateTable) -> _Rows:
        """Finds the values of each row, and keeps what has changed."""
        keys = [table.column(name).chunk(0) for name, _ in spec.columns]
        groups = group_rows(hashes_of(table, keys), keys)
        owners = np.empty(len(table), np.int64)
        owners[groups.order] = groups.ids()
        distinct = KeyedValues(
            hashes=hashes_of(table, keys)[groups.heads], keys=[k.take(pa.array(groups.heads)) for k in keys]
        )
        weights = weights_of(table)
        goes = np.zeros(len(table), np.bool_) if weights is None else weights < 0
        held_by, held = distinct.held(kept, np.unique(owners[goes]))
        pool = {
            name: single(pa.chunked_array([single(held.column(name)), single(table.column(name))]))
            for name, _ in spec.computed
        }
        comes = np.flatnonzero(~goes)
        waiting = np.concatenate([np.arange(len(held_by)), len(held_by) + comes])
        waiting_by = np.concatenate([held_by, owners[comes]])
        taken = first_come(waiting_by, owners[goes])
        sources = len(held_by) + np.arange(len(table))
        known = np.flatnonzero(goes)[taken >= 0]
        sources[known] = waiting[taken[taken >= 0]]
        gone, stored = np.zeros(len(waiting), np.bool_), np.arange(len(waiting)) < len(held_by)
        gone[taken[taken >= 0]] = True
        change = np.flatnonzero(gone == stored)
        values = [column.take(pa.array(waiting[change])) for column in pool.values()]
        distinct.change(kept, waiting_by[change], values, np.where(stored[change], -1, 1))
        return cls(pool=pool, sources=sources)
