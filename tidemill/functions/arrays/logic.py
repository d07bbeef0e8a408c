"""Kernels of comparison, three-valued logic, NULL tests and choice.

Texts are compared by their bytes. NaN is not equal to anything, itself included, and -0 equals 0, as IEEE 754
and Arrow have it.
"""

from __future__ import annotations

from functools import partial, reduce

import pyarrow as pa
import pyarrow.compute as pc

from tidemill.functions.arrays.api import ArrayCall, Entry, Inexact, Kernel, Value
from tidemill.functions.arrays.decimals import as_decimals
from tidemill.functions.coercion import as_decimal
from tidemill.types import logical as t
from tidemill.types.physical import arrow_type

_FUNCTIONS: dict[str, Kernel] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    ">": pc.greater,
    "<=": pc.less_equal,
    ">=": pc.greater_equal,
}
_ORDERED = (
    t.DateType,
    t.TimeType,
    *t.TIMESTAMP_TYPES,
    *t.INTERVAL_TYPES,
    *t.APPROXIMATE_TYPES,
)


def compare(operator: str) -> Entry:
    """=, <>, <, >, <=, >= of two values."""

    def entry(call: ArrayCall) -> Kernel | None:
        kind = _common(call.arg_types)
        equality = operator in ("=", "<>")
        unordered = isinstance(call.arg_types[0], t.BooleanType) and not equality
        return None if kind is None or unordered else partial(_compared, operator, kind)

    return entry


def between(call: ArrayCall) -> Kernel | None:
    """``BETWEEN low AND high``, not SYMMETRIC."""
    kind = _common(call.arg_types)
    if kind is None or kind == pa.bool_() or call.options.get("symmetric"):
        return None
    return partial(_between, kind)


def is_in(call: ArrayCall) -> Kernel | None:
    """IN a list of constants without NULL, of whole numbers or texts."""
    kind = _common(call.arg_types)
    if None in call.literals[1:] or kind not in (pa.int64(), pa.string()):
        return None
    return partial(_is_in, kind, pa.array(call.literals[1:], kind))


def coalesce(call: ArrayCall) -> Kernel | None:
    """The first value that is not NULL, of flat types."""
    return None if isinstance(call.result, t.COLLECTION_TYPES) else pc.coalesce


def extreme(function: str) -> Entry:
    """GREATEST and LEAST, NULL if an argument is. Not of floating numbers: Java orders NaN and the two
    zeros."""

    def entry(call: ArrayCall) -> Kernel | None:
        kind = _common(call.arg_types)
        if kind is None or pa.types.is_floating(kind) or kind == pa.bool_():
            return None
        return partial(_extreme, function, pa.int64() if pa.types.is_timestamp(kind) else kind)

    return entry


def distinct(negated: bool) -> Entry:
    """IS [NOT] DISTINCT FROM: NULL is not distinct from NULL. Not of floating numbers, with their NaN."""

    def entry(call: ArrayCall) -> Kernel | None:
        kind = _common(call.arg_types)
        if kind is None or pa.types.is_floating(kind):
            return None
        return partial(_distinct, negated, kind)

    return entry


def without_null(column: pa.Array) -> pa.Array:
    """The kernel of a column that must not be NULL. The JVM says which column is."""
    if column.null_count:
        raise Inexact
    return column


def nullif(call: ArrayCall) -> Kernel | None:
    """NULL if the arguments are equal, else the first."""
    kind = _common(call.arg_types)
    return None if kind is None else partial(_nullif, kind)


def conjunction(*conditions: Value) -> Value:
    return reduce(pc.and_kleene, conditions)


def disjunction(*conditions: Value) -> Value:
    return reduce(pc.or_kleene, conditions)


def negation(condition: Value) -> Value:
    return pc.invert(condition)


def is_true(condition: Value) -> Value:
    return pc.fill_null(condition, False)


def is_not_true(condition: Value) -> Value:
    return pc.invert(is_true(condition))


def is_false(condition: Value) -> Value:
    return pc.invert(is_not_false(condition))


def is_not_false(condition: Value) -> Value:
    return pc.fill_null(condition, True)


def is_null(value: Value) -> Value:
    return pc.is_null(value)


def is_not_null(value: Value) -> Value:
    return pc.is_valid(value)


def _common(types: tuple[t.LogicalType, ...]) -> pa.DataType | None:
    """The Arrow type in which values of ``types`` are compared; None for other types."""
    if all(isinstance(k, t.INTEGER_TYPES) for k in types):
        return pa.int64()
    if all(isinstance(k, t.EXACT_TYPES) for k in types):
        decimals = tuple(map(as_decimal, types))
        scale = max(d.scale for d in decimals)
        precision = max(d.precision - d.scale for d in decimals) + scale
        return pa.decimal128(precision, scale) if precision <= t.MAX_DECIMAL_PRECISION else None
    if all(isinstance(k, t.CHARACTER_TYPES) for k in types):
        return pa.string()
    if len({type(k) for k in types}) == 1 and isinstance(types[0], (*_ORDERED, t.BooleanType)):
        return arrow_type(types[0])
    return None


def _as(kind: pa.DataType, value: Value) -> Value:
    if value.type == kind:
        return value
    return as_decimals(kind, value) if pa.types.is_decimal(kind) else value.cast(kind)


def _compared(operator: str, kind: pa.DataType, a: Value, b: Value) -> Value:
    return _FUNCTIONS[operator](_as(kind, a), _as(kind, b))


def _between(kind: pa.DataType, value: Value, low: Value, high: Value) -> Value:
    value, low, high = (_as(kind, v) for v in (value, low, high))
    return pc.and_kleene(pc.greater_equal(value, low), pc.less_equal(value, high))


def _is_in(kind: pa.DataType, members: pa.Array, value: Value, *_: Value) -> Value:
    is_member = pc.is_in(_as(kind, value), value_set=members)
    return pc.if_else(pc.is_valid(value), is_member, pa.scalar(None, pa.bool_()))


def _extreme(function: str, kind: pa.DataType, *values: Value) -> Value:
    """``kind``: in which values are compared; Arrow has no extreme of instants."""
    options = pc.ElementWiseAggregateOptions(skip_nulls=False)
    chosen = pc.call_function(function, [_as(kind, value) for value in values], options)
    return chosen.cast(values[0].type)


def _distinct(negated: bool, kind: pa.DataType, a: Value, b: Value) -> Value:
    equal = pc.fill_null(pc.equal(_as(kind, a), _as(kind, b)), False)
    same = pc.or_(equal, pc.and_(pc.is_null(a), pc.is_null(b)))
    return same if negated else pc.invert(same)


def _nullif(kind: pa.DataType, a: Value, b: Value) -> Value:
    same = pc.fill_null(pc.equal(_as(kind, a), _as(kind, b)), False)
    return pc.if_else(same, pa.scalar(None, a.type), a)
