"""An epoch's rows of one operator, grouped by key, as accumulators read them.

Accumulators are written once, over ``reduce``, which folds the rows of each group into one value. If the
change of every single row is needed (``running``), ``reduce`` gives the value after each row.

``GroupedRows`` serves columns in group order (equal keys contiguous, arrival order within a key) and
the row weights an aggregate call sees: +1/-1 by kind, or more if the row stands for several equal
rows; 0 if its FILTER does not hold; and for DISTINCT calls the appearance (+1) or disappearance (-1)
of a value, placed at its first row.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Hashes, Ints, Mask, Values, Vec, is_fixed, single, vector
from tidemill.changelog.grouping import Groups

WeightKey = tuple[str | None, tuple[str, ...]]
"""The filter column, then the arguments of a DISTINCT call (empty for plain calls)."""


@dataclass(slots=True)
class GroupedRows:
    """``weights``: per row in group order, None if all are +1. ``hashes``: one per group.

    ``ordered``: some call depends on arrival order.
    """

    table: pa.Table
    groups: Groups
    hashes: Hashes
    keys: list[pa.Array]
    weights: Ints | None
    running: bool = False
    ordered: bool = False
    fed: set[str] = field(default_factory=set)
    """State tables that have taken in these rows."""
    _vecs: dict[str, Vec] = field(default_factory=dict)
    _arrays: dict[str, pa.Array] = field(default_factory=dict)
    _weights: dict[WeightKey, Ints | None] = field(default_factory=dict)

    def vec(self, name: str) -> Vec:
        """A fixed-width column in group order."""
        vec = self._vecs.get(name)
        if vec is None:
            vec = self._vecs[name] = vector(self.table.column(name)).take(self.groups.order)
        return vec

    def array(self, name: str) -> pa.Array:
        """Any column in group order."""
        array = self._arrays.get(name)
        if array is None:
            column = single(self.table.column(name))
            array = self._arrays[name] = column.take(pa.array(self.groups.order))
        return array

    def valid(self, name: str) -> Mask | None:
        """Where a column is not NULL, in group order; None: everywhere."""
        column = single(self.table.column(name))
        if column.null_count == 0:
            return None
        if is_fixed(column.type):
            return self.vec(name).valid
        mask: Mask = vector(column.is_valid()).values[self.groups.order]
        return mask

    def row_weights(self, key: WeightKey) -> Ints | None:
        """What each row counts for a call with this filter and distinctness; None: all +1."""
        if key in self._weights:
            return self._weights[key]
        name, _ = key
        weights = self.weights
        if name is not None:
            passes = self.filter(name)
            weights = passes.astype(np.int64) if weights is None else np.where(passes, weights, 0)
        self._weights[key] = weights
        return weights

    def set_row_weights(self, key: WeightKey, weights: Ints) -> None:
        self._weights[key] = weights

    def filter(self, name: str) -> Mask:
        """Where a boolean column is TRUE, in group order."""
        vec = self.vec(name)
        return vec.values if vec.valid is None else vec.values & vec.valid

    def reduce(self, ufunc: np.ufunc, values: Values) -> Values:
        """One value per group, or the running value per row."""
        if self.running:
            return segmented_accumulate(ufunc, values, self.groups.starts)
        reduced: Values = ufunc.reduceat(values, self.groups.starts)
        return reduced

    def any(self, mask: Mask) -> Mask:
        """Whether ``mask`` holds anywhere in the group (up to the row)."""
        return self.reduce(np.logical_or, mask).astype(np.bool_, copy=False)

    def counts(self) -> Ints:
        """Rows per group, or up to each row."""
        if not self.running:
            return self.groups.sizes
        return np.arange(1, len(self.groups.order) + 1) - np.repeat(self.groups.starts, self.groups.sizes)


def segmented_accumulate(ufunc: np.ufunc, values: Values, starts: Ints) -> Values:
    """``ufunc.accumulate`` that starts anew at each of ``starts``; ``ufunc`` is associative.

    Integers add by one cumulative sum. Anything else by doubling: log2(longest segment) passes, none
    of which looks across a start, so a NaN stays in its segment.
    """
    sizes = np.diff(starts, append=len(values))
    if ufunc is np.add and values.dtype.kind in "iu":
        total = np.cumsum(values, dtype=values.dtype)
        sums: Values = total - np.repeat(total[starts] - values[starts], sizes)
        return sums
    result = values.copy()
    position = np.arange(len(values)) - np.repeat(starts, sizes)
    step, longest = 1, int(sizes.max(initial=0))
    while step < longest:
        inside = np.flatnonzero(position >= step)
        result[inside] = ufunc(result[inside - step], result[inside])
        step *= 2
    return result
