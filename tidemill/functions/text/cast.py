"""Values as Flink casts them to STRING."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import partial

from tidemill.functions.text import times
from tidemill.functions.text.numbers import java_double, java_float
from tidemill.functions.text.style import Style, Write, for_types, writer
from tidemill.types import logical as t
from tidemill.types.decimals import rounded


def cast(kind: t.LogicalType, zone: dt.tzinfo) -> Write:
    """A function from a carrier of ``kind``, not NULL, to its text; TIMESTAMP_LTZ is converted to ``zone``.

    Examples: BOOLEAN true is "TRUE", DOUBLE 1e10 is "1.0E10", the array [1, NULL] is "[1, NULL]".
    """
    scalars = {**_SCALARS, t.LocalZonedTimestampType: partial(_instant, zone)}
    return writer(kind, Style(scalars=scalars, null="NULL", row=("(", ")")))


def _decimal(kind: t.DecimalType) -> Write:
    return lambda value: format(rounded(Decimal(value), kind.scale), "f")


def _time(kind: t.TimeType) -> Write:
    digits = min(kind.precision, 3)
    return lambda value: times.clock(value, digits)


def _timestamp(kind: t.TimestampType) -> Write:
    return lambda value: times.timestamp(value, kind.precision)


def _instant(zone: dt.tzinfo, kind: t.LocalZonedTimestampType) -> Write:
    return lambda value: times.timestamp(times.local(value, zone), kind.precision)


_SCALARS = {
    **for_types((t.BooleanType,), lambda value: "TRUE" if value else "FALSE"),
    **for_types((t.FloatType,), java_float),
    **for_types((t.DoubleType,), java_double),
    **for_types(t.BINARY_TYPES, lambda value: f"x'{bytes(value).hex()}'"),
    **for_types((t.YearMonthIntervalType,), times.months),
    **for_types((t.DayTimeIntervalType,), times.days),
    t.DecimalType: _decimal,
    t.TimeType: _time,
    t.TimestampType: _timestamp,
}
