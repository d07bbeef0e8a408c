"""MIN and MAX: the better of two columns of values, element by element or per group.

NULL never wins; NaN wins only where nothing else is there. Numbers and times compare in NumPy; text,
bytes and decimals by their rank among the values at hand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.columns import Ints, Mask, Values, Vec, dtype_of, is_fixed, single, to_arrow, vector
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
        best = reduce(self._ufunc(codes), codes)
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
        best = self._ufunc(codes)(codes[:n], codes[n:])
        rows = np.where(best == codes[:n], np.arange(n), np.arange(n, 2 * n))
        return as_cell(both.take(pa.array(rows)))

    def beats(self, a: Cell, b: Cell) -> Mask:
        """Whether ``a[i]`` is there and at least as good as ``b[i]`` (or ``b[i]`` is NULL)."""
        left, right = as_array(a, self.kind), as_array(b, self.kind)
        both = single(pa.chunked_array([left, right], self.kind))
        codes, n = ranks(both), len(left)
        x, y = codes[:n], codes[n:]
        absent = vector(right.is_null()).values
        wins: Mask = (x <= y if self.least else x >= y) | absent
        return wins & ~vector(left.is_null()).values

    def _numbers(self, values: Values, mask: Mask | None, reduce: Reduce) -> Vec:
        ufunc = self._ufunc(values)
        if mask is None:
            return Vec(reduce(ufunc, values))
        filled = np.where(mask, values, self._neutral(values.dtype)).astype(values.dtype, copy=False)
        return Vec(reduce(ufunc, filled), reduce(np.logical_or, mask))

    def _better_numbers(self, a: Vec, b: Vec) -> Vec:
        best = self._ufunc(a.values)(a.values, b.values)
        if a.valid is None and b.valid is None:
            return Vec(best)
        left, right = a.mask(), b.mask()
        return Vec(np.where(left & right, best, np.where(left, a.values, b.values)), left | right)

    def _ufunc(self, values: Any) -> np.ufunc:
        if values.dtype.kind == "f":
            return np.fmin if self.least else np.fmax
        return np.minimum if self.least else np.maximum

    def _neutral(self, dtype: np.dtype[Any]) -> Any:
        if dtype.kind == "f":
            return np.nan
        info = np.iinfo(dtype)
        return info.max if self.least else info.min


def ranks(column: pa.Array) -> Ints:
    """Integers in the order of the values (NULL anywhere); bytes compare unsigned, as Flink's do."""
    if pa.types.is_boolean(column.type):
        return vector(column).values.astype(np.int64)
    if pa.types.is_decimal128(column.type) and column.type.precision <= 18:
        return vector(column).values[:, 0].view(np.int64)
    if dtype_of(column.type) is not None and not pa.types.is_floating(column.type):
        return vector(column).values.astype(np.int64)
    dense = pc.rank(column, sort_keys="ascending", tiebreaker="dense")
    return vector(dense).values.astype(np.int64)


def _rows_with(codes: Ints, wanted: Ints) -> Ints:
    """For each wanted code some row that has it."""
    order = np.argsort(codes, kind="stable")
    return order[np.searchsorted(codes[order], wanted)]


def as_cell(array: pa.Array) -> Cell:
    return vector(array) if is_fixed(array.type) else array


def as_array(cell: Cell, kind: pa.DataType) -> pa.Array:
    return to_arrow(cell, kind) if isinstance(cell, Vec) else cell
