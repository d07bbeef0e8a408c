"""A state table ordered by time: due entries are taken from its start, and the other entries are not read.

    entries: (due 5, k=1), (due 8, k=2), (due 20, k=1)
    take_due(10) gives (due 5, k=1), (due 8, k=2); (due 20, k=1) stays

Timers, expiring rows, interval joins and windows keep their entries here. The identity of an entry is its due
time and its key columns (and value columns). Entries with the same identity combine as the layout says: the
newest record wins and a tombstone deletes, or the weights of a multiset add. Runs are sorted by (time, hash).

``take_due(t)`` removes all entries due at or before t by raising the start of each run. It writes
nothing, and drops files without live rows. Cost: the due entries, and one comparison of bounds per run
without due entries. If an entry is added for a time that was already taken, the next ``take_due`` takes
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Hashes, Ints, Mask, Vec, single, to_arrow, vector
from tidemill.changelog.grouping import sort_order
from tidemill.changelog.hashing import code_range
from tidemill.changelog.values import rows_same
from tidemill.state.layers import TableLayers
from tidemill.state.layout import Layout, conform, hash_array
from tidemill.state.lookup import Answers, Piece, Queries, find, total_weight
from tidemill.state.run import DELETED, DUE, HASH, WEIGHT, RunReader, due_code, due_range

_TOLD_BITS = 20
"""Of a hash: as many flags as fit a processor's cache."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """Entries where they are stored. Their columns are read on demand."""

    layout: Layout
    pieces: list[Piece]

    @property
    def queries(self) -> Ints:
        """Which query each entry answers."""
        return np.concatenate([np.zeros(0, np.int64), *(p.queries for p in self.pieces)])

    def column(self, name: str) -> pa.Array:
        kind = self.layout.schema.field(name).type
        return single(pa.chunked_array([p.reader.taken(name, p.rows) for p in self.pieces], kind))

    def ints(self, name: str) -> Ints:
        """A column of integers or times without NULLs."""
        parts = [p.vec(name) for p in self.pieces]
        return np.concatenate([np.zeros(0, np.int64), *(part.values for part in parts if part is not None)])

    def where(self, chosen: Mask) -> Gathered:
        """The entries that a mask selects."""
        if chosen.all():
            return self
        sizes = np.cumsum([len(p.rows) for p in self.pieces])
        parts = zip(self.pieces, np.split(chosen, sizes[:-1]), strict=True)
        return Gathered(self.layout, [Piece(p.reader, p.queries[c], p.rows[c]) for p, c in parts])


@dataclass(slots=True)
class TimeTable:
    """A table whose layout is ``by_time``. Times are integers, usually milliseconds."""

    rows: TableLayers

    @property
    def layout(self) -> Layout:
        return self.rows.layout

    def put(
        self, dues: Ints, hashes: Hashes, columns: dict[str, pa.Array], deleted: Mask | None = None
    ) -> None:
        """Adds or replaces distinct entries; ``deleted`` marks entries to delete. ``hashes`` are the codes
        of the keys (``Layout.codes``), in any order."""
        if len(dues) == 0:
            return
        columns = {HASH: hash_array(hashes), DUE: to_arrow(Vec(dues), pa.int64()), **columns}
        if deleted is not None:
            columns[DELETED] = to_arrow(Vec(deleted), pa.bool_())
        table = conform(pa.table(columns), self.layout.schema)
        order = np.lexsort((hashes, dues))
        if (order[1:] < order[:-1]).any():
            table = table.take(pa.array(order))
        self.rows.add(table)

    def take_due(self, time: int) -> pa.Table:
        """Removes all entries due at or before ``time``, and gives them by time (``$due``) and hash.

        The columns are the layout's, with ``$hash`` and, in a multiset, ``$weight``.
        """
        return self._merged(self.rows.take_below(due_code(time + 1)))

    def forget_due(self, time: int) -> None:
        """Removes due entries without reading them. Cost: one comparison of bounds per run."""
        self.rows.take_below(due_code(time + 1))

    def earliest(self) -> int | None:
        """A time before which no entry is due; None if there are no entries. Opens no file."""
        bounds = [layer[0].bounds for layer in self.rows.all if layer]
        return min((due_range(lo, hi)[0] for lo, hi in bounds), default=None)

    def latest(self) -> int | None:
        """A time after which no entry is due; None if there are no entries. Opens no file."""
        bounds = [layer[-1].bounds for layer in self.rows.all if layer]
        return max((due_range(lo, hi)[1] for lo, hi in bounds), default=None)

    def lookup(self, dues: Ints, hashes: Hashes, keys: list[pa.Array]) -> Answers:
        """The records of distinct identities, in ascending order of (``dues``, ``hashes``). ``keys`` are
        the key (and value) columns, with one row per query. Deleted records are not found."""
        found = find(self.layout, self.rows.all, Queries(hashes, dues), keys)
        if found.pieces:
            deleted = found.vec(DELETED)
            found.there &= ~(deleted.values & deleted.mask())
        return found

    def weights(self, dues: Ints, hashes: Hashes, keys: list[pa.Array]) -> Ints:
        """The total weight in a multiset of each queried identity, with the arguments of ``lookup``."""
        return total_weight(self.layout, self.rows.all, Queries(hashes, dues), keys, WEIGHT)

    def may_have(self, hashes: Hashes) -> Mask:
        """Which of these keys may have an entry. Most keys without entries are recognised. If there are
        more entries than keys, all keys may have one. Cost: a pass over either."""
        readers = [reader for layer in self.rows.all for reader in layer]
        if sum(reader.rows for reader in readers) > len(hashes):
            return np.ones(len(hashes), np.bool_)
        return shared_keys(hashes, [reader.hashes for reader in readers])

    def gather(self, dues: Ints, hashes: Hashes, keys: list[pa.Array], rows: Ints) -> Gathered:
        """All entries of a growing table with a queried time and key. The keys of query ``i`` are at
        ``rows[i]`` of ``keys``. Queries are in ascending order of (``dues``, ``hashes``), and may
        repeat."""
        low, high = code_range(hashes) if self.layout.values else (hashes, hashes)
        first, last = Queries(low, dues), Queries(high, dues)
        pieces = []
        for reader in (r for layer in self.rows.all for r in layer):
            part = first.within(reader)
            if part.start == part.stop:
                continue
            start = first.take(part).places(reader)
            counts = last.take(part).places(reader, "right") - start
            queries = np.repeat(np.arange(part.start, part.stop), counts)
            ends = np.cumsum(counts)
            places = np.arange(len(queries)) - np.repeat(ends - counts - start, counts)
            columns = [reader.column(f.name) for f in self.layout.keys]
            same = rows_same(columns, places, keys, rows[queries]) & reader.are_own(hashes[queries])
            if same.any():
                pieces.append(Piece(reader, queries[same], places[same]))
        return Gathered(self.layout, pieces)

    def range(self, first: int, last: int) -> pa.Table:
        """All entries due from ``first`` to ``last``. They stay in the table. The columns are as in
        ``take_due``."""
        lo, hi = due_code(first), due_code(last + 1)
        found = []
        for reader in (r for layer in self.rows.all for r in layer):
            if reader.bounds[1] >= lo and reader.bounds[0] < hi:
                start, stop = reader.at(lo), reader.at(hi)
                found += [reader.cut(start, stop)] if start < stop else []
        return self._merged(found)

    def _merged(self, readers: list[RunReader]) -> pa.Table:
        """The live entries of ``readers``, which hold all versions of their entries, newest first."""
        tables = [reader.table for reader in (self.rows.merge(readers, True) if readers else ())]
        rows = pa.concat_tables(tables or [self.layout.schema.empty_table()])
        return rows if self.layout.additive else rows.drop_columns([DELETED])


def shared_keys(hashes: Hashes, others: Sequence[Hashes]) -> Mask:
    """Which of these keys may be among ``others``, hashes or codes. Most keys that are not among them are
    recognised. Cost: a pass over either."""
    there = np.zeros(1 << _TOLD_BITS, np.bool_)
    for codes in others:
        there[_told(codes)] = True
    may: Mask = there[_told(hashes)]
    return may


def _told(codes: Hashes) -> Hashes:
    """Bits that a row's code has of the hash of its key. The first bits are left out, because the rows of
    a partition share them."""
    return (codes >> np.uint64(32)) & np.uint64((1 << _TOLD_BITS) - 1)


def by_time_order(dues: Ints, hashes: Hashes) -> Ints:
    """The order in which ``lookup`` wants its queries."""
    if len(dues) == 0 or (dues == dues[0]).all():
        return sort_order(hashes)
    order: Ints = np.lexsort((hashes, dues))
    return order


def due_times(rows: pa.Table) -> Ints:
    """The due time of each row of ``take_due``."""
    times: Ints = vector(rows.column(DUE)).values
    return times
