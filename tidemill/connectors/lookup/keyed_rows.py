"""An index of rows by key: sorted once by the keys' hashes, then searched by binary search.

NULL in a key matches nothing. Cost: one sort of the rows; a search and a comparison of values per lookup key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import contiguous
from tidemill.changelog.columns import Hashes, Ints, Mask, single, validity
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.values import rows_same


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys as columns of equal length, with the hash of each key."""

    columns: tuple[pa.Array, ...]
    hashes: Hashes

    @classmethod
    def of(cls, columns: Sequence[pa.Array]) -> Self:
        return cls(tuple(columns), hash_columns(columns, len(columns[0])))

    def __len__(self) -> int:
        return len(self.hashes)

    def take(self, places: Ints) -> Keys:
        picks = pa.array(places)
        return Keys(tuple(c.take(picks) for c in self.columns), self.hashes[places])

    def table(self, names: Sequence[str]) -> pa.Table:
        return pa.table(list(self.columns), names=list(names))


def complete(columns: Sequence[pa.Array]) -> Mask:
    """A mask of the rows in which no column is NULL."""
    is_complete = np.ones(len(columns[0]), np.bool_)
    for column in columns:
        valid = validity(column)
        if valid is not None:
            is_complete &= valid
    return is_complete


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedRows:
    """``keys`` are sorted by hash. Key number ``g`` has ``counts[g]`` of the ``rows``, from ``starts[g]``
    on."""

    rows: pa.Table
    keys: Keys
    starts: Ints
    counts: Ints

    @classmethod
    def of(cls, rows: pa.Table, names: Sequence[str], types: Sequence[pa.DataType]) -> Self:
        """An index of ``rows``. ``names``: the key columns; ``types``: the types of the keys of later
        lookups."""
        columns = [single(rows.column(n)).cast(t) for n, t in zip(names, types, strict=True)]
        has_key = complete(columns)
        if not has_key.all():
            mask = pa.array(has_key)
            rows, columns = rows.filter(mask), [c.filter(mask) for c in columns]
        hashes = hash_columns(columns, len(rows))
        groups = group_rows(hashes, columns)
        ordered = contiguous(rows.take(pa.array(groups.order)))
        keys = Keys(tuple(columns), hashes).take(groups.heads)
        return cls(rows=ordered, keys=keys, starts=groups.starts, counts=groups.sizes)

    def find(self, lookup_keys: Keys) -> Ints:
        """For each of the ``lookup_keys`` its index in ``keys``; -1 if it has no rows."""
        hashes = self.keys.hashes
        candidates = np.searchsorted(hashes, lookup_keys.hashes)
        indexes = np.full(len(lookup_keys), -1, np.int64)
        pending = np.arange(len(lookup_keys))
        while len(pending):
            pending = pending[candidates[pending] < len(hashes)]
            pending = pending[hashes[candidates[pending]] == lookup_keys.hashes[pending]]
            is_equal = rows_same(self.keys.columns, candidates[pending], lookup_keys.columns, pending)
            indexes[pending[is_equal]] = candidates[pending[is_equal]]
            pending = pending[~is_equal]
            candidates[pending] += 1  # another key of the same hash
        return indexes

    def matches(self, places: Ints, *, outer: bool) -> tuple[Ints, Ints]:
        """Pairs of a position in ``places``, which are results of ``find``, and a row. ``outer``: a key
        without rows is paired with -1."""
        counts = np.append(self.counts, 0)[places]
        pair_counts = np.maximum(counts, 1) if outer else counts
        positions = np.repeat(np.arange(len(places)), pair_counts)
        offsets = np.arange(len(positions)) - np.repeat(np.cumsum(pair_counts) - pair_counts, pair_counts)
        row_numbers = np.append(self.starts, 0)[places][positions] + offsets
        return positions, np.where(counts[positions] > 0, row_numbers, -1)

    def of_places(self, places: Ints) -> pa.Table:
        """The rows of the keys at ``places``; -1 stands for no rows."""
        _, rows = self.matches(places, outer=False)
        return self.rows.take(pa.array(rows))
