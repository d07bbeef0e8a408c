"""Converts carriers, the values that Spark and Arrow hold (``types.physical``), for users.

``python_value`` gives Python objects. ``text`` gives the text of Flink's CAST(x AS STRING). ``json_value``
gives values of the JSON output of ``tidemill run``. Other conversions to text follow other rules of Flink:

| rule | module |
|---|---|
| Java's texts of FLOAT, DOUBLE and DECIMAL, for all others | ``types.java_text`` |
| columns of the formats ``csv`` and ``json`` | ``connectors.formats.text_rendering`` |
| rows of the connector ``print``: Java's toString | ``connectors.print.rendering`` |
| JSON of the gateway's endpoints | ``gateway.endpoints.json_values`` |
| JSON_ARRAYAGG and JSON_OBJECTAGG | ``operators.aggregates.json_text`` |
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from functools import singledispatch
from typing import Any

from tidemill.errors import ExecutionError
from tidemill.session.row import Row
from tidemill.types import logical as t
from tidemill.types.decimals import rounded
from tidemill.types.java_text import java_double, java_float

_DAY = 86_400_000
_AS_JSON = (t.BooleanType, *t.INTEGER_TYPES)


@singledispatch
def python_value(kind: t.LogicalType, value: Any) -> Any:
    """The Python object for a carrier value of type ``kind``; None stays None."""
    return value


@python_value.register
def _(kind: t.TimeType, value: Any) -> Any:
    if value is None:
        return None
    return (dt.datetime.min + dt.timedelta(milliseconds=value)).time()


@python_value.register
def _(kind: t.DayTimeIntervalType, value: Any) -> Any:
    if value is None:
        return None
    try:
        return dt.timedelta(milliseconds=value)
    except OverflowError:
        raise ExecutionError(
            f"An interval of {value} ms is longer than Python's timedelta can be",
            hint="CAST it to STRING in the query.",
        ) from None


@python_value.register
def _(kind: t.LocalZonedTimestampType, value: Any) -> Any:
    if value is None or value.tzinfo is not None:
        return value
    return value.replace(tzinfo=dt.UTC)


@python_value.register
def _(kind: t.ArrayType, value: Any) -> Any:
    return None if value is None else [python_value(kind.element, v) for v in value]


@python_value.register
def _(kind: t.MapType, value: Any) -> Any:
    if value is None:
        return None
    return {_hashable(python_value(kind.key, e["key"])): python_value(kind.value, e["value"]) for e in value}


@python_value.register
def _(kind: t.MultisetType, value: Any) -> Any:
    if value is None:
        return None
    return {_hashable(python_value(kind.element, e["key"])): e["value"] for e in value}


@python_value.register
def _(kind: t.RowType, value: Any) -> Any:
    if value is None:
        return None
    names = tuple(f.name for f in kind.fields)
    return Row((python_value(f.type, value[f.name]) for f in kind.fields), names)


def _hashable(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_hashable(v) for v in value)
    if isinstance(value, dict):
        return tuple((k, _hashable(v)) for k, v in value.items())
    return value


@singledispatch
def text(kind: t.LogicalType, value: Any, zone: dt.tzinfo) -> str:
    """A non-null carrier value as Flink casts it to STRING; TIMESTAMP_LTZ is converted to ``zone``.

    Examples: BOOLEAN true is "TRUE", DOUBLE 1e10 is "1.0E10", the array [1, NULL] is "[1, NULL]".
    """
    return str(value)


def nested(kind: t.LogicalType, value: Any, zone: dt.tzinfo) -> str:
    """As ``text``; NULL is "NULL"."""
    return "NULL" if value is None else text(kind, value, zone)


@text.register
def _(kind: t.BooleanType, value: Any, zone: dt.tzinfo) -> str:
    return "TRUE" if value else "FALSE"


@text.register
def _(kind: t.FloatType, value: Any, zone: dt.tzinfo) -> str:
    return java_float(value)


@text.register
def _(kind: t.DoubleType, value: Any, zone: dt.tzinfo) -> str:
    return java_double(value)


@text.register
def _(kind: t.DecimalType, value: Any, zone: dt.tzinfo) -> str:
    return format(rounded(Decimal(value), kind.scale), "f")


@text.register(t.BinaryType)
@text.register(t.VarBinaryType)
def _(kind: t.LogicalType, value: Any, zone: dt.tzinfo) -> str:
    return "x'" + bytes(value).hex() + "'"


@text.register
def _(kind: t.DateType, value: Any, zone: dt.tzinfo) -> str:
    return f"{value.year:04d}-{value.month:02d}-{value.day:02d}"


@text.register
def _(kind: t.TimeType, value: Any, zone: dt.tzinfo) -> str:
    seconds, millis = divmod(value, 1000)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    fraction = f"{millis:03d}"[: min(kind.precision, 3)]
    return f"{clock}.{fraction}" if fraction else clock


@text.register
def _(kind: t.TimestampType, value: Any, zone: dt.tzinfo) -> str:
    return _timestamp(value, kind.precision)


@text.register
def _(kind: t.LocalZonedTimestampType, value: Any, zone: dt.tzinfo) -> str:
    instant = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
    try:
        return _timestamp(instant.astimezone(zone), kind.precision)
    except OverflowError:
        raise ExecutionError(
            f"{instant} is outside of the years 1 to 9999 in the session's time zone",
            hint="CAST it to STRING in the query.",
        ) from None


@text.register
def _(kind: t.YearMonthIntervalType, value: Any, zone: dt.tzinfo) -> str:
    years, months = divmod(abs(value), 12)
    return f"{'-' if value < 0 else '+'}{years}-{months:02d}"


@text.register
def _(kind: t.DayTimeIntervalType, value: Any, zone: dt.tzinfo) -> str:
    days, rest = divmod(abs(value), _DAY)
    seconds, millis = divmod(rest, 1000)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{millis:03d}"
    return f"{'-' if value < 0 else '+'}{days} {clock}"


@text.register
def _(kind: t.ArrayType, value: Any, zone: dt.tzinfo) -> str:
    return "[" + ", ".join(nested(kind.element, v, zone) for v in value) + "]"


@text.register
def _(kind: t.MapType, value: Any, zone: dt.tzinfo) -> str:
    entries = (f"{nested(kind.key, e['key'], zone)}={nested(kind.value, e['value'], zone)}" for e in value)
    return "{" + ", ".join(entries) + "}"


@text.register
def _(kind: t.MultisetType, value: Any, zone: dt.tzinfo) -> str:
    return "{" + ", ".join(f"{nested(kind.element, e['key'], zone)}={e['value']}" for e in value) + "}"


@text.register
def _(kind: t.RowType, value: Any, zone: dt.tzinfo) -> str:
    return "(" + ", ".join(nested(f.type, value[f.name], zone) for f in kind.fields) + ")"


def json_value(kind: t.LogicalType, value: Any, zone: dt.tzinfo) -> Any:
    """A JSON value: booleans, integers and NULL are unchanged; FLOAT and DOUBLE are numbers, or "NaN",
    "Infinity", "-Infinity"; all others are ``text``."""
    if value is None or isinstance(kind, _AS_JSON):
        return value
    if isinstance(kind, t.APPROXIMATE_TYPES):
        digits = text(kind, value, zone)
        return float(digits) if math.isfinite(value) else digits
    return text(kind, value, zone)


def shown_text(kind: t.LogicalType, value: Any, zone: dt.tzinfo) -> str:
    """As ``text``, for a value of a job's result, which may be text already."""
    return value if isinstance(value, str) else text(kind, value, zone)


def shown_json(kind: t.LogicalType, value: Any, zone: dt.tzinfo) -> Any:
    """As ``json_value``, for a value of a job's result, which may be text already."""
    return value if isinstance(value, str) else json_value(kind, value, zone)


def _timestamp(value: dt.datetime, precision: int) -> str:
    clock = (
        f"{value.year:04d}-{value.month:02d}-{value.day:02d} "
        f"{value.hour:02d}:{value.minute:02d}:{value.second:02d}"
    )
    fraction = f"{value.microsecond:06d}000"[:precision]
    return f"{clock}.{fraction}" if fraction else clock
