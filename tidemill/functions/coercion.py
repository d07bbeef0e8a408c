"""Which types widen to which, as Flink's planner finds it: two rules that differ in a few pairs.

``common_type`` (operators, CASE, IF, set operations, constructors): of FLOAT and DOUBLE the first one,
DECIMAL with FLOAT is DOUBLE, CHARs of different lengths are VARCHAR. ``widest`` (COALESCE, GREATEST,
comparison): FLOAT with DOUBLE is DOUBLE, DECIMAL before FLOAT is FLOAT, TIMESTAMP with TIMESTAMP_LTZ is
the latter. The common type is nullable if any input is. No common type is None, never a guess.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.types import logical as t

INTEGER_DIGITS: dict[type[t.LogicalType], int] = {
    t.TinyIntType: 3,
    t.SmallIntType: 5,
    t.IntType: 10,
    t.BigIntType: 19,
}


def common_type(types: Sequence[t.LogicalType]) -> t.LogicalType | None:
    """The least restrictive type that holds values of all ``types``; None if there is none."""
    nullable = any(k.nullable or isinstance(k, t.NullType) for k in types)
    typed = [k for k in types if not isinstance(k, t.NullType)]
    if not typed:
        return t.NullType() if types else None
    common: t.LogicalType | None = typed[0]
    for kind in typed[1:]:
        if common is None:
            return None
        common = _pair(common, kind)
    return None if common is None else common.with_nullable(nullable)


def widest(types: Sequence[t.LogicalType]) -> t.LogicalType | None:
    """The common type by the rule of functions that take any types; None if there is none."""
    nullable = any(k.nullable or isinstance(k, t.NullType) for k in types)
    typed = [k for k in types if not isinstance(k, t.NullType)]
    kinds = {type(k) for k in typed}
    if kinds & {t.FloatType} and kinds & {t.DecimalType} and t.DoubleType not in kinds:
        first = next(k for k in typed if isinstance(k, t.FloatType | t.DecimalType))
        wide = t.DOUBLE if isinstance(first, t.FloatType) else t.FloatType()
        return wide.with_nullable(nullable)
    if kinds <= {*t.NUMERIC_TYPES} and t.DoubleType in kinds:
        return t.DoubleType(nullable=nullable)
    if kinds == {t.TimestampType, t.LocalZonedTimestampType}:
        stamps = (k for k in typed if isinstance(k, t.TimestampType | t.LocalZonedTimestampType))
        precision = max(k.precision for k in stamps)
        return t.LocalZonedTimestampType(precision=precision, nullable=nullable)
    return common_type(types)


def _pair(a: t.LogicalType, b: t.LogicalType) -> t.LogicalType | None:
    if a.with_nullable(True) == b.with_nullable(True):
        return a
    for family, widen in _FAMILIES:
        if isinstance(a, family) and isinstance(b, family):
            return widen(a, b)
    return None


def as_decimal(kind: t.LogicalType) -> t.DecimalType:
    """The decimal that holds all values of an exact numeric type."""
    if isinstance(kind, t.DecimalType):
        return kind
    return t.DecimalType(precision=INTEGER_DIGITS[type(kind)], scale=0, nullable=kind.nullable)


def _numeric(a: t.LogicalType, b: t.LogicalType) -> t.LogicalType:
    if isinstance(a, t.APPROXIMATE_TYPES) or isinstance(b, t.APPROXIMATE_TYPES):
        return _approximate(a, b)
    if isinstance(a, t.DecimalType) or isinstance(b, t.DecimalType):
        return _decimal(as_decimal(a), as_decimal(b))
    return max(a, b, key=lambda k: INTEGER_DIGITS[type(k)])


def _approximate(a: t.LogicalType, b: t.LogicalType) -> t.LogicalType:
    if isinstance(a, t.DecimalType) or isinstance(b, t.DecimalType):
        return t.DOUBLE
    return a if isinstance(a, t.APPROXIMATE_TYPES) else b


def _decimal(a: t.DecimalType, b: t.DecimalType) -> t.DecimalType:
    scale = max(a.scale, b.scale)
    whole = max(a.precision - a.scale, b.precision - b.scale)
    scale = max(0, min(scale, t.MAX_DECIMAL_PRECISION - whole))
    return t.DecimalType(precision=min(whole + scale, t.MAX_DECIMAL_PRECISION), scale=scale)


def _character(a: t.LogicalType, b: t.LogicalType) -> t.LogicalType:
    assert isinstance(a, t.LengthType)
    assert isinstance(b, t.LengthType)
    length = max(a.length, b.length)
    return t.VarCharType(length=length)


def _binary(a: t.LogicalType, b: t.LogicalType) -> t.LogicalType:
    assert isinstance(a, t.LengthType)
    assert isinstance(b, t.LengthType)
    length = max(a.length, b.length)
    return t.VarBinaryType(length=length)


def _timestamp(a: t.LogicalType, b: t.LogicalType) -> t.LogicalType:
    """Of equal precision the first, else the second one's kind with the larger precision."""
    assert isinstance(a, t.TimestampType | t.LocalZonedTimestampType)
    assert isinstance(b, t.TimestampType | t.LocalZonedTimestampType)
    kind = a if a.precision == b.precision or type(a) is type(b) else b
    return _stamp(type(kind), max(a.precision, b.precision))


def _stamp(kind: type[t.LogicalType], precision: int) -> t.LogicalType:
    if kind is t.LocalZonedTimestampType:
        return t.LocalZonedTimestampType(precision=precision)
    return t.TimestampType(precision=precision)


def _time(a: t.LogicalType, b: t.LogicalType) -> t.LogicalType:
    assert isinstance(a, t.TimeType)
    assert isinstance(b, t.TimeType)
    return t.TimeType(precision=max(a.precision, b.precision))


def _same(a: t.LogicalType, _: t.LogicalType) -> t.LogicalType:
    return a


def _array(a: t.LogicalType, b: t.LogicalType) -> t.LogicalType | None:
    assert isinstance(a, t.ArrayType)
    assert isinstance(b, t.ArrayType)
    element = common_type((a.element, b.element))
    return None if element is None else t.ArrayType(element=element)


def _map(a: t.LogicalType, b: t.LogicalType) -> t.LogicalType | None:
    assert isinstance(a, t.MapType)
    assert isinstance(b, t.MapType)
    key, value = common_type((a.key, b.key)), common_type((a.value, b.value))
    return None if key is None or value is None else t.MapType(key=key, value=value)


def _multiset(a: t.LogicalType, b: t.LogicalType) -> t.LogicalType | None:
    assert isinstance(a, t.MultisetType)
    assert isinstance(b, t.MultisetType)
    element = common_type((a.element, b.element))
    return None if element is None else t.MultisetType(element=element)


def _row(a: t.LogicalType, b: t.LogicalType) -> t.LogicalType | None:
    assert isinstance(a, t.RowType)
    assert isinstance(b, t.RowType)
    if len(a.fields) != len(b.fields):
        return None
    fields = []
    for left, right in zip(a.fields, b.fields, strict=True):
        kind = common_type((left.type, right.type))
        if kind is None:
            return None
        fields.append(t.Field(left.name, kind))
    return t.RowType(fields=tuple(fields))


_FAMILIES = (
    (t.NUMERIC_TYPES, _numeric),
    (t.CHARACTER_TYPES, _character),
    (t.BINARY_TYPES, _binary),
    ((t.DateType,), _same),
    (t.TIMESTAMP_TYPES, _timestamp),
    ((t.TimeType,), _time),
    ((t.YearMonthIntervalType,), _same),
    ((t.DayTimeIntervalType,), _same),
    ((t.ArrayType,), _array),
    ((t.MapType,), _map),
    ((t.MultisetType,), _multiset),
    ((t.RowType,), _row),
)


_IMPLICIT: tuple[tuple[tuple[type[t.LogicalType], ...], tuple[type[t.LogicalType], ...]], ...] = (
    ((t.NullType,), (t.LogicalType,)),
    ((t.TinyIntType,), t.NUMERIC_TYPES),
    ((t.SmallIntType,), (t.SmallIntType, t.IntType, t.BigIntType, t.DecimalType, *t.APPROXIMATE_TYPES)),
    ((t.IntType,), (t.IntType, t.BigIntType, t.DecimalType, *t.APPROXIMATE_TYPES)),
    ((t.BigIntType,), (t.BigIntType, t.DecimalType, *t.APPROXIMATE_TYPES)),
    ((t.DecimalType,), (t.DecimalType, *t.APPROXIMATE_TYPES)),
    ((t.FloatType,), (t.FloatType, t.DoubleType, t.DecimalType)),
    ((t.DoubleType,), (t.DoubleType, t.DecimalType)),
    ((t.CharType,), t.CHARACTER_TYPES),
    ((t.VarCharType,), (t.VarCharType,)),
    ((t.BinaryType,), t.BINARY_TYPES),
    ((t.VarBinaryType,), (t.VarBinaryType,)),
    ((t.DateType,), (t.DateType,)),
    ((t.TimeType,), (t.TimeType,)),
    ((t.TimestampType,), (t.DateType, t.TimeType, *t.TIMESTAMP_TYPES)),
    ((t.LocalZonedTimestampType,), t.TIMESTAMP_TYPES),
    ((t.YearMonthIntervalType,), (t.YearMonthIntervalType,)),
    ((t.DayTimeIntervalType,), (t.DayTimeIntervalType,)),
    ((t.BooleanType,), (t.BooleanType,)),
)


def can_cast_implicitly(source: t.LogicalType, target: t.LogicalType) -> bool:
    """Whether a value of ``source`` may go into a column of ``target`` without CAST (Flink's sinks)."""
    if any(isinstance(source, of) and isinstance(target, to) for of, to in _IMPLICIT):
        return True
    of, to = _children(source), _children(target)
    return (
        type(source) is type(target)
        and bool(of)
        and len(of) == len(to)
        and all(map(can_cast_implicitly, of, to))
    )


def _children(kind: t.LogicalType) -> tuple[t.LogicalType, ...]:
    match kind:
        case t.ArrayType() | t.MultisetType():
            return (kind.element,)
        case t.MapType():
            return (kind.key, kind.value)
        case t.RowType():
            return tuple(f.type for f in kind.fields)
    return ()
