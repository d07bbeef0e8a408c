"""Kernels of integers and floating numbers: arithmetic and casts, as Java has them.

Integers wrap around and divide towards zero. A zero divisor is an error, which the JVM reports. Floating
numbers follow IEEE 754. A floating number as an integer is cut, NaN is 0, and what is too large is the
largest integer.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.functions.arrays import decimals, times
from tidemill.functions.arrays.api import ArrayCall, Entry, Inexact, Kernel, Value, passed_on
from tidemill.functions.arrays.buffers import numbers, text_bytes, with_validity
from tidemill.types import logical as t
from tidemill.types.physical import arrow_type

_EXACT_POWER = 22
"""The largest power of ten that a double has exactly."""
_OF_NUMBERS = np.isin(np.arange(256), list(b"0123456789.-"))
"""By byte whether plain numbers have it."""
root: Kernel = pc.sqrt
_WHOLE: dict[str, Kernel] = {"floor": pc.floor, "ceil": pc.ceil}
_WRAPPING: dict[str, Kernel] = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}


def arithmetic(operator: str) -> Entry:
    """+, - and *, of numbers and of times."""

    def entry(call: ArrayCall) -> Kernel | None:
        if _alike(call) and isinstance(call.result, (*t.INTEGER_TYPES, *t.APPROXIMATE_TYPES)):
            return _WRAPPING[operator]
        return times.shifted(operator, call) or decimals.arithmetic(operator, call)

    return entry


def quotient(call: ArrayCall) -> Kernel | None:
    if _alike(call) and isinstance(call.result, t.DoubleType):
        return _ratio
    if _alike(call) and isinstance(call.result, t.INTEGER_TYPES):
        return _divided
    return None


def remainder(call: ArrayCall) -> Kernel | None:
    if not all(isinstance(k, t.INTEGER_TYPES) for k in call.arg_types):
        return None
    return partial(_remainder, arrow_type(call.result))


def negated(call: ArrayCall) -> Kernel | None:
    kind = call.result
    plain = isinstance(kind, (*t.INTEGER_TYPES, *t.APPROXIMATE_TYPES, t.DecimalType))
    return pc.negate if plain else None


def absolute(call: ArrayCall) -> Kernel | None:
    """ABS; of the least integer it is the least integer."""
    plain = isinstance(call.result, (*t.INTEGER_TYPES, *t.APPROXIMATE_TYPES, t.DecimalType))
    return pc.abs if plain else None


def rounded(call: ArrayCall) -> Kernel | None:
    """ROUND of a whole number or a decimal to a constant number of digits after the point."""
    kind, digits = call.arg_types[0], call.literals[1] if len(call.literals) == 2 else 0
    if not isinstance(kind, t.EXACT_TYPES) or not isinstance(digits, int) or digits < 0:
        return None
    same = kind.with_nullable(True) == call.result.with_nullable(True)
    kernel = passed_on if same else cast(kind, call.result)
    return None if kernel is None else partial(_of_first, kernel)


def cast(source: t.LogicalType, target: t.LogicalType) -> Kernel | None:
    """The kernel of CAST to a number, of a number or a text; None for others, and where a number may not fit
    into a decimal."""
    if isinstance(source, t.CHARACTER_TYPES) and isinstance(target, (*t.EXACT_TYPES, *t.APPROXIMATE_TYPES)):
        return partial(_parsed, arrow_type(target))
    if isinstance(target, t.DecimalType):
        return decimals.cast(source, target)
    kind = arrow_type(target)
    if isinstance(source, t.DecimalType) and isinstance(target, t.DoubleType):
        return partial(decimals.as_double, 10**source.scale) if source.scale <= _EXACT_POWER else None
    if isinstance(source, t.APPROXIMATE_TYPES) and isinstance(target, t.INTEGER_TYPES):
        return partial(_cut, kind)
    plain = isinstance(source, (*t.INTEGER_TYPES, *t.APPROXIMATE_TYPES))
    if plain and isinstance(target, (*t.INTEGER_TYPES, *t.APPROXIMATE_TYPES)):
        return partial(_cast, kind)
    return None


def whole(function: str, of_times: Entry = lambda _: None) -> Entry:
    """FLOOR and CEIL (``function``: floor, ceil) of a number, or what ``of_times`` has."""

    def entry(call: ArrayCall) -> Kernel | None:
        kind = call.arg_types[0]
        if isinstance(kind, t.INTEGER_TYPES):
            return passed_on
        return _WHOLE[function] if isinstance(kind, t.APPROXIMATE_TYPES) else of_times(call)

    return entry


def _of_first(kernel: Kernel, value: Value, *_: Value) -> Value:
    return kernel(value)


def _alike(call: ArrayCall) -> bool:
    """Whether the arguments have the type of the result."""
    return all(type(k) is type(call.result) for k in call.arg_types)


def _cast(kind: pa.DataType, value: Value) -> Value:
    return pc.cast(value, kind, safe=False)


def _parsed(kind: pa.DataType, text: Value) -> Value:
    """Numbers of digits, a minus and a point, which Arrow reads as Java does. Raises Inexact for others, and
    if a digit would be lost."""
    if isinstance(text, pa.Scalar):
        return _parsed(kind, pa.array([text.as_py()], text.type))[0]
    offsets, data = text_bytes(text)
    if not _OF_NUMBERS[data[offsets[0] : offsets[-1]]].all():
        raise Inexact
    if pa.types.is_decimal(kind) and np.diff(offsets).max(initial=0) + kind.scale > t.MAX_DECIMAL_PRECISION:
        raise Inexact  # Arrow does not see that so many digits overflow
    try:
        return pc.cast(text, kind)
    except pa.ArrowInvalid:
        raise Inexact from None


def _ratio(a: Value, b: Value) -> Value:
    return pc.divide(a, b)


def _divided(a: Value, b: Value) -> Value:
    one, minus = pa.scalar(1, b.type), pa.scalar(-1, b.type)
    divisor = _nonzero(a, b)
    # Arrow has 0 for the least integer by -1, Java the least integer.
    opposite = pc.equal(divisor, minus)
    return pc.if_else(opposite, pc.negate(a), pc.divide(a, pc.if_else(opposite, one, divisor)))


def _remainder(kind: pa.DataType, a: Value, b: Value) -> Value:
    a, b = a.cast(pa.int64()), b.cast(pa.int64())
    divisor = _nonzero(a, b)
    if isinstance(divisor, pa.Array) or divisor.as_py() == -1:
        divisor = pc.if_else(pc.equal(divisor, -1), pa.scalar(1, pa.int64()), divisor)
    return pc.subtract(a, pc.multiply(pc.divide(a, divisor), divisor)).cast(kind)


def _nonzero(a: Value, b: Value) -> Value:
    """``b`` without zeros. Raises Inexact if a value is divided by zero."""
    zero = pc.equal(b, pa.scalar(0, b.type))
    fails = pc.fill_null(pc.and_(zero, pc.is_valid(a)), False)
    if pc.any(fails).as_py() if isinstance(fails, pa.Array) else fails.as_py():
        raise Inexact
    return pc.if_else(zero, pa.scalar(1, b.type), b) if isinstance(b, pa.Array) else b


def _cut(kind: pa.DataType, value: Value) -> Value:
    """To SMALLINT and TINYINT by way of INT, which wraps."""
    if isinstance(value, pa.Scalar):
        return _cut(kind, pa.array([value.as_py()], value.type))[0]
    wide = np.int64 if kind == pa.int64() else np.int32
    bounds, doubles = np.iinfo(wide), numbers(value).astype(np.float64, copy=False)
    # The largest integer has no double: what reaches its successor is it.
    whole = np.nan_to_num(doubles, nan=0.0, posinf=np.inf, neginf=-np.inf)
    inside = (whole > float(bounds.min)) & (whole < float(bounds.max))
    truncated = np.where(inside, whole, 0).astype(wide)
    truncated[~inside & (whole > 0)] = bounds.max
    truncated[~inside & (whole < 0)] = bounds.min
    return with_validity(kind, truncated.astype(kind.to_pandas_dtype()), value)
