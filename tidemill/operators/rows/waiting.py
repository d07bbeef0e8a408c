"""Rows that wait for their time: a multiset by due time and key, from which due rows are taken in order.

TemporalSort, OVER by time and the window buffer keep rows here that the watermark has not reached. Equal rows
of one time are one entry with a count, and changes add up. Cost: the new rows and the due rows (see
``state.timeline``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import contiguous
from tidemill.changelog.columns import Hashes, Ints, Vec, single, to_arrow, vector
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.operators.rows.entries import evolving
from tidemill.operators.rows.stored_before import Late
from tidemill.state.layout import Layout
from tidemill.state.run import DUE, WEIGHT
from tidemill.state.store import StateStore


@dataclass(frozen=True, kw_only=True)
class WaitingRows:
    """``columns``: all that is kept of a row, (name, type); ``keys``: those that rows are sent by, in the
    order in which they are hashed. ``late``: columns that rows stored before lack, and since when rows have
    them; None: they go by place."""

    name: str
    columns: tuple[tuple[str, pa.DataType], ...]
    keys: tuple[str, ...] = ()
    late: Late | None = None

    @cached_property
    def layout(self) -> Layout:
        types = dict(self.columns)
        layout = Layout(
            name=self.name,
            keys=tuple(pa.field(name, types[name]) for name in self.keys),
            values=tuple(pa.field(name, kind) for name, kind in self.columns if name not in self.keys),
            additive=True,
            by_time=True,
        )
        return evolving(layout, self.late)

    @cached_property
    def schema(self) -> pa.Schema:
        """Of rows that are taken: the columns, when they were due, and how many there are."""
        return pa.schema([*self.columns, (DUE, pa.int64()), (WEIGHT, pa.int64())])

    def put(self, state: StateStore, rows: pa.Table) -> None:
        """Stores ``rows``, which have ``schema``. Rows whose weights add up to 0 are not stored."""
        rows = summed(rows)
        if len(rows) == 0:
            return
        columns = {name: single(rows.column(name)) for name in self.schema.names if name != DUE}
        codes = self.layout.codes(self.hashes(rows), [columns[f.name] for f in self.layout.values])
        state.timeline(self.layout).put(vector(rows.column(DUE)).values, codes, columns)

    def take(self, state: StateStore, upto: int) -> pa.Table:
        """Removes and returns the rows that are due at or before ``upto``, by time."""
        return state.timeline(self.layout).take_due(upto).select(self.schema.names).cast(self.schema)

    def hashes(self, rows: pa.Table) -> Hashes:
        """Of the keys, as the exchange hashes them."""
        return hash_columns([rows.column(name) for name in self.keys], len(rows))

    def weighted(self, rows: pa.Table, dues: Ints, weights: Ints | None = None) -> pa.Table:
        """``rows`` as rows of ``schema``."""
        each = np.ones(len(rows), np.int64) if weights is None else weights
        columns = [rows.column(name) for name, _ in self.columns]
        columns += [to_arrow(Vec(dues), pa.int64()), to_arrow(Vec(each), pa.int64())]
        return pa.table(columns, names=self.schema.names).cast(self.schema)


def summed(rows: pa.Table) -> pa.Table:
    """Equal rows as one with their weights added up, in the order of contents, without those of weight 0."""
    if len(rows) == 0:
        return rows
    rows = contiguous(rows)
    identity = [rows.column(name).chunk(0) for name in rows.column_names if name != WEIGHT]
    groups = group_rows(hash_columns(identity, len(rows)), identity)
    weights = np.add.reduceat(vector(rows.column(WEIGHT)).values[groups.order], groups.starts)
    there = np.flatnonzero(weights)
    column_index = rows.schema.get_field_index(WEIGHT)
    chosen = rows.take(pa.array(groups.heads[there]))
    return chosen.set_column(column_index, WEIGHT, to_arrow(Vec(weights[there]), pa.int64()))


def each_copy(rows: pa.Table) -> pa.Table:
    """Each row repeated by its weight; rows with negative weight are left out."""
    weights = vector(rows.column(WEIGHT)).values
    if (weights == 1).all():
        return contiguous(rows.drop_columns([WEIGHT]))
    picks = np.repeat(np.arange(len(rows)), np.maximum(weights, 0))
    return contiguous(rows.drop_columns([WEIGHT]).take(pa.array(picks)))
