"""Columns of values as columns of text, as Flink's text formats write them.

The conversion is vectorised. Only values that Java spells in its own way (very large and small floats,
decimals that end in zeros or are tiny) go through Python, once per distinct value. NULL stays NULL. Parquet
and ORC may hold texts that are not UTF-8; undecodable bytes become U+FFFD.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidemill.functions.text.numbers import NO_EXPONENT, java_decimal, java_double, java_float
from tidemill.types import logical as t
from tidemill.types.python_values import readable


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderRules:
    """``timestamps``: SQL or ISO-8601. ``plain_decimals``: decimals without exponents, with all digits."""

    timestamps: str = "SQL"
    plain_decimals: bool = False


@singledispatch
def render(kind: t.LogicalType, values: pa.Array, rules: RenderRules) -> pa.Array:
    """``values`` of the scalar type ``kind`` as a STRING array. Example: the doubles 1.0 and 1e10 give "1.0"
    and "1.0E10"."""
    raise TypeError(f"Unsupported type '{kind}' in a text field.")


def joined(lists: pa.Array, texts: pa.Array, separator: str) -> pa.Array:
    """For each list, the ``texts`` of its elements, separated; a NULL text is skipped."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
    grouped = pa.ListArray.from_arrays(offsets, texts)
    if texts.null_count:
        without_nulls = [[x for x in row if x is not None] for row in grouped.to_pylist()]
        grouped = pa.array(without_nulls, pa.list_(pa.string()))
    return or_null(lists, pc.binary_join(grouped, separator))


def or_null(values: pa.Array, texts: pa.Array) -> pa.Array:
    """``texts``, NULL where ``values`` are."""
    return pc.if_else(values.is_valid(), texts, pa.scalar(None, pa.string()))


def by_distinct(values: pa.Array, to_text: Callable[[Any], str]) -> pa.Array:
    """``to_text`` applied once per distinct value."""
    encoded = values.dictionary_encode()
    texts = [to_text(v) for v in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)


def _where(is_plain: pa.Array, texts: pa.Array, values: pa.Array, to_text: Callable[[Any], str]) -> pa.Array:
    """``texts`` where ``is_plain``, otherwise ``to_text`` of the value."""
    if pc.all(pc.fill_null(is_plain, True)).as_py() is not False:
        return texts
    others = pc.if_else(pc.fill_null(is_plain, True), pa.scalar(None, values.type), values)
    return pc.coalesce(by_distinct(others, to_text), texts)


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


def _floats(values: pa.Array, to_text: Callable[[float], str]) -> pa.Array:
    texts = values.cast(pa.string())
    return _where(pc.match_substring_regex(texts, r"^-?[1-9][0-9]{0,6}\.[0-9]+$"), texts, values, to_text)


@render.register
def _(kind: t.DecimalType, values: pa.Array, rules: RenderRules) -> pa.Array:
    if rules.plain_decimals:
        return plain_decimals(values, kind.scale)
    texts = values.cast(pa.string())
    if kind.scale:
        texts = pc.replace_substring_regex(texts, r"\.?0+$", "")
    return _where(
        pc.match_substring_regex(texts, r"^-?[0-9]{0,37}([1-9]|\.[0-9]{1,6})$"), texts, values, java_decimal
    )


def plain_decimals(values: pa.Array, scale: int) -> pa.Array:
    """All digits: Arrow writes an exponent only if the scale allows very small numbers."""
    return values.cast(pa.string()) if scale <= NO_EXPONENT else by_distinct(values, lambda v: format(v, "f"))


@render.register
def _(kind: t.TimeType, values: pa.Array, rules: RenderRules) -> pa.Array:
    return shortest(values.cast(pa.time32("ms")).cast(pa.string()))


@render.register
def _(kind: t.TimestampType, values: pa.Array, rules: RenderRules) -> pa.Array:
    texts = shortest(values.cast(pa.timestamp("us")).cast(pa.string()))
    return pc.replace_substring(texts, " ", "T") if rules.timestamps == "ISO-8601" else texts


@render.register
def _(kind: t.LocalZonedTimestampType, values: pa.Array, rules: RenderRules) -> pa.Array:
    utc = values.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).cast(pa.timestamp("us"))
    return pc.binary_join_element_wise(render(t.TimestampType(), utc, rules), "Z", "")


def shortest(texts: pa.Array) -> pa.Array:
    """``texts``, all with a fraction, without its trailing zeros."""
    return pc.replace_substring_regex(texts, r"\.?0+$", "")


@render.register(t.BinaryType)
@render.register(t.VarBinaryType)
def _(kind: t.LogicalType, values: pa.Array, rules: RenderRules) -> pa.Array:
    return by_distinct(values, lambda v: base64.b64encode(v).decode("ascii"))
