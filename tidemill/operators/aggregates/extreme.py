"""MIN and MAX: the better of two columns of values, element by element or per group.

NULL never wins. Values compare by their ranks (``changelog.values``). Numbers and times are their own ranks;
text, bytes and long decimals are ranked among the values of the comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask, Values, Vec, dtype_of, is_fixed, single, to_arrow, vector
from tidemill.changelog.values import number_ranks, ranked_numbers, ranks
from tidemill.operators.aggregates.api import Cell

Reduce = Callable[[np.ufunc, Values], Values]
"""Folds values in group order; see ``GroupedRows.reduce``."""

_WORST = {True: np.iinfo(np.int64).max, False: np.iinfo(np.int64).min}


@dataclass(frozen=True, slots=True)
class Extreme:
    """``least``: MIN, else MAX; over values of Arrow type ``kind``."""

    least: bool
    kind: pa.DataType

    @property
    def numeric(self) -> bool:
        return dtype_of(self.kind) is not None

    def best(self, column: pa.Array, mask: Mask | None, reduce: Reduce) -> Cell:
        """The best of each group of a column in group order; ``mask`` None lets every row count."""
        if self.numeric:
            return self._numbers(vector(column).values, mask, reduce)
        codes = ranks(column)
        if mask is not None:
            codes = np.where(mask, codes, _WORST[self.least])
        best = reduce(self._ufunc, codes)
        if mask is None:
            return as_cell(column.take(pa.array(_rows_with(codes, best))))
        valid = reduce(np.logical_or, mask)
        return as_cell(column.take(pa.array(_rows_with(codes, best), mask=~valid)))

    def better(self, a: Cell, b: Cell) -> Cell:
        """The better of ``a[i]`` and ``b[i]``."""
        if self.numeric:
            return self._better_numbers(a, b)
        left, right = as_array(a, self.kind), as_array(b, self.kind)
        both = single(pa.chunked_array([left, right], self.kind))
        codes, n = ranks(both), len(left)
        missing = vector(both.is_null()).values
        codes = np.where(missing, _WORST[self.least], codes)
        best = self._ufunc(codes[:n], codes[n:])
        rows = np.where(best == codes[:n], np.arange(n), np.arange(n, 2 * n))
        return as_cell(both.take(pa.array(rows)))

    def beats(self, a: Cell, b: Cell) -> Mask:
        """Whether ``a[i]`` is not NULL, and at least as good as ``b[i]`` or ``b[i]`` is NULL."""
        left, right = as_array(a, self.kind), as_array(b, self.kind)
        both = single(pa.chunked_array([left, right], self.kind))
        codes, n = ranks(both), len(left)
        x, y = codes[:n], codes[n:]
        absent = vector(right.is_null()).values
        wins: Mask = (x <= y if self.least else x >= y) | absent
        return wins & ~vector(left.is_null()).values

    def _numbers(self, values: Values, mask: Mask | None, reduce: Reduce) -> Vec:
        number_codes = number_ranks(values)
        if mask is not None:
            worst = np.iinfo(number_codes.dtype)
            number_codes = np.where(mask, number_codes, worst.max if self.least else worst.min)
        best = ranked_numbers(reduce(self._ufunc, number_codes), values.dtype)
        return Vec(best, None if mask is None else reduce(np.logical_or, mask))

    def _better_numbers(self, a: Vec, b: Vec) -> Vec:
        best_ranks = self._ufunc(number_ranks(a.values), number_ranks(b.values))
        best = ranked_numbers(best_ranks, a.values.dtype)
        if a.valid is None and b.valid is None:
            return Vec(best)
        left, right = a.mask(), b.mask()
        return Vec(np.where(left & right, best, np.where(left, a.values, b.values)), left | right)

    @property
    def _ufunc(self) -> np.ufunc:
        return np.minimum if self.least else np.maximum


def _rows_with(codes: Ints, wanted_codes: Ints) -> Ints:
    """For each of ``wanted_codes`` a row with that code."""
    order = np.argsort(codes, kind="stable")
    return order[np.searchsorted(codes[order], wanted_codes)]


def as_cell(array: pa.Array) -> Cell:
    return vector(array) if is_fixed(array.type) else array


def as_array(cell: Cell, kind: pa.DataType) -> pa.Array:
    return to_arrow(cell, kind) if isinstance(cell, Vec) else cell
