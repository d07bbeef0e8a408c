"""Values as JSON text, as Flink's endpoints write them.

The result is text, not Python objects for ``json.dumps``, so that a DECIMAL keeps all its digits.
"""

from __future__ import annotations

import base64
import datetime as dt
import math
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any

from tidemill.functions.text import times
from tidemill.functions.text.cast import cast
from tidemill.functions.text.numbers import java_double, java_float
from tidemill.functions.text.style import Style, Write, for_types, writer
from tidemill.types import logical as t

quoted = encode_basestring


def endpoint_json(kind: t.LogicalType) -> Write:
    """A function from a carrier of ``kind``, not NULL, to its JSON text: ``"2020-01-01"`` of a DATE."""
    return writer(kind, _STYLE)


def _number(value: float, text: str) -> str:
    return text if math.isfinite(value) else quoted(java_double(value))


def _time(kind: t.TimeType) -> Write:
    digits = min(kind.precision, 3)
    return lambda value: f'"{times.shortest(times.clock(value, digits))}"'


def _timestamp(kind: t.TimestampType) -> Write:
    return lambda value: f'"{times.shortest(times.timestamp(value, kind.precision, "T"))}"'


def _instant(kind: t.LocalZonedTimestampType) -> Write:
    def write(value: dt.datetime) -> str:
        return f'"{times.shortest(times.timestamp(times.local(value, dt.UTC), kind.precision, "T"))}Z"'

    return write


def _key(kind: t.LogicalType) -> Write:
    """The text of CAST, since JSON has only text keys."""
    write = cast(kind, dt.UTC)

    def key(value: Any) -> str:
        return quoted("null" if value is None else write(value))

    return key


_STYLE = Style(
    null="null",
    row=("{", "}"),
    comma=",",
    colon=":",
    label=lambda name: f"{quoted(name)}:",
    key=_key,
    scalars={
        **for_types((t.BooleanType,), lambda value: "true" if value else "false"),
        **for_types((t.FloatType,), lambda value: _number(value, java_float(value))),
        **for_types((t.DoubleType,), lambda value: _number(value, repr(value))),
        **for_types((t.DecimalType,), lambda value: format(Decimal(value), "f")),
        **for_types(t.CHARACTER_TYPES, quoted),
        **for_types(t.BINARY_TYPES, lambda value: quoted(base64.b64encode(value).decode("ascii"))),
        **for_types((t.DateType,), lambda value: f'"{value}"'),
        t.TimeType: _time,
        t.TimestampType: _timestamp,
        t.LocalZonedTimestampType: _instant,
    },
)
