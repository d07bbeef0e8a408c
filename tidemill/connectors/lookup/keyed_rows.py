"""Rows that are found by key: sorted once by the keys' hashes, then a binary search for each key.

NULL in a key matches nothing. Cost: one sort of the rows; a search and a comparison of values per key asked.
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
    """What is asked for, or asked by: columns of one length, with the hash of each key."""

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
    """Where no column is NULL."""
    there = np.ones(len(columns[0]), np.bool_)
    for column in columns:
        valid = validity(column)
        if valid is not None:
            there &= valid
    return there


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedRows:
    """``rows``: those of key ``g`` are ``counts[g]`` from ``starts[g]`` on; ``keys`` are these, by hash."""

    rows: pa.Table
    keys: Keys
    starts: Ints
    counts: Ints

    @classmethod
    def of(cls, rows: pa.Table, names: Sequence[str], types: Sequence[pa.DataType]) -> Self:
        """``names``: the key's columns, ``types``: those of the keys that will be asked for."""
        columns = [single(rows.column(n)).cast(t) for n, t in zip(names, types, strict=True)]
        there = complete(columns)
        if not there.all():
            mask = pa.array(there)
            rows, columns = rows.filter(mask), [c.filter(mask) for c in columns]
        hashes = hash_columns(columns, len(rows))
        groups = group_rows(hashes, columns)
        ordered = contiguous(rows.take(pa.array(groups.order)))
        keys = Keys(tuple(columns), hashes).take(groups.heads)
        return cls(rows=ordered, keys=keys, starts=groups.starts, counts=groups.sizes)

    def find(self, asked: Keys) -> Ints:
        """Per key asked for its place among ``keys``; -1 where it has no rows."""
        have = self.keys.hashes
        at = np.searchsorted(have, asked.hashes)
        found = np.full(len(asked), -1, np.int64)
        left = np.arange(len(asked))
        while len(left):
            left = left[at[left] < len(have)]
            left = left[have[at[left]] == asked.hashes[left]]
            same = rows_same(self.keys.columns, at[left], asked.columns, left)
            found[left[same]] = at[left[same]]
            left = left[~same]
            at[left] += 1  # another key of the same hash
        return found

    def matches(self, places: Ints, *, outer: bool) -> tuple[Ints, Ints]:
        """For ``places`` that ``find`` gave: pairs of a position in ``places`` and a row; ``outer``: a place
        without rows pairs with -1."""
        counts = np.append(self.counts, 0)[places]
        shown = np.maximum(counts, 1) if outer else counts
        left = np.repeat(np.arange(len(places)), shown)
        within = np.arange(len(left)) - np.repeat(np.cumsum(shown) - shown, shown)
        right = np.append(self.starts, 0)[places][left] + within
        return left, np.where(counts[left] > 0, right, -1)

    def of_places(self, places: Ints) -> pa.Table:
        """The rows of the keys at ``places``; -1 has none."""
        _, rows = self.matches(places, outer=False)
        return self.rows.take(pa.array(rows))
