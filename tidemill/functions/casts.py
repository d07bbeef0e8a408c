"""CAST: which pairs of types convert, and the Spark SQL text that converts as Flink does.

One table maps (family of the source, family of the target) to a converter; a pair that is not in the
table cannot be cast. Types of one carrier and one meaning cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import product

from tidemill.functions import casts_datetime as dt
from tidemill.functions import casts_nested as nested
from tidemill.functions import casts_numeric as num
from tidemill.functions.arrays import numeric, times
from tidemill.functions.arrays import text as text_arrays
from tidemill.functions.arrays.api import Kernel, passed_on
from tidemill.functions.cast_step import CastStep
from tidemill.functions.coercion import can_cast_implicitly, common_type
from tidemill.functions.text import cast_sql as text
from tidemill.types import logical as t
from tidemill.types.physical import spark_type

__all__ = ["can_cast", "can_cast_implicitly", "cast_kernel", "cast_sql", "common_type"]

Converter = Callable[[CastStep], str]
NestedConverter = Callable[[CastStep, nested.Caster], str]
Pair = tuple[type[t.LogicalType], type[t.LogicalType]]

INTEGERS = t.INTEGER_TYPES
FLOATS = t.APPROXIMATE_TYPES
TEXTS = t.CHARACTER_TYPES
BINARIES = t.BINARY_TYPES
STAMPS = t.TIMESTAMP_TYPES


def _pairs(
    sources: Iterable[type[t.LogicalType]], targets: Iterable[type[t.LogicalType]], how: Converter
) -> dict[Pair, Converter]:
    return dict.fromkeys(product(sources, targets), how)


_FLAT: dict[Pair, Converter] = {
    **_pairs((t.BooleanType,), (t.BooleanType,), dt.same),
    **_pairs((t.BooleanType,), (*INTEGERS, *FLOATS), num.plain),
    **_pairs((t.BooleanType,), (t.DecimalType,), num.boolean_to_decimal),
    **_pairs((t.BooleanType,), TEXTS, text.boolean_to_text),
    **_pairs(t.NUMERIC_TYPES, t.NUMERIC_TYPES, num.plain),
    **_pairs(FLOATS, (t.DecimalType,), num.float_to_decimal),
    **_pairs(t.NUMERIC_TYPES, (t.BooleanType,), num.number_to_boolean),
    **_pairs((*INTEGERS, *FLOATS), TEXTS, text.simple_to_text),
    **_pairs((t.DecimalType,), TEXTS, text.decimal_to_text),
    **_pairs(INTEGERS, t.INTERVAL_TYPES, dt.integer_to_interval),
    **_pairs(TEXTS, (t.BooleanType,), num.text_to_boolean),
    **_pairs(TEXTS, INTEGERS, num.text_to_integer),
    **_pairs(TEXTS, FLOATS, num.text_to_float),
    **_pairs(TEXTS, (t.DecimalType,), num.text_to_decimal),
    **_pairs(TEXTS, TEXTS, text.text_to_text),
    **_pairs(TEXTS, BINARIES, text.text_to_binary),
    **_pairs(TEXTS, (t.DateType,), dt.text_to_date),
    **_pairs(TEXTS, (t.TimeType,), dt.text_to_time),
    **_pairs(TEXTS, STAMPS, dt.text_to_timestamp),
    **_pairs(BINARIES, TEXTS, text.binary_to_text),
    **_pairs(BINARIES, BINARIES, text.text_to_text),
    **_pairs((t.DateType,), (t.DateType,), dt.same),
    **_pairs((t.DateType,), TEXTS, text.simple_to_text),
    **_pairs((t.DateType,), STAMPS, dt.date_to_timestamp),
    **_pairs((t.TimeType,), (t.TimeType,), dt.time_to_time),
    **_pairs((t.TimeType,), TEXTS, text.time_to_text),
    **_pairs((t.TimeType,), STAMPS, dt.time_to_timestamp),
    **_pairs(STAMPS, STAMPS, dt.timestamp_to_timestamp),
    **_pairs(STAMPS, TEXTS, text.timestamp_to_text),
    **_pairs(STAMPS, (t.DateType,), dt.timestamp_to_date),
    **_pairs(STAMPS, (t.TimeType,), dt.timestamp_to_time),
    **_pairs((t.YearMonthIntervalType,), (t.YearMonthIntervalType,), dt.same),
    **_pairs((t.DayTimeIntervalType,), (t.DayTimeIntervalType,), dt.same),
    **_pairs((t.YearMonthIntervalType,), TEXTS, text.months_to_text),
    **_pairs((t.DayTimeIntervalType,), TEXTS, text.millis_to_text),
}

_NESTED: dict[Pair, NestedConverter] = {
    (t.ArrayType, t.ArrayType): nested.array_to_array,
    (t.MapType, t.MapType): nested.entries_to_entries,
    (t.MultisetType, t.MultisetType): nested.entries_to_entries,
    (t.RowType, t.RowType): nested.row_to_row,
    **{(t.ArrayType, to): text.array_to_text for to in TEXTS},
    **dict.fromkeys(product((t.MapType, t.MultisetType), TEXTS), text.entries_to_text),
    **{(t.RowType, to): text.row_to_text for to in TEXTS},
}


def can_cast(source: t.LogicalType, target: t.LogicalType) -> bool:
    """Whether CAST(source AS target) is valid; NULL casts to anything."""
    pair = (type(source), type(target))
    if isinstance(source, t.NullType) or pair in _FLAT:
        return True
    if pair not in _NESTED:
        return False
    if isinstance(target, t.LengthType):
        return all(can_cast(part, t.STRING) for part in _parts(source))
    of, to = _parts(source), _parts(target)
    return len(of) == len(to) and all(map(can_cast, of, to))


def cast_sql(sql: str, source: t.LogicalType, target: t.LogicalType, *, safe: bool, zone: str) -> str:
    """Spark SQL text of CAST (``safe``: TRY_CAST) of ``sql``, which carries ``source``.

    Raises ValueError for a pair that ``can_cast`` refuses.
    """
    if isinstance(source, t.NullType):
        return f"CAST(NULL AS {spark_type(target)})"
    if source.with_nullable(True) == target.with_nullable(True):
        return sql
    step = CastStep(sql=sql, source=source, target=target, safe=safe, zone=zone)
    pair = (type(source), type(target))
    if pair in _FLAT:
        return _FLAT[pair](step)
    if pair in _NESTED:
        return _NESTED[pair](step, partial(_inner, safe, zone))
    raise ValueError(f"Cast function cannot convert value of type {source} to type {target}")


def cast_kernel(source: t.LogicalType, target: t.LogicalType, zone: str) -> Kernel | None:
    """The kernel of CAST and TRY_CAST for values that cannot fail; None for other types."""
    if source.with_nullable(True) == target.with_nullable(True):
        return passed_on
    return (
        numeric.cast(source, target) or text_arrays.cast(source, target) or times.cast(source, target, zone)
    )


def _inner(safe: bool, zone: str, sql: str, source: t.LogicalType, target: t.LogicalType) -> str:
    return cast_sql(sql, source, target, safe=safe, zone=zone)


def _parts(kind: t.LogicalType) -> tuple[t.LogicalType, ...]:
    if isinstance(kind, t.ArrayType):
        return (kind.element,)
    if isinstance(kind, t.RowType):
        return tuple(f.type for f in kind.fields)
    return nested.entry_types(kind)
