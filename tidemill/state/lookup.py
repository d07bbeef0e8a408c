"""Finding records in a spine: one binary search per run for all queries at once.

Cost per run: one ``searchsorted`` of the still unanswered queries and one key comparison per hash
hit; queries are in ascending hash order, so the search walks the run forward.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Hashes, Ints, Mask, Vec, is_fixed, single, to_arrow, vector, zeros
from tidemill.changelog.values import rows_same
from tidemill.state.layout import Layout
from tidemill.state.run import RunReader, clip


@dataclass(frozen=True, slots=True)
class Piece:
    """``queries[i]`` is answered by row ``rows[i]`` of ``reader``."""

    reader: RunReader
    queries: Ints
    rows: Ints


@dataclass(slots=True)
class Found:
    """Answers to ``size`` queries; payload columns are fetched when asked for.

    ``found`` is False where there is no record; there every column reads NULL, and so does a column
    that the record's run predates.
    """

    size: int
    pieces: list[Piece]
    found: Mask
    _types: dict[str, pa.DataType] = field(default_factory=dict)

    def vec(self, name: str) -> Vec:
        """A fixed-width column, one value per query."""
        kind = self._types[name]
        if self.complete:
            column = self.pieces[0].reader.column(name)
            if column is not None:
                return vector(column).take(self.pieces[0].rows)
        values = zeros(kind, self.size)
        valid = np.zeros(self.size, np.bool_)
        for piece in self.pieces:
            column = piece.reader.column(name)
            if column is not None:
                part = vector(column).take(piece.rows)
                values[piece.queries] = part.values
                valid[piece.queries] = True if part.valid is None else part.valid
        return Vec(values, valid & self.found)

    def array(self, name: str) -> pa.Array:
        """Any column, one value per query."""
        kind = self._types[name]
        if is_fixed(kind):
            return to_arrow(self.vec(name), kind)
        chunks = [pa.nulls(1, kind)]
        place = np.zeros(self.size, np.int64)
        offset = 1
        for piece in self.pieces:
            column = piece.reader.column(name)
            if column is not None:
                chunks.append(column.take(pa.array(piece.rows)))
                place[piece.queries] = np.arange(offset, offset + len(piece.rows))
                offset += len(piece.rows)
        place[~self.found] = 0
        return single(pa.chunked_array(chunks, kind)).take(pa.array(place))

    @property
    def complete(self) -> bool:
        """Whether one run answers every query, in order."""
        return len(self.pieces) == 1 and len(self.pieces[0].rows) == self.size and bool(self.found.all())


def find(
    layout: Layout, layers: Sequence[Sequence[RunReader]], hashes: Hashes, keys: list[pa.Array]
) -> Found:
    """The newest row of each query's identity, tombstones included."""
    size = len(hashes)
    pieces: list[Piece] = []
    found = np.zeros(size, np.bool_)
    for layer in layers:
        for piece in _hits(layout, layer, hashes, keys, found):
            pieces.append(piece)
            found[piece.queries] = True
        if found.all():
            break
    types = {f.name: f.type for f in layout.schema}
    return Found(size, pieces, found, types)


def total_weight(
    layout: Layout, layers: Sequence[Sequence[RunReader]], hashes: Hashes, keys: list[pa.Array], weight: str
) -> Ints:
    """The sum of weights of each query's identity over all layers."""
    totals = np.zeros(len(hashes), np.int64)
    nothing = np.zeros(len(hashes), np.bool_)
    for layer in layers:
        for piece in _hits(layout, layer, hashes, keys, nothing):
            column = piece.reader.column(weight)
            totals[piece.queries] += vector(column).values[piece.rows]
    return totals


def _hits(
    layout: Layout, layer: Sequence[RunReader], hashes: Hashes, keys: list[pa.Array], done: Mask
) -> Iterator[Piece]:
    """The rows of one layer that match queries not yet ``done``; at most one row per query."""
    left = None if not done.any() else np.flatnonzero(~done)
    for reader in layer:
        wanted = hashes if left is None else hashes[left]
        part = clip(wanted, *reader.bounds)
        if part.start == part.stop:
            continue
        asked = np.arange(part.start, part.stop) if left is None else left[part]
        queries, rows = _match(layout, reader, wanted[part], asked, keys)
        if len(queries):
            yield Piece(reader, queries, rows)


def _match(
    layout: Layout, reader: RunReader, wanted: Hashes, asked: Ints, keys: list[pa.Array]
) -> tuple[Ints, Ints]:
    """Query numbers and rows of ``reader`` with equal identity."""
    have = reader.hashes
    at = np.searchsorted(have, wanted)
    columns = [reader.column(f.name) for f in layout.identity]
    queries, rows = [], []
    hit = np.flatnonzero(have[at] == wanted)
    while len(hit):
        place, query = at[hit], asked[hit]
        same = rows_same(columns, place, keys, query)
        queries.append(query[same])
        rows.append(place[same])
        if same.all():
            break
        # A different key of the same hash: its neighbour may be the one that is meant.
        hit = hit[~same]
        at[hit] += 1
        hit = hit[at[hit] < len(have)]
        hit = hit[have[at[hit]] == wanted[hit]]
    if not queries:
        empty = np.zeros(0, np.int64)
        return empty, empty
    if len(queries) == 1:
        return queries[0], rows[0]
    order = np.argsort(np.concatenate(queries), kind="stable")
    return np.concatenate(queries)[order], np.concatenate(rows)[order]
