"""Find records in a spine, with one binary search per run for all queries together.

Cost per run: one ``searchsorted`` of the unanswered queries, and one key comparison per hash hit.
Queries are in ascending order, so the search moves forward through the run. In a table ordered by time
there is one search per queried time; if there are many times, there are about twenty steps for all of
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import (
    Hashes,
    Ints,
    Mask,
    Values,
    Vec,
    is_fixed,
    single,
    to_arrow,
    vector,
    zeros,
)
from tidemill.changelog.values import rows_same
from tidemill.state.layout import Layout
from tidemill.state.run import RunReader, due_range

_FEW_TIMES = 64


@dataclass(frozen=True, slots=True)
class Queries:
    """The identities to find, in ascending order of their codes. In a table ordered by time they also have
    ``dues``."""

    hashes: Hashes
    dues: Ints | None = None

    def __len__(self) -> int:
        return len(self.hashes)

    def take(self, rows: Values | slice) -> Queries:
        return Queries(self.hashes[rows], None if self.dues is None else self.dues[rows])

    def within(self, reader: RunReader) -> slice:
        """The queries that ``reader`` may answer."""
        lo, hi = reader.bounds
        if self.dues is None:
            return _between(self.hashes, np.uint64(lo), np.uint64(hi))
        return _between(self.dues, *due_range(lo, hi))

    def places(self, reader: RunReader, side: Literal["left", "right"] = "left") -> Ints:
        """For each query the first row of ``reader`` at or after it, or with ``right`` the first row after
        it."""
        dues = reader.dues
        if self.dues is None or dues is None:
            return np.searchsorted(reader.hashes, self.hashes, side)
        turns = np.flatnonzero(np.append(True, self.dues[1:] != self.dues[:-1]))
        start, stop = dues.ranges(self.dues[turns])
        ends = np.append(turns[1:], len(self))
        found = np.repeat(start, ends - turns)
        if len(turns) > _FEW_TIMES:
            return _bisected(reader.hashes, self.hashes, found, np.repeat(stop, ends - turns), side)
        for first, end, low, high in zip(turns, ends, start, stop, strict=True):
            found[first:end] += np.searchsorted(reader.hashes[low:high], self.hashes[first:end], side)
        return found

    def matches(self, reader: RunReader, rows: Ints, queries: Ints) -> Mask:
        """Whether ``rows`` (some may be beyond the end) count and have the code of ``queries``."""
        is_match = (rows < reader.rows) & reader.are_own(self.hashes[queries])
        rows = np.where(is_match, rows, 0)
        is_match &= reader.hashes[rows] == self.hashes[queries]
        dues = reader.dues
        if self.dues is not None and dues is not None:
            is_match &= dues.take(rows) == self.dues[queries]
        return is_match


def _between(values: Values, lo: Any, hi: Any) -> slice:
    first = int(np.searchsorted(values, lo, side="left"))
    return slice(first, int(np.searchsorted(values, hi, side="right")))


def _bisected(hashes: Hashes, targets: Hashes, low: Ints, high: Ints, side: str) -> Ints:
    """``searchsorted`` of each wanted value in a range of its own; changes the ranges."""
    before = np.less if side == "left" else np.less_equal
    while (open_ := np.flatnonzero(low < high)).size:
        middle = (low[open_] + high[open_]) >> 1
        below = before(hashes[middle], targets[open_])
        low[open_] = np.where(below, middle + 1, low[open_])
        high[open_] = np.where(below, high[open_], middle)
    return low


@dataclass(frozen=True, slots=True)
class Piece:
    """``queries[i]`` is answered by row ``rows[i]`` of ``reader``."""

    reader: RunReader
    queries: Ints
    rows: Ints

    def vec(self, name: str) -> Vec | None:
        """A column of fixed width; None if it is newer than the run."""
        return self.reader.taken_vec(name, self.rows)


@dataclass(slots=True)
class Answers:
    """The answers to ``size`` queries. Payload columns are read on demand.

    ``there`` is False if a record does not exist. Its columns are NULL, as are columns that are newer
    than the record's run.
    """

    size: int
    pieces: list[Piece]
    there: Mask
    _types: dict[str, pa.DataType] = field(default_factory=dict)

    def vec(self, name: str) -> Vec:
        """A fixed-width column, one value per query."""
        kind = self._types[name]
        if self.complete:
            whole = self.pieces[0].vec(name)
            if whole is not None:
                return whole
        values = zeros(kind, self.size)
        valid = np.zeros(self.size, np.bool_)
        for piece in self.pieces:
            part = piece.vec(name)
            if part is not None:
                values[piece.queries] = part.values
                valid[piece.queries] = True if part.valid is None else part.valid
        return Vec(values, valid & self.there)

    def array(self, name: str) -> pa.Array:
        """Any column, one value per query."""
        kind = self._types[name]
        if is_fixed(kind):
            return to_arrow(self.vec(name), kind)
        chunks = [pa.nulls(1, kind)]
        indexes = np.zeros(self.size, np.int64)
        offset = 1
        for piece in self.pieces:
            values = piece.reader.taken(name, piece.rows)
            if values is not None:
                chunks.append(values)
                indexes[piece.queries] = np.arange(offset, offset + len(piece.rows))
                offset += len(piece.rows)
        indexes[~self.there] = 0
        return single(pa.chunked_array(chunks, kind)).take(pa.array(indexes))

    @property
    def complete(self) -> bool:
        """Whether one run answers every query, in order."""
        return len(self.pieces) == 1 and len(self.pieces[0].rows) == self.size and bool(self.there.all())


def find(
    layout: Layout, layers: Sequence[Sequence[RunReader]], queries: Queries, keys: list[pa.Array]
) -> Answers:
    """The newest row of each query's identity, tombstones included. ``keys``: the key and value columns."""
    size = len(queries)
    pieces: list[Piece] = []
    answered = np.zeros(size, np.bool_)
    for layer in layers:
        for piece in _hits(layout, layer, queries, keys, answered):
            pieces.append(piece)
            answered[piece.queries] = True
        if answered.all():
            break
    types = {f.name: f.type for f in layout.schema}
    return Answers(size, pieces, answered, types)


def total_weight(
    layout: Layout, layers: Sequence[Sequence[RunReader]], queries: Queries, keys: list[pa.Array], weight: str
) -> Ints:
    """The sum of weights of each query's identity, over all layers."""
    totals = np.zeros(len(queries), np.int64)
    nothing = np.zeros(len(queries), np.bool_)
    for layer in layers:
        for piece in _hits(layout, layer, queries, keys, nothing):
            column = piece.reader.column(weight)
            totals[piece.queries] += vector(column).values[piece.rows]
    return totals


def _hits(
    layout: Layout, layer: Sequence[RunReader], queries: Queries, keys: list[pa.Array], done: Mask
) -> Iterator[Piece]:
    """The rows of one layer that match queries that are not ``done``. There is at most one row per query."""
    remaining = None if not done.any() else np.flatnonzero(~done)
    unanswered = queries if remaining is None else queries.take(remaining)
    for reader in layer:
        part = unanswered.within(reader)
        if part.start == part.stop:
            continue
        query_numbers = np.arange(part.start, part.stop) if remaining is None else remaining[part]
        matched, rows = _match(layout, reader, unanswered.take(part), query_numbers, keys)
        if len(matched):
            yield Piece(reader, matched, rows)


def _match(
    layout: Layout, reader: RunReader, unanswered: Queries, query_numbers: Ints, keys: list[pa.Array]
) -> tuple[Ints, Ints]:
    """Query numbers and rows of ``reader`` with equal identity. ``matches`` compares due times."""
    candidates = unanswered.places(reader)
    columns = [reader.column(f.name) for f in (*layout.keys, *layout.values)]
    queries, rows = [], []
    hit = np.flatnonzero(unanswered.matches(reader, candidates, np.arange(len(unanswered))))
    while len(hit):
        rows_of_hits, query = candidates[hit], query_numbers[hit]
        same = rows_same(columns, rows_of_hits, keys, query)
        queries.append(query[same])
        rows.append(rows_of_hits[same])
        if same.all():
            break
        # Another key has the same code: the row after it may be the right one.
        hit = hit[~same]
        candidates[hit] += 1
        hit = hit[unanswered.matches(reader, candidates[hit], hit)]
    if not queries:
        empty = np.zeros(0, np.int64)
        return empty, empty
    if len(queries) == 1:
        return queries[0], rows[0]
    order = np.argsort(np.concatenate(queries), kind="stable")
    return np.concatenate(queries)[order], np.concatenate(rows)[order]
