"""Constants as Spark SQL text, exact in value and in carrier type.

Text is quoted for Spark's default string rules (backslash escapes on); characters outside printable
ASCII are left as they are except control characters, which are written as escapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import singledispatch
from typing import Any

from tidemill.types import logical as t
from tidemill.types.physical import spark_type

_ESCAPES = {
    "\\": "\\\\",
    "'": "\\'",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\0": "\\u0000",
    "\x1a": "\\u001A",
    # Spark would take ${name} for a variable, even inside quotes.
    "$": "\\u0024",
}
_SPECIAL_FLOATS = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}


def string_literal(value: str) -> str:
    """A Spark SQL string literal."""
    return "'" + "".join(_ESCAPES.get(c, c) for c in value) + "'"


def null_literal(kind: t.LogicalType) -> str:
    return "NULL" if isinstance(kind, t.NullType) else f"CAST(NULL AS {spark_type(kind)})"


def literal_sql(value: object, kind: t.LogicalType) -> str:
    """The Spark SQL text of a plan Literal's value; ValueError if the value is not of the type."""
    if value is None:
        return null_literal(kind)
    return _constant(kind, value)


@singledispatch
def _constant(kind: t.LogicalType, value: object) -> str:
    raise ValueError(f"no literal of type {kind}")


def _register(convert: Callable[[object], str], *kinds: type[t.LogicalType]) -> None:
    for kind in kinds:
        _constant.register(kind, lambda _, value: convert(value))


def _integer(suffix: str) -> Callable[[object], str]:
    # The smallest BIGINT has no literal of its own sign: the digits alone overflow.
    def text(value: object) -> str:
        if value == -(2**63):
            return "(-9223372036854775807L - 1L)"
        return f"({value}{suffix})" if isinstance(value, int) and value < 0 else f"{value}{suffix}"

    return text


def _floating(target: str) -> Callable[[Any], str]:
    def text(value: Any) -> str:
        digits = repr(float(value))
        return f"CAST('{_SPECIAL_FLOATS.get(digits, digits)}' AS {target})"

    return text


def _date(value: object) -> str:
    assert isinstance(value, date)
    return f"DATE'{value.isoformat()}'"


def _timestamp(value: object) -> str:
    assert isinstance(value, datetime)
    return f"TIMESTAMP_NTZ'{value.isoformat(' ')}'"


def _instant(value: object) -> str:
    assert isinstance(value, datetime)
    utc = value.astimezone(UTC)
    delta = utc - datetime(1970, 1, 1, tzinfo=UTC)
    micros = (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
    return f"timestamp_micros({_integer('L')(micros)})"


def _bytes(value: object) -> str:
    assert isinstance(value, bytes)
    return f"X'{value.hex().upper()}'"


_register(lambda v: "TRUE" if v else "FALSE", t.BooleanType)
_register(_integer("Y"), t.TinyIntType)
_register(_integer("S"), t.SmallIntType)
_register(_integer("L"), t.BigIntType, t.DayTimeIntervalType)
_register(_integer(""), t.IntType, t.TimeType, t.YearMonthIntervalType)
_register(_floating("DOUBLE"), t.DoubleType)
_register(_floating("FLOAT"), t.FloatType)
_register(lambda v: string_literal(str(v)), t.CharType, t.VarCharType)
_register(_bytes, t.BinaryType, t.VarBinaryType)
_register(_date, t.DateType)
_register(_timestamp, t.TimestampType)
_register(_instant, t.LocalZonedTimestampType)


@_constant.register
def _(kind: t.DecimalType, value: object) -> str:
    return f"CAST('{Decimal(str(value)):f}' AS {spark_type(kind)})"


@_constant.register
def _(kind: t.ArrayType, value: object) -> str:
    assert isinstance(value, list | tuple)
    return f"CAST(array({', '.join(literal_sql(v, kind.element) for v in value)}) AS {spark_type(kind)})"


@_constant.register
def _(kind: t.MapType, value: object) -> str:
    assert isinstance(value, Mapping)
    entries = (
        f"named_struct('key', {literal_sql(k, kind.key)}, 'value', {literal_sql(v, kind.value)})"
        for k, v in value.items()
    )
    return f"sort_array(CAST(array({', '.join(entries)}) AS {spark_type(kind)}))"


@_constant.register
def _(kind: t.RowType, value: object) -> str:
    assert isinstance(value, tuple)
    parts = (
        f"{string_literal(f.name)}, {literal_sql(v, f.type)}" for f, v in zip(kind.fields, value, strict=True)
    )
    return f"named_struct({', '.join(parts)})"
