"""Columns that must be equal unless either is NULL: NOT IN of several columns, beside other keys, with a TTL.

The rows of a side have patterns of NULLs. A pattern on the left and a pattern on the right determine the
compared columns, so rows match by key, without pairs. Cost: for each pattern of one side the rows of the
other side. There are few patterns; without NULLs there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.columns import Ints, Mask, validity
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.operators.join.pairs import Link
from tidemill.operators.join.sides import Side


def links_of(own: Side, other: Side, pairs: Sequence[tuple[str, str]]) -> list[Link]:
    """The links between rows of equal owner. ``pairs``: names of columns of ``own`` and of ``other``."""
    left = _Loose.of(own, [a for a, _ in pairs])
    right = _Loose.of(other, [b for _, b in pairs])
    return [
        _link(left, right, ~(missing | absent), a, b)
        for (missing, a), (absent, b) in product(left.patterns(), right.patterns())
    ]


@dataclass(frozen=True, slots=True)
class _Loose:
    """The columns of a side, per row and column whether it is NULL, and whether it equals anything."""

    owners: Ints
    columns: list[pa.Array]
    missing: Mask
    comparable: Mask

    @classmethod
    def of(cls, side: Side, names: Sequence[str]) -> _Loose:
        rows = np.arange(len(side.owners))
        columns = [side.take(name, rows) for name in names]
        missing = [_missing(c) for c in columns]
        unlike = [_unlike(c) for c in columns]
        return cls(side.owners, [_plain(c) for c in columns], np.array(missing).T, ~np.array(unlike).T)

    def patterns(self) -> Iterator[tuple[Mask, Ints]]:
        """The distinct patterns of NULLs, and the rows that have them."""
        if len(self.owners) == 0:
            return
        patterns, which = np.unique(self.missing, axis=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            yield pattern, np.flatnonzero(which.reshape(-1) == number)


def _link(left: _Loose, right: _Loose, compared: Mask, own: Ints, other: Ints) -> Link:
    """The link between the rows ``own`` and ``other``, by owner and the ``compared`` columns."""
    own = own[left.comparable[own][:, compared].all(axis=1)]
    other = other[right.comparable[other][:, compared].all(axis=1)]
    picks = (pa.array(own), pa.array(other))
    keys = [pa.array(np.concatenate([left.owners[own], right.owners[other]]))]
    for column in np.flatnonzero(compared):
        parts = [side.columns[column].take(pick) for side, pick in zip((left, right), picks, strict=True)]
        keys.append(pa.concat_arrays(parts))
    groups = group_rows(hash_columns(keys, len(own) + len(other)), keys)
    numbers = np.empty(len(own) + len(other), np.int64)
    numbers[groups.order] = groups.ids()
    return Link(own, numbers[: len(own)], other, numbers[len(own) :], groups.count)


def _missing(column: pa.Array) -> Mask:
    valid = validity(column)
    return np.zeros(len(column), np.bool_) if valid is None else ~valid


def _unlike(column: pa.Array) -> Mask:
    """The mask of values that equal nothing, not even themselves: NaN."""
    if not pa.types.is_floating(column.type):
        return np.zeros(len(column), np.bool_)
    is_nan: Mask = pc.fill_null(pc.is_nan(column), False).to_numpy(zero_copy_only=False)
    return is_nan


def _plain(column: pa.Array) -> pa.Array:
    """Values with one representation for equal values: 0.0 for -0.0."""
    return pc.add(column, pa.scalar(0, column.type)) if pa.types.is_floating(column.type) else column
