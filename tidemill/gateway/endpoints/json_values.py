"""Values as JSON text, as Flink's endpoints write them.

Text is written straight away: DECIMAL keeps all its digits, which no number of Python's JSON would.
"""

from __future__ import annotations

import base64
import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from functools import singledispatch
from json.encoder import encode_basestring
from typing import Any

from tidemill.session import values
from tidemill.types import logical as t

Encoder = Callable[[Any], str]
quoted = encode_basestring


def nullable(encode: Encoder) -> Encoder:
    """As ``encode``, and ``null``."""
    return lambda value: "null" if value is None else encode(value)


@singledispatch
def encoder(kind: t.LogicalType) -> Encoder:
    """What writes a value of ``kind`` that is not NULL: a number, for integers and intervals."""
    return str


@encoder.register
def _(kind: t.BooleanType) -> Encoder:
    return lambda value: "true" if value else "false"


@encoder.register
def _(kind: t.FloatType) -> Encoder:
    return lambda value: _number(value, values.java_float(value, single=True))


@encoder.register
def _(kind: t.DoubleType) -> Encoder:
    return lambda value: _number(value, repr(value))


def _number(value: float, text: str) -> str:
    return text if math.isfinite(value) else quoted(values.java_float(value))


@encoder.register
def _(kind: t.DecimalType) -> Encoder:
    return lambda value: format(Decimal(value), "f")


@encoder.register(t.CharType)
@encoder.register(t.VarCharType)
def _(kind: t.LogicalType) -> Encoder:
    return quoted


@encoder.register(t.BinaryType)
@encoder.register(t.VarBinaryType)
def _(kind: t.LogicalType) -> Encoder:
    return lambda value: quoted(base64.b64encode(value).decode("ascii"))


@encoder.register
def _(kind: t.DateType) -> Encoder:
    return lambda value: f'"{values.text(kind, value, dt.UTC)}"'


@encoder.register
def _(kind: t.TimeType) -> Encoder:
    return lambda value: f'"{_short(values.text(kind, value, dt.UTC))}"'


@encoder.register
def _(kind: t.TimestampType) -> Encoder:
    return lambda value: f'"{_short(values.text(kind, value, dt.UTC)).replace(" ", "T")}"'


@encoder.register
def _(kind: t.LocalZonedTimestampType) -> Encoder:
    return lambda value: f'"{_short(values.text(kind, value, dt.UTC)).replace(" ", "T")}Z"'


def _short(clock: str) -> str:
    """Without zeros at the end of the fraction."""
    return clock.rstrip("0").rstrip(".") if "." in clock else clock


@encoder.register
def _(kind: t.ArrayType) -> Encoder:
    element = nullable(encoder(kind.element))
    return lambda value: f"[{','.join(map(element, value))}]"


@encoder.register
def _(kind: t.MapType) -> Encoder:
    value_of = nullable(encoder(kind.value))
    return _entries(kind.key, value_of)


@encoder.register
def _(kind: t.MultisetType) -> Encoder:
    return _entries(kind.element, str)


def _entries(key: t.LogicalType, value_of: Encoder) -> Encoder:
    """JSON's keys are text, whatever the map's are."""

    def name(value: Any) -> str:
        return quoted("null" if value is None else values.text(key, value, dt.UTC))

    return lambda value: "{" + ",".join(f"{name(e['key'])}:{value_of(e['value'])}" for e in value) + "}"


@encoder.register
def _(kind: t.RowType) -> Encoder:
    parts = [(f.name, quoted(f.name), nullable(encoder(f.type))) for f in kind.fields]
    return lambda value: "{" + ",".join(f"{q}:{e(value[n])}" for n, q, e in parts) + "}"
