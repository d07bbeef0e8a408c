"""Kernels of dates and times: fields, rounding down, text by a pattern, instants from numbers.

Local times are microseconds since 1970, in the proleptic Gregorian calendar. An instant is treated as the
local time of a session in UTC, and in no other zone.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.functions.arrays.api import ArrayCall, Entry, Inexact, Kernel, Value, passed_on
from tidemill.functions.arrays.buffers import Ints, Values, numbers, with_validity
from tidemill.types import logical as t
from tidemill.types.physical import arrow_type

UTC_ZONES = ("UTC", "Etc/UTC", "GMT", "Z", "UTC+00:00", "+00:00")
_SECOND = 1_000_000
_UNITS = {
    "MILLISECOND": 1_000,
    "SECOND": _SECOND,
    "MINUTE": 60 * _SECOND,
    "HOUR": 3_600 * _SECOND,
    "DAY": 86_400 * _SECOND,
}
_DAY = _UNITS["DAY"]
_YEARS = (-62_135_596_800 * _SECOND, 253_402_300_800 * _SECOND)
"""The years from 1 to 9999."""


def _years(days: Ints) -> Ints:
    return _months(days) // 12 + 1970


def _months(days: Ints) -> Ints:
    return days.view("M8[D]").astype("M8[M]").view(np.int64)


def _day_of_month(days: Ints) -> Ints:
    return days - _first_of_month(_months(days)) + 1


def _first_of_month(months: Ints) -> Ints:
    return months.view("M8[M]").astype("M8[D]").view(np.int64)


def _day_of_year(days: Ints) -> Ints:
    return days - _first_of_month((_years(days) - 1970) * 12) + 1


_DAYS: dict[str, Callable[[Ints], Ints]] = {
    "YEAR": _years,
    "QUARTER": lambda days: _months(days) % 12 // 3 + 1,
    "MONTH": lambda days: _months(days) % 12 + 1,
    "DAY": _day_of_month,
    "DOY": _day_of_year,
    # 1970-01-01 was a Thursday.
    "DOW": lambda days: (days + 4) % 7 + 1,
    "ISODOW": lambda days: (days + 3) % 7 + 1,
}
_CLOCK: dict[str, tuple[int, int]] = {
    "HOUR": (_UNITS["HOUR"], 24),
    "MINUTE": (_UNITS["MINUTE"], 60),
    "SECOND": (_UNITS["SECOND"], 60),
    "MILLISECOND": (_UNITS["MILLISECOND"], 1000),
}
_FLOORS: dict[str, Callable[[Ints], Ints]] = {
    "WEEK": lambda days: days - (days + 4) % 7,
    "MONTH": lambda days: _first_of_month(_months(days)),
    "QUARTER": lambda days: _first_of_month(_months(days) // 3 * 3),
    "YEAR": lambda days: _first_of_month(_months(days) // 12 * 12),
}


def extract(unit: str | None) -> Entry:
    """EXTRACT, whose option names the unit, and its short forms."""

    def entry(call: ArrayCall) -> Kernel | None:
        field_name = unit or call.options["unit"].upper()
        kind = call.arg_types[0]
        if not _is_local(kind, call.zone) or field_name not in (*_DAYS, *_CLOCK):
            return None
        if isinstance(kind, t.DateType):
            return partial(_of_date, field_name) if field_name in _DAYS else None
        return partial(_of_stamp, field_name)

    return entry


def floor(call: ArrayCall) -> Kernel | None:
    """FLOOR TO a unit from milliseconds to years, of timestamps."""
    kind, unit = call.arg_types[0], call.options.get("unit", "").upper()
    if isinstance(kind, t.DateType) or not _is_local(kind, call.zone):
        return None
    return partial(_floored, unit) if unit in (*_UNITS, *_FLOORS) else None


def cast(source: t.LogicalType, target: t.LogicalType, zone: str) -> Kernel | None:
    """CAST of a timestamp to one of no fewer digits, to its date, or to its text; of a date to its text; of a
    text in the form of SQL to a date or a timestamp."""
    if isinstance(source, t.CHARACTER_TYPES):
        return _read_as(target)
    if not _is_local(source, zone):
        return None
    if isinstance(target, t.VarCharType):
        return _shown(source) if target.length >= _LONGEST_SHOWN else None
    if isinstance(source, t.DateType):
        return None
    if isinstance(target, t.DateType):
        return _date
    if not isinstance(target, t.TIMESTAMP_TYPES) or _digits(source) > _digits(target):
        return None
    if type(target) is type(source):
        return passed_on
    return partial(_retyped, arrow_type(target)) if _is_local(target, zone) else None


def shifted(operator: str, call: ArrayCall) -> Kernel | None:
    """A timestamp + or - an interval of days or less."""
    kinds = call.arg_types
    backwards = operator == "+" and isinstance(kinds[0], t.DayTimeIntervalType)
    point, span = reversed(kinds) if backwards else kinds
    if not isinstance(point, t.TIMESTAMP_TYPES) or not isinstance(span, t.DayTimeIntervalType):
        return None
    if not _is_local(point, call.zone) or _digits(point) < _MILLIS or operator not in "+-":
        return None
    return partial(_shifted, -1 if operator == "-" else 1, backwards)


def parsed(call: ArrayCall) -> Kernel | None:
    """TO_TIMESTAMP and TO_DATE of a text in the form of SQL."""
    return _read_as(call.result) if len(call.arg_types) == 1 else None


def instant(call: ArrayCall) -> Kernel | None:
    """TO_TIMESTAMP_LTZ of a whole number of seconds or milliseconds."""
    digits = call.literals[1] if len(call.literals) == 2 else 3
    if not isinstance(call.arg_types[0], t.INTEGER_TYPES) or digits not in (0, 3):
        return None
    return partial(_instant, _SECOND if digits == 0 else _UNITS["MILLISECOND"])


def elapsed(micros: int) -> Kernel:
    """TIMESTAMPDIFF in a unit of so many microseconds, as INT."""
    return partial(_elapsed, micros)


def text(call: ArrayCall) -> Kernel | None:
    """DATE_FORMAT of a timestamp by a constant pattern of whole fields."""
    pattern = call.literals[1]
    if not isinstance(pattern, str) or isinstance(call.arg_types[0], t.CHARACTER_TYPES):
        return None
    fields = re.split(_FIELD, pattern)
    is_supported = all(part in _FIELDS or _SEPARATOR.fullmatch(part) for part in fields)
    shown_fields = [part for part in fields if part in _FIELDS]
    if not is_supported or not shown_fields or not _is_local(call.arg_types[0], call.zone):
        return None
    unit = min(_FIELDS[part][0] for part in shown_fields)
    return partial(_text, unit, tuple(part for part in fields if part))


_FIELDS: dict[str, tuple[int, str]] = {
    "yyyy": (_DAY, "YEAR"),
    "MM": (_DAY, "MONTH"),
    "dd": (_DAY, "DAY"),
    "HH": (_UNITS["HOUR"], "HOUR"),
    "mm": (_UNITS["MINUTE"], "MINUTE"),
    "ss": (_SECOND, "SECOND"),
    "SSS": (_UNITS["MILLISECOND"], "MILLISECOND"),
}
_FIELD = r"(y+|M+|d+|H+|m+|s+|S+)"
_DATE_PARTS = ("yyyy", "-", "MM", "-", "dd")
_SECONDS = (*_DATE_PARTS, " ", "HH", ":", "mm", ":", "ss")
_MILLIS = 3
_WHOLE = {0: _SECONDS, _MILLIS: (*_SECONDS, ".", "SSS")}
"""The text of a timestamp by its digits, of some."""
_LONGEST = 23
_LONGEST_SHOWN = 29
_CARRIED_DIGITS = 6
"""Of the fraction of a second."""
_GREGORIAN = dt.datetime(1583, 1, 1)
"""1583: from here on all calendars agree."""
_SEPARATOR = re.compile(r"[ :./,_-]*")


def _is_local(kind: t.LogicalType, zone: str) -> bool:
    """Whether the fields of ``kind`` can be told without knowing about time zones."""
    if isinstance(kind, t.LocalZonedTimestampType):
        return zone in UTC_ZONES
    return isinstance(kind, t.TimestampType | t.DateType)


def _digits(kind: t.LogicalType) -> int:
    assert isinstance(kind, t.TimestampType | t.LocalZonedTimestampType)
    return kind.precision


def _field(unit: str, micros: Ints) -> Ints:
    if unit in _DAYS:
        return _DAYS[unit](micros // _DAY)
    size, count = _CLOCK[unit]
    return micros // size % count


def _of_stamp(unit: str, stamps: pa.Array) -> pa.Array:
    return with_validity(pa.int64(), _field(unit, numbers(stamps)), stamps)


def _of_date(unit: str, dates: pa.Array) -> pa.Array:
    return with_validity(pa.int64(), _DAYS[unit](numbers(dates).astype(np.int64)), dates)


def _floored(unit: str, stamps: pa.Array) -> pa.Array:
    micros = numbers(stamps)
    by_days = unit in _FLOORS
    floor = _FLOORS[unit](micros // _DAY) * _DAY if by_days else micros - micros % _UNITS[unit]
    return with_validity(stamps.type, floor, stamps)


def _date(stamps: pa.Array) -> pa.Array:
    return with_validity(pa.date32(), (numbers(stamps) // _DAY).astype(np.int32), stamps)


def _retyped(kind: pa.DataType, stamps: pa.Array) -> pa.Array:
    """Local time in UTC as an instant, or an instant as local time."""
    return stamps.cast(pa.int64()).cast(kind)


def _shifted(sign: int, backwards: bool, left: Value, right: Value) -> Value:
    """Raises Inexact for times that are too far away."""
    stamps, millis = (right, left) if backwards else (left, right)
    try:
        micros = pc.multiply_checked(millis, pa.scalar(sign * 1000, pa.int64()))
        moved = pc.add_checked(stamps.cast(pa.int64()), micros)
    except pa.ArrowInvalid:
        raise Inexact from None
    return moved.cast(stamps.type)


def _read_as(target: t.LogicalType) -> Kernel | None:
    """The kernel that reads texts with at most three digits of a second as dates or timestamps."""
    if isinstance(target, t.DateType):
        return _parsed_date
    has_room = isinstance(target, t.TimestampType) and _digits(target) >= _MILLIS
    return _parsed if has_room else None


def _parsed_date(texts: pa.Array) -> pa.Array:
    """Raises Inexact unless all are dates like ``2024-01-01``."""
    if not pc.all(pc.equal(pc.binary_length(texts), len("2024-01-01"))).as_py():
        raise Inexact
    try:
        dates = texts.cast(pa.date32())
    except pa.ArrowInvalid:
        raise Inexact from None
    if not pc.all(pc.greater_equal(dates, _GREGORIAN.date())).as_py():
        raise Inexact
    return dates


def _parsed(texts: pa.Array) -> pa.Array:
    """Raises Inexact unless all are times like ``2024-01-01 00:00:00`` or ``2024-01-01 00:00:00.125``."""
    data, lengths = texts.cast(pa.binary()), pc.binary_length(texts)
    seconds = pc.equal(lengths, len("2024-01-01 00:00:00"))
    dot = pc.equal(pc.binary_slice(data, 19, 20), b".")
    millis = pc.and_(pc.equal(lengths, _LONGEST), dot)
    has_form = pc.and_(pc.or_(seconds, millis), pc.equal(pc.binary_slice(data, 10, 11), b" "))
    if not pc.all(has_form).as_py():
        raise Inexact
    try:
        stamps = texts.cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        raise Inexact from None
    if not pc.all(pc.greater_equal(stamps, _GREGORIAN)).as_py():
        raise Inexact
    return stamps


def _elapsed(micros: int, start: Value, end: Value) -> Value:
    """Cut towards zero; a count that is too large for INT wraps around."""
    passed = pc.subtract(end.cast(pa.int64()), start.cast(pa.int64()))
    return pc.cast(pc.divide(passed, micros), pa.int32(), safe=False)


def _instant(unit: int, values: pa.Array, *_: Value) -> pa.Array:
    """Wraps around, as Java does."""
    micros = numbers(values).astype(np.int64) * unit
    return with_validity(arrow_type(t.LocalZonedTimestampType()), micros, values)


def _text(unit: int, parts: tuple[str, ...], stamps: pa.Array, *_: Value) -> pa.Array:
    """Each time that differs in the pattern's smallest unit is written once if there are few of them. Raises
    Inexact for years of more than four digits."""
    present = stamps.drop_null()
    if len(present) == 0:
        return pa.nulls(len(stamps), pa.string())
    ticks = numbers(present) // unit
    least, most = int(ticks.min()), int(ticks.max())
    if not _YEARS[0] <= least * unit <= most * unit < _YEARS[1]:
        raise Inexact
    if most - least < len(stamps):
        texts = _written(parts, np.arange(least, most + 1) * unit)
        tick_numbers = with_validity(pa.int64(), numbers(stamps) // unit - least, stamps)
        return texts.take(tick_numbers)
    micros = numbers(stamps)
    valid = micros if stamps.null_count == 0 else np.clip(micros, _YEARS[0], _YEARS[1] - 1)
    return pc.if_else(stamps.is_valid(), _written(parts, valid), pa.scalar(None, pa.string()))


def _shown(kind: t.LogicalType) -> Kernel:
    if isinstance(kind, t.DateType):
        return _of_days
    digits = _digits(kind)
    whole = _WHOLE.get(digits)
    return partial(_with_fraction, digits) if whole is None else partial(_text, 10 ** (6 - digits), whole)


def _of_days(dates: pa.Array) -> pa.Array:
    days = numbers(dates).astype(np.int64)
    valid = dates.is_valid().to_numpy(zero_copy_only=False)
    if not ((days >= _YEARS[0] // _DAY) & (days < _YEARS[1] // _DAY))[valid].all():
        raise Inexact
    stamps = with_validity(pa.timestamp("us"), np.where(valid, days, 0) * _DAY, dates)
    return _text(_DAY, _DATE_PARTS, stamps)


def _with_fraction(digits: int, stamps: pa.Array) -> pa.Array:
    """With exactly so many digits."""
    columns = _decimal_digits(numbers(stamps) % _SECOND, _CARRIED_DIGITS)[:digits]
    columns += [np.full(len(stamps), ord("0"), np.uint8)] * (digits - len(columns))
    return pc.binary_join_element_wise(_text(_SECOND, _SECONDS, stamps), _lettered(columns), ".")


def _written(parts: tuple[str, ...], micros: Ints) -> pa.Array:
    """The text of every time. All texts are equally long."""
    columns: list[Values] = []
    for part in parts:
        if part in _FIELDS:
            columns += _decimal_digits(_field(_FIELDS[part][1], micros), len(part))
        else:
            columns += [np.full(len(micros), ord(character), np.uint8) for character in part]
    return _lettered(columns)


def _lettered(columns: list[Values]) -> pa.Array:
    """Texts of one letter from each column."""
    data = np.stack(columns, axis=1)
    offsets = np.arange(0, data.size + 1, data.shape[1], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(data), [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _decimal_digits(values: Ints, width: int) -> list[Values]:
    digits = (values // 10**power % 10 for power in reversed(range(width)))
    return [(digit + ord("0")).astype(np.uint8) for digit in digits]
