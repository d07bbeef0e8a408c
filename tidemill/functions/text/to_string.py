"""Values as Java's toString gives them: the connector ``print``."""

from __future__ import annotations

import datetime as dt

from tidemill.functions.text import times
from tidemill.functions.text.numbers import java_double, java_float
from tidemill.functions.text.style import Style, Write, for_types, or_null
from tidemill.types import logical as t


def to_string(kind: t.LogicalType) -> Write:
    """A function from a carrier of ``kind`` to its text; NULL is ``null``."""
    return or_null(kind, _STYLE)


def _date_time(value: dt.datetime) -> str:
    """LocalDateTime.toString, but seconds are always there."""
    micros = value.microsecond
    return times.timestamp(value, (3 if micros % 1000 == 0 else 6) if micros else 0, "T")


def _signed(data: bytes) -> str:
    return "[" + ", ".join(str(b - 256 if b > 127 else b) for b in data) + "]"


_STYLE = Style(
    null="null",
    row=("+I[", "]"),
    scalars={
        **for_types((t.BooleanType,), lambda value: "true" if value else "false"),
        **for_types((t.FloatType,), java_float),
        **for_types((t.DoubleType,), java_double),
        **for_types((t.DecimalType,), lambda value: format(value, "f")),
        **for_types((t.TimestampType,), _date_time),
        **for_types((t.LocalZonedTimestampType,), lambda value: _date_time(times.local(value, dt.UTC)) + "Z"),
        **for_types((t.TimeType,), lambda value: times.clock(value, 3 if value % 1000 else 0)),
        **for_types(t.BINARY_TYPES, _signed),
    },
)
