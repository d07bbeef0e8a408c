"""Values as JSON text, as Flink's endpoints write them.

The encoders return text, not Python objects for ``json.dumps``, so that a DECIMAL keeps all its digits.
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
from tidemill.types.java_text import java_double, java_float

Encoder = Callable[[Any], str]
quoted = encode_basestring


def nullable(encode: Encoder) -> Encoder:
    """``encode``, with ``null`` for None."""
    return lambda value: "null" if value is None else encode(value)


@singledispatch
def encoder(kind: t.LogicalType) -> Encoder:
    """A function from a non-null value of ``kind`` to its JSON text: DATE gives ``"2020-01-01"``, INT gives
    ``7``."""
    return str


@encoder.register
def _(kind: t.BooleanType) -> Encoder:
    return lambda value: "true" if value else "false"


@encoder.register
def _(kind: t.FloatType) -> Encoder:
    return lambda value: _number(value, java_float(value))


@encoder.register
def _(kind: t.DoubleType) -> Encoder:
    return lambda value: _number(value, repr(value))


def _number(value: float, text: str) -> str:
    return text if math.isfinite(value) else quoted(java_double(value))


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
    """``clock`` without trailing zeros of the fraction: ``12:00:00.500`` is ``12:00:00.5``."""
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
    """An object of a map's entries. Keys are the texts of CAST, since JSON has only text keys."""

    def name(value: Any) -> str:
        return quoted("null" if value is None else values.text(key, value, dt.UTC))

    return lambda value: "{" + ",".join(f"{name(e['key'])}:{value_of(e['value'])}" for e in value) + "}"


@encoder.register
def _(kind: t.RowType) -> Encoder:
    parts = [(f.name, quoted(f.name), nullable(encoder(f.type))) for f in kind.fields]
    return lambda value: "{" + ",".join(f"{q}:{e(value[n])}" for n, q, e in parts) + "}"
