"""Identity, order and equality of values for the kernels.

``tidemill.types.values`` has the definitions; ``functions.values`` implements the same in Spark SQL.
Everything works on whole Arrow columns without Python per value. The exception is nested columns, which Arrow
cannot compare: they become text first (``canonical``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.columns import Ints, Mask, Values, Vec, is_fixed, vector

_SMALL_DECIMAL = 18
"""Decimals of at most so many digits are their lower limb."""


# -- identity: keys, DISTINCT, "unchanged" ---------------------------------------------------------------


def identity_bits(values: Values) -> Values:
    """Numbers as integers that are equal for identical values: floats as their bits, with one NaN."""
    if values.dtype.kind != "f":
        return values
    bits = values.view(np.dtype(f"i{values.dtype.itemsize}"))
    missing = np.isnan(values)
    if missing.any():
        bits = np.where(missing, np.array(np.nan, values.dtype).view(bits.dtype), bits)
    return bits


def same_at(left: pa.Array, left_rows: Values, right: pa.Array, right_rows: Values) -> Mask:
    """Whether ``left[left_rows[i]]`` and ``right[right_rows[i]]`` are identical; NULL is identical to
    NULL. ``left`` may be a dictionary of such values, or narrower integers."""
    if is_fixed(left.type):
        return _fixed_same(vector(left).take(left_rows), vector(right).take(right_rows))
    if pa.types.is_null(left.type):
        return np.ones(len(left_rows), np.bool_)
    if pa.types.is_nested(left.type):
        left, right = canonical(left), canonical(right)
    a, b = left.take(pa.array(left_rows)), right.take(pa.array(right_rows))
    if pa.types.is_dictionary(a.type):
        a = a.dictionary_decode()
    same = pc.equal(a, b)
    if same.null_count == 0:
        return vector(same).values
    both = pc.and_(pc.is_null(a), pc.is_null(b))
    return vector(pc.or_(pc.fill_null(same, False), both)).values


def rows_same(
    left: Sequence[pa.Array], left_rows: Values, right: Sequence[pa.Array], right_rows: Values
) -> Mask:
    """``same_at`` over all columns; without columns all rows are identical."""
    same = np.ones(len(left_rows), np.bool_)
    for a, b in zip(left, right, strict=True):
        same &= same_at(a, left_rows, b, right_rows)
    return same


def canonical(array: pa.Array) -> pa.Array:
    """A nested column as texts that are equal exactly for identical values.

    The one place that walks values in Python: nested keys are rare and Arrow cannot compare them.
    """
    return pa.array([None if v is None else repr(v) for v in array.to_pylist()], pa.string())


def _fixed_same(a: Vec, b: Vec) -> Mask:
    x, y = identity_bits(a.values), identity_bits(b.values)
    same: Mask = (x == y).all(axis=1) if x.ndim == 2 else x == y
    if a.valid is None and b.valid is None:
        return same
    left, right = a.mask(), b.mask()
    return np.where(left & right, same, left == right)


# -- order: ORDER BY, MIN, MAX, Top-N --------------------------------------------------------------------


def ranks(array: pa.Array) -> Ints:
    """Integers in the order of the values, equal for identical values; arbitrary under a NULL.

    Take ``~ranks`` for the opposite order: ``-ranks`` wraps at the smallest integer.
    """
    kind = array.type
    if pa.types.is_decimal128(kind) and kind.precision <= _SMALL_DECIMAL:
        return vector(array).values[:, 0].view(np.int64)
    if is_fixed(kind) and not pa.types.is_decimal(kind):
        return number_ranks(vector(array).values).astype(np.int64, copy=False)
    if pa.types.is_nested(kind):
        array = canonical(array)
    dense = pc.rank(array, sort_keys="ascending", tiebreaker="dense")
    return vector(dense).values.astype(np.int64)


def number_ranks(values: Values) -> Values:
    """``ranks`` of plain numbers: themselves, but for floats, whose bits fold into the order of integers."""
    return values if values.dtype.kind != "f" else _folded(identity_bits(values))


def ranked_numbers(rank_codes: Values, dtype: np.dtype[Any]) -> Values:
    """The numbers whose ``number_ranks`` these are."""
    return rank_codes if dtype.kind != "f" else _folded(rank_codes).view(dtype)


def _folded(bits: Values) -> Values:
    """Its own inverse: the magnitudes of negative floats turned round."""
    turned = bits >> (8 * bits.dtype.itemsize - 1)
    turned &= np.iinfo(bits.dtype).max
    turned ^= bits
    return turned


# -- comparison: what SQL's = says -----------------------------------------------------------------------


def equal(left: Any, right: Any) -> Any:
    """SQL's ``=`` of columns, three-valued: ROWs field by field, other nested values by identity."""
    if pa.types.is_struct(left.type):
        there = pc.and_(pc.is_valid(left), pc.is_valid(right))
        return pc.if_else(there, reduce(pc.and_, _fields_same(left, right)), pa.scalar(None, pa.bool_()))
    if not pa.types.is_nested(left.type):
        return pc.equal(*comparable(left, right))
    return pc.equal(canonical(left), canonical(right))


def comparable(left: Any, right: Any) -> tuple[Any, Any]:
    """Both for Arrow's comparisons, which fail where two decimals have no common type of 128 bits."""
    if left.type == right.type or not (pa.types.is_decimal(left.type) or pa.types.is_decimal(right.type)):
        return left, right
    scale = max(side.type.scale for side in (left, right) if pa.types.is_decimal(side.type))
    wide = pa.decimal256(76, scale)
    return pc.cast(left, wide), pc.cast(right, wide)


def not_distinct(left: Any, right: Any) -> Any:
    """SQL's IS NOT DISTINCT FROM of columns."""
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.or_(pc.fill_null(equal(left, right), False), both_null)


def _fields_same(left: Any, right: Any) -> list[Any]:
    fields = range(left.type.num_fields)
    return [not_distinct(pc.struct_field(left, i), pc.struct_field(right, i)) for i in fields]
