"""Converts carriers, the values that Spark and Arrow hold (``types.physical``), for users.

``python_value`` gives Python objects, ``json_value`` values of the JSON output of ``tidemill run``.
Texts come from ``functions.text``.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from functools import singledispatch
from typing import Any

from tidemill.errors import ExecutionError
from tidemill.functions.text.cast import cast
from tidemill.session.rows.row import Row
from tidemill.types import logical as t

Convert = Callable[[Any], Any]
ConvertType = Callable[[t.LogicalType, dt.tzinfo], Convert]
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


def json_value(kind: t.LogicalType, zone: dt.tzinfo) -> Convert:
    """A function from a carrier to a JSON value.

    Booleans, integers and NULL are unchanged; FLOAT and DOUBLE are numbers, or "NaN", "Infinity",
    "-Infinity"; all others are the text of CAST(x AS STRING).
    """
    if isinstance(kind, _AS_JSON):
        return lambda value: value
    write = cast(kind, zone)
    if not isinstance(kind, t.APPROXIMATE_TYPES):
        return lambda value: None if value is None else write(value)

    def number(value: Any) -> Any:
        if value is None:
            return None
        return float(write(value)) if math.isfinite(value) else write(value)

    return number


def or_rendered(convert: ConvertType) -> ConvertType:
    """As ``convert``, for values of a job's result, which may be text already."""

    def make(kind: t.LogicalType, zone: dt.tzinfo) -> Convert:
        of_carrier = convert(kind, zone)
        return lambda value: value if isinstance(value, str) else of_carrier(value)

    return make
