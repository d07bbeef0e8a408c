"""Columns of values as columns of text, as Flink's text formats write them.

Vectorised; values whose spelling is Java's own business (floats out of the middle range, decimals
that end in zeros or are tiny) go through Python once per distinct value. NULL stays NULL. Texts that are not
UTF-8, as Parquet and ORC may hold them, get U+FFFD for what cannot be read.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidemill.connectors.formats.java_text import java_decimal, java_double, java_float
from tidemill.types import logical as t
from tidemill.types.python_values import readable


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderRules:
    """``timestamps``: SQL or ISO-8601. ``plain_decimals``: all digits, no exponent."""

    timestamps: str = "SQL"
    plain_decimals: bool = False


@singledispatch
def render(kind: t.LogicalType, values: pa.Array, rules: RenderRules) -> pa.Array:
    """``values`` of the scalar type ``kind`` as a STRING array."""
    raise TypeError(f"Unsupported type '{kind}' in a text field.")


def by_distinct(values: pa.Array, show: Callable[[Any], str]) -> pa.Array:
    """``show`` applied once per distinct value."""
    encoded = values.dictionary_encode()
    texts = [show(v) for v in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)


def _where(plain: pa.Array, texts: pa.Array, values: pa.Array, show: Callable[[Any], str]) -> pa.Array:
    """``texts`` where ``plain`` says so, else ``show``."""
    if pc.all(pc.fill_null(plain, True)).as_py() is not False:
        return texts
    odd = pc.if_else(pc.fill_null(plain, True), pa.scalar(None, values.type), values)
    return pc.coalesce(by_distinct(odd, show), texts)


@render.register(t.CharType)
@render.register(t.VarCharType)
def _(kind: t.LogicalType, values: pa.Array, rules: RenderRules) -> pa.Array:
    return readable(values)


@render.register(t.BooleanType)
@render.register(t.TinyIntType)
@render.register(t.SmallIntType)
@render.register(t.IntType)
@render.register(t.BigIntType)
@render.register(t.DateType)
@render.register(t.YearMonthIntervalType)
@render.register(t.DayTimeIntervalType)
def _(kind: t.LogicalType, values: pa.Array, rules: RenderRules) -> pa.Array:
    return values.cast(pa.string())


@render.register
def _(kind: t.DoubleType, values: pa.Array, rules: RenderRules) -> pa.Array:
    return _floats(values, java_double)


@render.register
def _(kind: t.FloatType, values: pa.Array, rules: RenderRules) -> pa.Array:
    return _floats(values, java_float)


def _floats(values: pa.Array, show: Callable[[float], str]) -> pa.Array:
    texts = values.cast(pa.string())
    return _where(pc.match_substring_regex(texts, r"^-?[1-9][0-9]{0,6}\.[0-9]+$"), texts, values, show)


@render.register
def _(kind: t.DecimalType, values: pa.Array, rules: RenderRules) -> pa.Array:
    if rules.plain_decimals:
        return by_distinct(values, lambda v: format(v, "f"))
    texts = values.cast(pa.string())
    if kind.scale:
        texts = pc.replace_substring_regex(texts, r"\.?0+$", "")
    return _where(
        pc.match_substring_regex(texts, r"^-?[0-9]{0,37}([1-9]|\.[0-9]{1,6})$"), texts, values, java_decimal
    )


@render.register
def _(kind: t.TimeType, values: pa.Array, rules: RenderRules) -> pa.Array:
    return _strip_fraction(values.cast(pa.time32("ms")).cast(pa.string()))


@render.register
def _(kind: t.TimestampType, values: pa.Array, rules: RenderRules) -> pa.Array:
    texts = _strip_fraction(values.cast(pa.timestamp("us")).cast(pa.string()))
    return pc.replace_substring(texts, " ", "T") if rules.timestamps == "ISO-8601" else texts


@render.register
def _(kind: t.LocalZonedTimestampType, values: pa.Array, rules: RenderRules) -> pa.Array:
    utc = values.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).cast(pa.timestamp("us"))
    return pc.binary_join_element_wise(render(t.TimestampType(), utc, rules), "Z", "")


def _strip_fraction(texts: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(pc.replace_substring_regex(texts, r"(\.\d*?)0+$", r"\1"), r"\.$", "")


@render.register(t.BinaryType)
@render.register(t.VarBinaryType)
def _(kind: t.LogicalType, values: pa.Array, rules: RenderRules) -> pa.Array:
    return by_distinct(values, lambda v: base64.b64encode(v).decode("ascii"))
