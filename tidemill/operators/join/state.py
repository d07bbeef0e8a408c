"""The stored rows of a join's side, in two forms.

- ``Multiset``: weighted rows by join key. A row that is retracted before it came has weight -1 until it
  comes.
- ``Records`` (if a side has a TTL): per distinct row its count and, if unmatched rows are emitted, its number
  of matches. A write renews both. Retracting an expired row emits nothing, and its results stay.

Cost per epoch: the rows of the requested keys, and one write per changed row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask, Vec, single, to_arrow, vector
from tidemill.changelog.grouping import group_rows, sort_order
from tidemill.changelog.hashing import pair_code
from tidemill.operators.join.pairs import Matches
from tidemill.operators.join.sides import (
    CODE_BITS,
    Change,
    Columns,
    Held,
    KeyNumbers,
    Placed,
    Side,
    value_codes,
)
from tidemill.state.layout import Layout
from tidemill.state.run import HASH, WEIGHT
from tidemill.state.table import StateTable

COUNT = "$count"
MATCHES = "$matches"
_LOW = np.uint64((1 << CODE_BITS) - 1)


def multiset_layout(
    name: str, keys: tuple[pa.Field, ...], values: tuple[pa.Field, ...], *, growing: bool
) -> Layout:
    return Layout(name=name, keys=keys, values=values, additive=True, growing=growing and bool(values))


def records_layout(
    name: str, keys: tuple[pa.Field, ...], values: tuple[pa.Field, ...], *, matches: bool, ttl: int
) -> Layout:
    columns = [pa.field(COUNT, pa.int64())]
    if matches:
        columns.append(pa.field(MATCHES, pa.int64()))
    return Layout(name=name, keys=keys, values=values, columns=tuple(columns), ttl=ttl, counts=COUNT)


@dataclass(frozen=True, slots=True)
class Multiset:
    layout: Layout
    table: StateTable

    def held(self, keys: KeyNumbers, wanted_keys: Mask, change: Change, placed: Placed) -> Held:
        """The stored rows of the ``wanted_keys``."""
        numbers, hashes, values = keys.some(wanted_keys)
        query_numbers, rows = self.table.pieces(hashes, values)
        columns = {f.name: single(rows.column(f.name)) for f in self.layout.identity}
        codes = vector(rows.column(HASH)).values & _LOW if self.layout.values else None
        weights = vector(rows.column(WEIGHT)).values
        return Held(
            numbers[query_numbers],
            columns,
            weights,
            np.zeros(len(query_numbers), np.uint64) if codes is None else codes,
        )

    def keep(self, side: Side, keys: KeyNumbers, matches: Matches | None) -> None:
        """Adds what changed."""
        moved = np.flatnonzero(side.after != side.before)
        if len(moved):
            codes, rows, columns = _written(self.layout, side, keys, moved)
            columns[WEIGHT] = _ints((side.after - side.before)[rows])
            self.table.put(codes, columns)


@dataclass(frozen=True, slots=True)
class Records:
    layout: Layout
    table: StateTable

    def held(self, keys: KeyNumbers, wanted_keys: Mask, change: Change, placed: Placed) -> Held:
        """The stored rows of the ``wanted_keys``, and the records of changed rows of other keys."""
        numbers, hashes, values = keys.some(wanted_keys)
        query_numbers, rows = self.table.gather(hashes, values)
        owners = numbers[query_numbers]
        names = [f.name for f in self.layout.values]
        columns = {n: single(rows.column(n)) for n in (*names, *(f.name for f in self.layout.columns))}
        columns |= {
            f.name: key.take(pa.array(owners)) for f, key in zip(self.layout.keys, keys.keys, strict=True)
        }
        others = np.flatnonzero(~wanted_keys[placed.owners])
        if len(others):
            more, more_columns = self._changed(keys, change, placed.rows[others], placed.owners[others])
            owners = np.concatenate([owners, more])
            columns = {n: single(pa.chunked_array([c, more_columns[n]], c.type)) for n, c in columns.items()}
        matches = vector(columns.pop(MATCHES)).values if MATCHES in columns else None
        weights = vector(columns.pop(COUNT)).values
        codes = value_codes([columns[n] for n in names], len(owners))
        return Held(owners, columns, weights, codes, matches, exact=True)

    def _changed(self, keys: KeyNumbers, change: Change, rows: Ints, owners: Ints) -> tuple[Ints, Columns]:
        """The records of some of the epoch's rows: key numbers and columns."""
        picks = pa.array(rows)
        identity = [change.columns[f.name].take(picks) for f in self.layout.identity]
        codes = self.layout.codes(keys.hashes[owners], identity[len(self.layout.keys) :])
        groups = group_rows(codes, identity)
        heads = groups.heads
        identity = [column.take(pa.array(heads)) for column in identity]
        answer = self.table.lookup(codes[heads], identity)
        there = np.flatnonzero(answer.there)
        picks = pa.array(there)
        columns = {f.name: c.take(picks) for f, c in zip(self.layout.identity, identity, strict=True)}
        columns |= {f.name: answer.array(f.name).take(picks) for f in self.layout.columns}
        return owners[heads][there], columns

    def keep(self, side: Side, keys: KeyNumbers, matches: Matches | None) -> None:
        """Writes every changed row, even if its count is the same again, and every row with a changed
        match."""
        touched = side.moved if matches is None else side.moved | matches.renewed
        touched &= (side.before > 0) | (side.after > 0)
        rows = np.flatnonzero(touched)
        if len(rows) == 0:
            return
        codes, rows, columns = _written(self.layout, side, keys, rows)
        columns[COUNT] = _ints(side.after[rows])
        if matches is not None:
            columns[MATCHES] = _ints(matches.after[rows])
        self.table.put(codes, columns, side.after[rows] == 0)


def _written(
    layout: Layout, side: Side, keys: KeyNumbers, rows: Ints
) -> tuple[np.ndarray[tuple[int], np.dtype[np.uint64]], Ints, Columns]:
    """Codes, row numbers and identity columns of some rows, in the order of the codes."""
    hashes = keys.hashes[side.owners[rows]]
    codes = hashes
    if layout.values and side.codes is not None and not layout.growing:
        codes = pair_code(hashes, side.codes[rows] << np.uint64(CODE_BITS))
    elif layout.values:
        codes = layout.codes(hashes, [side.take(f.name, rows) for f in layout.coded])
    if not (codes[1:] >= codes[:-1]).all():
        order = sort_order(codes)
        codes, rows = codes[order], rows[order]
    return codes, rows, {f.name: side.take(f.name, rows) for f in layout.identity}


def _ints(values: Ints) -> pa.Array:
    return to_arrow(Vec(values), pa.int64())
