"""Kernels of exact decimals: whole numbers as decimals, sums, differences, products, wider types.

Arrow's rules for the types of sums and products are Flink's, as long as no digit has to give way. A decimal
is two 64-bit limbs, the low one first; most values fit into the low one.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.functions.arrays.api import ArrayCall, Inexact, Kernel, Value
from tidemill.functions.arrays.buffers import Ints, decimal_limbs, numbers, with_validity
from tidemill.functions.coercion import as_decimal
from tidemill.types import logical as t
from tidemill.types.physical import arrow_type

Raw = Callable[[t.DecimalType, t.DecimalType], int]
_WIDEST_INTEGER = 19
"""The digits of a BIGINT."""


def _raw_sum(a: t.DecimalType, b: t.DecimalType) -> int:
    return max(a.precision - a.scale, b.precision - b.scale) + max(a.scale, b.scale) + 1


def _raw_product(a: t.DecimalType, b: t.DecimalType) -> int:
    return a.precision + b.precision + 1


_OPERATORS: dict[str, tuple[Kernel, Raw]] = {
    "+": (pc.add, _raw_sum),
    "-": (pc.subtract, _raw_sum),
    "*": (pc.multiply, _raw_product),
}


def arithmetic(operator: str, call: ArrayCall) -> Kernel | None:
    """+, - and * of two decimals whose result has all digits."""
    a, b = call.arg_types
    if not isinstance(a, t.DecimalType) or not isinstance(b, t.DecimalType):
        return None
    kernel, precision = _OPERATORS[operator]
    return kernel if precision(a, b) <= t.MAX_DECIMAL_PRECISION else None


def cast(source: t.LogicalType, target: t.DecimalType) -> Kernel | None:
    """A whole number or a decimal as a decimal. It rounds half up; what does not fit is NULL."""
    if not isinstance(source, t.EXACT_TYPES):
        return None
    kind = as_decimal(source)
    fits = target.scale >= kind.scale and target.precision - target.scale >= kind.precision - kind.scale
    if fits:
        return partial(as_decimals, arrow_type(target))
    shift = target.scale - kind.scale
    return partial(_fitted, arrow_type(target), shift) if abs(shift) < _WIDEST_INTEGER else None


def as_decimals(kind: pa.DataType, value: Value) -> Value:
    """``value``, a whole number or a decimal, as ``kind``, which has room for it."""
    if value.type == kind or pa.types.is_decimal(value.type):
        return value.cast(kind)
    if isinstance(value, pa.Scalar):
        return pa.scalar(None if value.as_py() is None else Decimal(value.as_py()), kind)
    whole = numbers(value).astype(np.int64, copy=False)
    return with_validity(pa.decimal128(_WIDEST_INTEGER, 0), _limbs(whole), value).cast(kind)


def as_double(unit: int, value: Value) -> Value:
    """A decimal as the double nearest to it. Raises Inexact if a double does not have all its digits, which
    count ``unit`` to the one."""
    if isinstance(value, pa.Scalar):
        return as_double(unit, pa.array([value.as_py()], value.type))[0]
    digits = _small(value)
    if len(digits) and max(int(digits.max()), -int(digits.min())) >= _EXACT_DOUBLES:
        raise Inexact
    return with_validity(pa.float64(), digits / float(unit), value)


_EXACT_DOUBLES = 2**53


def _limbs(low: Ints) -> Ints:
    limbs = np.empty((len(low), 2), np.int64)
    limbs[:, 0] = low
    np.right_shift(low, 63, out=limbs[:, 1])
    return limbs


def _fitted(kind: pa.Decimal128Type, shift: int, value: Value) -> Value:
    """``value`` with ``shift`` digits more, or fewer, after the point. Raises Inexact unless its digits are a
    64-bit integer, before and after."""
    if isinstance(value, pa.Scalar):
        return _fitted(kind, shift, pa.array([value.as_py()], value.type))[0]
    digits = _small(value)
    if shift > 0:
        digits = _times(digits, 10**shift)
    elif shift < 0:
        digits = _rounded(digits, 10**-shift)
    decimals = with_validity(kind, _limbs(digits), value)
    if kind.precision >= _WIDEST_INTEGER:
        return decimals
    bound = 10**kind.precision
    fits = (digits < bound) & (digits > -bound)
    return decimals if fits.all() else pc.if_else(pa.array(fits), decimals, pa.scalar(None, kind))


def _small(value: pa.Array) -> Ints:
    """The digits of whole numbers and decimals; 0 for NULL."""
    if pa.types.is_integer(value.type):
        digits = numbers(value).astype(np.int64)
    else:
        both = decimal_limbs(value)
        digits = both[:, 0].copy()
        large = (digits >> 63) != both[:, 1]
        if large.any() and pc.any(pc.and_(value.is_valid(), pa.array(large))).as_py():
            raise Inexact
    if value.null_count:
        digits[value.is_null().to_numpy(zero_copy_only=False)] = 0
    return digits


def _times(digits: Ints, factor: int) -> Ints:
    largest = np.iinfo(np.int64).max // factor
    if len(digits) and not -largest <= digits.min() <= digits.max() <= largest:
        raise Inexact
    return digits * factor


def _rounded(digits: Ints, unit: int) -> Ints:
    """Half a unit and more goes away from zero."""
    cut, remainder = np.divmod(digits, unit)
    up = np.where(digits < 0, 2 * remainder > unit, 2 * remainder >= unit)
    return cut + up
