"""From the carriers that Spark and Arrow hold (``types.physical``) to what a user sees.

``python_value`` gives Python objects, ``text`` what Flink's CAST(x AS STRING) gives, ``json_value`` the
result format of ``tidemill run``. One dispatch per direction, over the type.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from functools import singledispatch
from typing import Any

import numpy as np

from tidemill.errors import ExecutionError
from tidemill.session.row import Row
from tidemill.types import logical as t
from tidemill.types.decimals import rounded

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
    """A non-null carrier value as Flink casts it to STRING; TIMESTAMP_LTZ is shown in ``zone``."""
    return str(value)


def nested(kind: t.LogicalType, value: Any, zone: dt.tzinfo) -> str:
    """As ``text``, with NULL spelled out."""
    return "NULL" if value is None else text(kind, value, zone)


@text.register
def _(kind: t.BooleanType, value: Any, zone: dt.tzinfo) -> str:
    return "TRUE" if value else "FALSE"


@text.register
def _(kind: t.FloatType, value: Any, zone: dt.tzinfo) -> str:
    return java_float(value, single=True)


@text.register
def _(kind: t.DoubleType, value: Any, zone: dt.tzinfo) -> str:
    return java_float(value)


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
    """A JSON value: booleans and integers as they are, FLOAT and DOUBLE as numbers or "NaN",
    "Infinity", "-Infinity", NULL as null, all else as ``text``."""
    if value is None or isinstance(kind, _AS_JSON):
        return value
    if isinstance(kind, t.APPROXIMATE_TYPES):
        shown = java_float(value, single=isinstance(kind, t.FloatType))
        return float(shown) if math.isfinite(value) else shown
    return text(kind, value, zone)


def shown_text(kind: t.LogicalType, value: Any, zone: dt.tzinfo) -> str:
    """As ``text``, for a value that the job has rendered: text already, unless it is a plain one."""
    return value if isinstance(value, str) else text(kind, value, zone)


def shown_json(kind: t.LogicalType, value: Any, zone: dt.tzinfo) -> Any:
    """As ``json_value``, for a value that the job has rendered."""
    return value if isinstance(value, str) else json_value(kind, value, zone)


def _timestamp(value: dt.datetime, precision: int) -> str:
    clock = (
        f"{value.year:04d}-{value.month:02d}-{value.day:02d} "
        f"{value.hour:02d}:{value.minute:02d}:{value.second:02d}"
    )
    fraction = f"{value.microsecond:06d}000"[:precision]
    return f"{clock}.{fraction}" if fraction else clock


def java_float(value: float, *, single: bool = False) -> str:
    """Java's Double.toString / Float.toString: shortest digits, exponent outside [1e-3, 1e7)."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if value == 0:
        return f"{sign}0.0"
    digits, exponent = _shortest(abs(value), single)
    if -3 <= exponent < 7:
        return sign + _plain(digits, exponent)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _shortest(value: float, single: bool) -> tuple[str, int]:
    """Shortest decimal digits that read back as ``value``, and the exponent of the first."""
    shortest = str(np.float32(value)) if single else repr(value)
    sign_digits = Decimal(shortest).normalize().as_tuple()
    digits = "".join(map(str, sign_digits.digits))
    assert isinstance(sign_digits.exponent, int)
    return digits, len(digits) - 1 + sign_digits.exponent


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    return f"{whole}.{digits[exponent + 1 :] or '0'}"
