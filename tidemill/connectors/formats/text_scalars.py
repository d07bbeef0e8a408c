"""Parses one text as one value, by the full spelling rules of Flink's text formats, type by type.

Each parser raises ValueError (or ArithmeticError) if the text is not a value of the type. Values
have the forms of ``types.physical``: TIME is milliseconds of the day, timestamps are
microseconds, so fraction digits beyond the sixth are dropped.
"""

from __future__ import annotations

import base64
import binascii
import calendar
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal, Inexact
from functools import singledispatch
from typing import Any

from tidemill.types import logical as t

# Java's String.trim strips every character up to the blank.
_BLANKS = "".join(map(chr, range(33)))
_INTEGER = re.compile(r"[+-]?[0-9]+")
_JAVA_FLOAT = re.compile(
    r"[+-]?(NaN|Infinity|((0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?[0-9]+)"
    r"|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)[fFdD]?)"
)
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_STRICT_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_LOOSE_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_TIME = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{0,9}))?)?")
_RANGES: dict[type[t.LogicalType], int] = {
    t.TinyIntType: 1 << 7,
    t.SmallIntType: 1 << 15,
    t.IntType: 1 << 31,
    t.BigIntType: 1 << 63,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRules:
    """``timestamps``: SQL or ISO-8601. ``java_dates``: dates as java.sql.Date.valueOf reads them (CSV), else
    ISO. ``short_times``: 12:34 is a time. ``trim_decimals`` and ``trim_timestamps``: blanks around these
    values are allowed. ``element_delimiter``: between the elements of an array or row in one text; '' if the
    format has no such texts. ``null_element``: the text of a NULL element. ``null_bad_elements``: an element
    that does not parse is NULL."""

    timestamps: str = "SQL"
    java_dates: bool = False
    short_times: bool = False
    trim_decimals: bool = True
    trim_timestamps: bool = False
    element_delimiter: str = ""
    null_element: str | None = None
    null_bad_elements: bool = False


CSV_RULES = TextRules(
    java_dates=True, short_times=True, trim_decimals=False, trim_timestamps=True, element_delimiter=";"
)


@singledispatch
def parse(kind: t.LogicalType, text: str, rules: TextRules) -> Any:
    """The value of ``text`` as ``kind``. ValueError if the text is no such value, TypeError if text formats
    have no such type. Example: " 7" as INT is 7, "1.5e1" as DOUBLE is 15.0."""
    raise TypeError(f"Unsupported type '{kind}' in a text field.")


@parse.register(t.CharType)
@parse.register(t.VarCharType)
def _(kind: t.LogicalType, text: str, rules: TextRules) -> str:
    return text


@parse.register
def _(kind: t.BooleanType, text: str, rules: TextRules) -> bool:
    return text.strip(_BLANKS).lower() == "true"


@parse.register(t.TinyIntType)
@parse.register(t.SmallIntType)
@parse.register(t.IntType)
@parse.register(t.BigIntType)
def _(kind: t.LogicalType, text: str, rules: TextRules) -> int:
    trimmed = text.strip(_BLANKS)
    if _INTEGER.fullmatch(trimmed) is None:
        raise ValueError(f'For input string: "{trimmed}"')
    value, bound = int(trimmed), _RANGES[type(kind)]
    if not -bound <= value < bound:
        raise ValueError(f'Value out of range. Value:"{trimmed}"')
    return value


@parse.register(t.FloatType)
@parse.register(t.DoubleType)
def _(kind: t.LogicalType, text: str, rules: TextRules) -> float:
    trimmed = text.strip(_BLANKS)
    if _JAVA_FLOAT.fullmatch(trimmed) is None:
        raise ValueError(f'For input string: "{trimmed}"' if trimmed else "empty String")
    if "x" in trimmed.lower():
        return float.fromhex(trimmed.rstrip("fFdD") if "p" not in trimmed.lower()[-2:] else trimmed)
    return float(trimmed if trimmed[-1] in "yN" else trimmed.rstrip("fFdD"))


@parse.register
def _(kind: t.DecimalType, text: str, rules: TextRules) -> Decimal | None:
    """NULL if the number has too many digits, as in Flink's DecimalData."""
    trimmed = text.strip(_BLANKS) if rules.trim_decimals else text
    if _DECIMAL.fullmatch(trimmed) is None:
        raise ValueError(f'"{text}" is not a decimal number')
    return fit_decimal(Decimal(trimmed), kind)


def fit_decimal(value: Decimal, kind: t.DecimalType) -> Decimal | None:
    """``value`` rounded half up to the type's scale; None if it has too many digits."""
    if value and value.adjusted() >= kind.precision - kind.scale + 1:
        return None
    context = Context(prec=120, rounding=ROUND_HALF_UP)
    context.traps[Inexact] = False
    rounded = value.quantize(Decimal(1).scaleb(-kind.scale, context), context=context)
    return rounded if rounded.adjusted() < kind.precision - kind.scale or not rounded else None


@parse.register
def _(kind: t.DateType, text: str, rules: TextRules) -> date:
    match = (_LOOSE_DATE if rules.java_dates else _STRICT_DATE).fullmatch(text)
    if match is None:
        raise ValueError(f"Text '{text}' could not be parsed as a date")
    year, month, day = map(int, match.groups())
    if rules.java_dates and 1 <= month <= 12 and 1 <= day <= 31:
        return _roll(year, month, day)
    return date(year, month, day)


def _roll(year: int, month: int, day: int) -> date:
    """java.sql.Date lets the 30th of February run over into March."""
    return date.fromordinal(date(year, month, 1).toordinal() + day - 1)


def _smart_date(text: str) -> date:
    """java.time's SMART resolver: days up to 31 are pulled back to the month's last day."""
    match = _STRICT_DATE.fullmatch(text)
    if match is None:
        raise ValueError(f"Text '{text}' could not be parsed as a date")
    year, month, day = map(int, match.groups())
    if 1 <= month <= 12 and 1 <= day <= 31:
        day = min(day, calendar.monthrange(year, month)[1])
    return date(year, month, day)


def _micros_of_day(text: str, *, short: bool) -> int:
    match = _TIME.fullmatch(text)
    if match is None or (match.group(3) is None and not short):
        raise ValueError(f"Text '{text}' could not be parsed as a time")
    hours, minutes, seconds = int(match.group(1)), int(match.group(2)), int(match.group(3) or 0)
    if hours > 23 or minutes > 59 or seconds > 59:
        raise ValueError(f"Text '{text}' could not be parsed as a time")
    micros = int((match.group(4) or "").ljust(6, "0")[:6])
    return ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros


@parse.register
def _(kind: t.TimeType, text: str, rules: TextRules) -> int:
    millis = _micros_of_day(text, short=rules.short_times) // 1000
    unit: int = 10 ** max(0, 3 - kind.precision)
    return millis - millis % unit


@parse.register
def _(kind: t.TimestampType, text: str, rules: TextRules) -> datetime:
    return timestamp(text.strip(_BLANKS) if rules.trim_timestamps else text, kind.precision, rules)


@parse.register
def _(kind: t.LocalZonedTimestampType, text: str, rules: TextRules) -> datetime:
    trimmed = text.strip(_BLANKS) if rules.trim_timestamps else text
    if not trimmed.endswith("Z"):
        raise ValueError(f"Text '{text}' could not be parsed: an instant ends with 'Z'")
    return timestamp(trimmed[:-1], kind.precision, rules).replace(tzinfo=UTC)


def timestamp(text: str, precision: int, rules: TextRules) -> datetime:
    """A date and a time of day as ``rules`` spell them, truncated to ``precision`` fraction digits."""
    iso = rules.timestamps == "ISO-8601"
    day, _, time = text.partition("T" if iso else " ")
    micros = _micros_of_day(time, short=iso)
    micros -= micros % 10 ** max(0, 6 - precision)
    ordinal = _smart_date(day).toordinal()
    seconds, rest = divmod(micros, 1_000_000)
    hours, minutes = divmod(seconds // 60, 60)
    return datetime.fromordinal(ordinal).replace(
        hour=hours, minute=minutes, second=seconds % 60, microsecond=rest
    )


@parse.register(t.BinaryType)
@parse.register(t.VarBinaryType)
def _(kind: t.LogicalType, text: str, rules: TextRules) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as e:
        raise ValueError(f"Unable to deserialize byte array: {e}") from None


def _element(kind: t.LogicalType, text: str, rules: TextRules) -> Any:
    if text == rules.null_element:
        return None
    try:
        return parse(kind, text, rules)
    except (ValueError, ArithmeticError):
        if rules.null_bad_elements:
            return None
        raise


@parse.register
def _(kind: t.ArrayType, text: str, rules: TextRules) -> list[Any]:
    if not text:
        return []
    return [_element(kind.element, part, rules) for part in text.split(rules.element_delimiter)]


@parse.register
def _(kind: t.RowType, text: str, rules: TextRules) -> dict[str, Any] | None:
    """Fields by position. Missing fields at the end are NULL if errors are ignored, otherwise an error."""
    parts = text.split(rules.element_delimiter) if text else []
    if not parts:
        return None
    if len(parts) < len(kind.fields) and not rules.null_bad_elements:
        raise ValueError(f"Row length mismatch. {len(kind.fields)} fields expected but was {len(parts)}.")
    padded: list[str | None] = [*parts, *[None] * len(kind.fields)]
    return {
        f.name: None if part is None else _element(f.type, part, rules)
        for f, part in zip(kind.fields, padded, strict=False)
    }
