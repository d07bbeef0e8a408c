"""Turns columns of text into columns of a Flink type, exactly as Flink's text formats read them.

Each type has two parsers: a vectorised parser for the plain spellings, and a scalar parser with the
full rules for the remaining texts, once per distinct text. The scalar parser is the authority;
the vectorised parser may only accept texts on which both agree. Cost: plain spellings cost a regular
expression or a length check and an Arrow cast; each other distinct text costs one Python call.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.connectors.formats import text_scalars as scalars
from tidemill.connectors.formats.text_minutes import by_minutes
from tidemill.types import logical as t
from tidemill.types.physical import arrow_type

Mask = npt.NDArray[np.bool_]

_SAFE_DIGITS: dict[type[t.LogicalType], int] = {
    t.TinyIntType: 2,
    t.SmallIntType: 4,
    t.IntType: 9,
    t.BigIntType: 18,
}
_PLAIN_FLOAT = r"^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$"


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """``bad`` marks the texts that do not parse (their value is NULL); None if all texts parse."""

    values: pa.Array
    bad: Mask | None = None


def convert_text(values: pa.Array, kind: t.LogicalType, rules: scalars.TextRules) -> Converted:
    """Parses ``values`` (a STRING array; NULL stays NULL) as ``kind``."""
    plain = _plain(kind, values, rules)
    remaining = np.asarray(pc.and_(values.is_valid(), plain.is_null()))
    if not remaining.any():
        return Converted(values=plain)
    return _convert_rest(values, plain, remaining, kind, rules)


def _convert_rest(
    values: pa.Array, plain: pa.Array, remaining: Mask, kind: t.LogicalType, rules: scalars.TextRules
) -> Converted:
    encoded = values.filter(pa.array(remaining)).dictionary_encode()
    results: list[Any] = []
    failed: list[bool] = []
    for text in encoded.dictionary.to_pylist():
        try:
            results.append(scalars.parse(kind, text, rules))
            failed.append(False)
        except (ValueError, ArithmeticError):
            results.append(None)
            failed.append(True)
    parsed = pa.array(results, plain.type).take(encoded.indices)
    bad = np.zeros(len(values), dtype=bool)
    bad[remaining] = np.asarray(failed, dtype=bool)[np.asarray(encoded.indices)]
    indices = np.arange(len(values))
    indices[remaining] = len(values) + np.arange(len(parsed))
    merged = pa.concat_arrays([plain, parsed]).take(pa.array(indices))
    return Converted(values=merged, bad=bad if bad.any() else None)


def _cast_where(values: pa.Array, fits: pa.Array, kind: pa.DataType) -> pa.Array:
    """Casts the texts that ``fits`` selects; all results are NULL if Arrow refuses one of the texts."""
    fitting = pc.if_else(fits, values, pa.scalar(None, values.type))
    try:
        return fitting.cast(kind)
    except pa.ArrowInvalid:
        return pa.nulls(len(values), kind)


@singledispatch
def _plain(kind: t.LogicalType, values: pa.Array, rules: scalars.TextRules) -> pa.Array:
    """The values of texts in plain spellings, NULL for others. By default no spelling is plain."""
    return pa.nulls(len(values), arrow_type(kind))


@_plain.register(t.CharType)
@_plain.register(t.VarCharType)
def _(kind: t.LogicalType, values: pa.Array, rules: scalars.TextRules) -> pa.Array:
    return values


@_plain.register
def _(kind: t.BooleanType, values: pa.Array, rules: scalars.TextRules) -> pa.Array:
    return pc.equal(pc.utf8_lower(pc.utf8_trim_whitespace(values)), "true")


@_plain.register(t.TinyIntType)
@_plain.register(t.SmallIntType)
@_plain.register(t.IntType)
@_plain.register(t.BigIntType)
def _(kind: t.LogicalType, values: pa.Array, rules: scalars.TextRules) -> pa.Array:
    fits = pc.match_substring_regex(values, f"^-?[0-9]{{1,{_SAFE_DIGITS[type(kind)]}}}$")
    return _cast_where(values, fits, arrow_type(kind))


@_plain.register(t.FloatType)
@_plain.register(t.DoubleType)
def _(kind: t.LogicalType, values: pa.Array, rules: scalars.TextRules) -> pa.Array:
    return _cast_where(values, pc.match_substring_regex(values, _PLAIN_FLOAT), arrow_type(kind))


@_plain.register
def _(kind: t.DecimalType, values: pa.Array, rules: scalars.TextRules) -> pa.Array:
    whole, scale = kind.precision - kind.scale, kind.scale
    fraction = rf"(\.[0-9]{{1,{scale}}})?" if scale else ""
    if whole == 0:
        return pa.nulls(len(values), arrow_type(kind))
    fits = pc.match_substring_regex(values, rf"^-?[0-9]{{1,{whole}}}{fraction}$")
    return _cast_where(values, fits, arrow_type(kind))


@_plain.register
def _(kind: t.DateType, values: pa.Array, rules: scalars.TextRules) -> pa.Array:
    return _cast_where(values, pc.match_substring_regex(values, r"^\d{4}-\d\d-\d\d$"), pa.date32())


@_plain.register
def _(kind: t.TimestampType, values: pa.Array, rules: scalars.TextRules) -> pa.Array:
    return _timestamps(values, kind.precision, rules)


@_plain.register
def _(kind: t.LocalZonedTimestampType, values: pa.Array, rules: scalars.TextRules) -> pa.Array:
    zoned = pc.ends_with(values, "Z")
    bare = pc.if_else(
        zoned, pc.utf8_slice_codeunits(values, 0, -1) if len(values) else values, pa.scalar(None, pa.string())
    )
    return _timestamps(bare, kind.precision, rules).cast(pa.timestamp("us", tz="UTC"))


def _timestamps(values: pa.Array, precision: int, rules: scalars.TextRules) -> pa.Array:
    """Parses ``2020-01-01 00:00:00`` with up to six fraction digits; Arrow checks the digits."""
    by_minute = by_minutes(values, lambda text: scalars.timestamp(text, precision, rules))
    if by_minute is not None:
        return truncate(by_minute, precision)
    lengths = pc.binary_length(values)
    seconds_only = pc.equal(lengths, 19)
    fraction = pc.and_(pc.greater(lengths, 20), pc.less_equal(lengths, 26))
    has_length = pc.or_(seconds_only, fraction)
    separator = "T" if rules.timestamps == "ISO-8601" else " "
    fits = pc.and_(has_length, pc.equal(pc.binary_slice(_bytes(values), 10, 11), separator.encode()))
    if pc.any(fraction).as_py():
        dot = pc.equal(pc.binary_slice(_bytes(values), 19, 20), b".")
        fits = pc.and_(fits, pc.or_(seconds_only, dot))
    parsed = _cast_where(values, fits, pa.timestamp("us"))
    return truncate(parsed, precision)


def _bytes(values: pa.Array) -> pa.Array:
    return values.cast(pa.binary())


def truncate(values: pa.Array, precision: int) -> pa.Array:
    """Microsecond timestamps truncated to ``precision`` fraction digits."""
    if precision >= 6:
        return values
    unit = 10 ** (6 - precision)
    micros = values.view(pa.int64())
    numbers = np.asarray(micros.fill_null(0))
    truncated = numbers - np.mod(numbers, unit)
    return pa.array(truncated, mask=np.asarray(values.is_null())).cast(pa.timestamp("us"))


@_plain.register
def _(kind: t.TimeType, values: pa.Array, rules: scalars.TextRules) -> pa.Array:
    fits = pc.match_substring_regex(values, r"^\d\d:\d\d:\d\d$")
    moments = pc.binary_join_element_wise("1970-01-01 ", values, "")
    millis = _cast_where(moments, fits, pa.timestamp("ms")).cast(pa.int64())
    return millis.cast(pa.int32())


@_plain.register
def _(kind: t.ArrayType, values: pa.Array, rules: scalars.TextRules) -> pa.Array:
    """Delimited elements (CSV); the empty text is the empty array."""
    if not rules.element_delimiter:
        return pa.nulls(len(values), arrow_type(kind))
    parts = pc.split_pattern(values, rules.element_delimiter)
    empty = np.asarray(pc.fill_null(pc.equal(values, ""), False))
    texts = parts.flatten()
    if rules.null_element is not None:
        texts = pc.if_else(pc.equal(texts, rules.null_element), pa.scalar(None, pa.string()), texts)
    elements = convert_text(texts, kind.element, rules)
    lengths = np.asarray(pc.fill_null(pc.list_value_length(parts), 0)).astype(np.int64)
    if elements.bad is not None or empty.any():
        return pa.nulls(len(values), arrow_type(kind))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(
        pa.array(offsets), elements.values, type=arrow_type(kind), mask=values.is_null()
    )
