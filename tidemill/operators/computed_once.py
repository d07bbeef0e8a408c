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
from tidemill.changelog.columns import Hashes, Ints, Vec, single, to_arrow, vector
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.operators.api import EpochContext
from tidemill.state.layout import Layout
from tidemill.state.run import WEIGHT
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
        fields = [pa.field(*c) for c in (*self.columns, *self.computed)]
        fields.append(pa.field(KIND_COLUMN, pa.int8()))
        fields += [pa.field(SEQUENCE_COLUMN, pa.int64())] * self.sequence
        fields += [pa.field(WATERMARK_COLUMN, pa.int64())] * self.keeps_time
        return pa.schema(fields)

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
        distinct = _Distinct(
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
        taken = _first_come(waiting_by, owners[goes])
        sources = len(held_by) + np.arange(len(table))
        known = np.flatnonzero(goes)[taken >= 0]
        sources[known] = waiting[taken[taken >= 0]]
        gone, stored = np.zeros(len(waiting), np.bool_), np.arange(len(waiting)) < len(held_by)
        gone[taken[taken >= 0]] = True
        change = np.flatnonzero(gone == stored)
        values = [column.take(pa.array(waiting[change])) for column in pool.values()]
        distinct.change(kept, waiting_by[change], values, np.where(stored[change], -1, 1))
        return cls(pool=pool, sources=sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Distinct:
    """The distinct rows of an epoch, values apart, in the order of their hashes."""

    hashes: Hashes
    keys: list[pa.Array]

    def held(self, kept: StateTable, wanted: Ints) -> tuple[Ints, pa.Table]:
        """What state holds of the ``wanted`` ones: whose it is, and a row of values for each."""
        picks = pa.array(wanted)
        owners, rows = kept.gather(self.hashes[wanted], [k.take(picks) for k in self.keys])
        copies = np.repeat(np.arange(len(owners)), vector(rows.column(WEIGHT)).values)
        return wanted[owners[copies]], rows.take(pa.array(copies))

    def change(self, kept: StateTable, owners: Ints, values: list[pa.Array], weights: Ints) -> None:
        """Adds ``weights`` of rows; equal ones are one entry."""
        picks = pa.array(owners)
        identity = [*(k.take(picks) for k in self.keys), *values]
        groups = group_rows(hash_columns(identity, len(owners)), identity)
        if groups.count == 0:
            return
        net = np.add.reduceat(weights[groups.order], groups.starts)
        heads = groups.heads[net != 0]
        identity = [column.take(pa.array(heads)) for column in identity]
        columns = {f.name: c for f, c in zip(kept.layout.identity, identity, strict=True)}
        columns[WEIGHT] = to_arrow(Vec(net[net != 0]), pa.int64())
        kept.put(kept.layout.codes(self.hashes[owners[heads]], identity[len(self.keys) :]), columns)


def _first_come(waiting: Ints, asking: Ints) -> Ints:
    """Per row that asks (by whom it is of) the place of the row of the same that has waited longest, each
    given once; -1 where there is none left."""
    order = np.argsort(waiting, kind="stable")
    queue = waiting[order]
    first = np.searchsorted(queue, asking, "left")
    asked = np.argsort(asking, kind="stable")
    turn = np.empty(len(asking), np.int64)
    turn[asked] = np.arange(len(asking)) - np.searchsorted(asking[asked], asking[asked], "left")
    place = first + turn
    served = place < np.searchsorted(queue, asking, "right")
    return np.where(served, order[np.where(served, place, 0)] if len(order) else -1, -1)
