"""DATE, TIME, TIMESTAMP and INTERVAL literals.

The precision of a time is the number of digits after the seconds. Whatever its units, an interval is stored
as months or milliseconds; Flink's result types say MONTH and SECOND(3).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

from sqlglot import exp

from tidemill.errors import Position, ValidationError
from tidemill.plan.binder.expressions.binding import ExpressionBinder, Handler
from tidemill.plan.expressions import Expr, Literal
from tidemill.sql.date_time_text import read_date_time
from tidemill.sql.expressions import DateTimeLiteral, IntervalLiteral
from tidemill.sql.positions import position_of
from tidemill.types import logical as t

MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
MILLISECONDS = {"WEEK": 604_800_000, "DAY": 86_400_000, "HOUR": 3_600_000, "MINUTE": 60_000, "SECOND": 1_000}
ORDER = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
WRAP = {"MONTH": 12, "HOUR": 24, "MINUTE": 60, "SECOND": 60}
# The separator before a unit that is not the first.
BETWEEN = {"MONTH": "-", "HOUR": " ", "MINUTE": ":", "SECOND": ":"}
DEFAULT_PRECISION, MAX_PRECISION = 2, 10
DEFAULT_FRACTION = 6
MAX_FIELD = 2**31 - 1


def _date_time(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    text, kind = str(node.this), str(node.args["kind"])
    read = read_date_time(kind.removesuffix("_LTZ"), text)
    if read is None:
        raise ValidationError(f"Illegal {kind} literal '{text}'", position=position_of(node))
    try:
        return _LITERALS[kind](*read, binder.context.environment.time_zone)
    except OverflowError:
        message = f"{kind} literal '{text}' is out of range in UTC"
        raise ValidationError(message, position=position_of(node)) from None


def _date(value: datetime, _digits: int, _zone: str) -> Literal:
    return Literal(type=t.DateType(nullable=False), value=value.date())


def _time(value: datetime, digits: int, _zone: str) -> Literal:
    millis = ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000
    return Literal(type=t.TimeType(precision=min(digits, t.MAX_TIME_PRECISION), nullable=False), value=millis)


def _timestamp(value: datetime, digits: int, _zone: str) -> Literal:
    return Literal(type=t.TimestampType(precision=_precision(digits), nullable=False), value=value)


def _instant(value: datetime, digits: int, zone: str) -> Literal:
    instant = value.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    kind = t.LocalZonedTimestampType(precision=_precision(digits), nullable=False)
    return Literal(type=kind, value=instant)


def _precision(digits: int) -> int:
    return min(digits, t.MAX_TIMESTAMP_PRECISION)


_LITERALS: dict[str, Callable[[datetime, int, str], Literal]] = {
    "DATE": _date,
    "TIME": _time,
    "TIMESTAMP": _timestamp,
    "TIMESTAMP_LTZ": _instant,
}


def _interval(_: ExpressionBinder, node: exp.Expr) -> Expr:
    start, end = str(node.args["start"]), node.args.get("end")
    position = position_of(node)
    units = _units(start, None if end is None else str(end), position)
    minus, fields = _fields(units, node)
    _check_range(fields, node.args.get("precision"), position)
    factors = MONTHS if start in MONTHS else MILLISECONDS
    total = sum(int(value * factors[unit]) for unit, value in fields)
    kind: t.LogicalType
    if start in MONTHS:
        _check_months(total, str(node.this), position)
        kind = t.YearMonthIntervalType(resolution="MONTH", nullable=False)
    else:
        kind = t.DayTimeIntervalType(nullable=False)
    negative = bool(node.args.get("negative")) != minus
    return Literal(type=kind, value=-total if negative else total)


def _units(start: str, end: str | None, position: Position | None) -> tuple[str, ...]:
    if end is None or end == start:
        return (start,)
    if start in ORDER and end in ORDER and ORDER.index(start) < ORDER.index(end):
        units = ORDER[ORDER.index(start) : ORDER.index(end) + 1]
        if len({u in MONTHS for u in units}) == 1:
            return units
    raise ValidationError(f"Illegal interval qualifier {start} TO {end}", position=position)


def _fields(units: tuple[str, ...], node: exp.Expr) -> tuple[bool, list[tuple[str, Decimal]]]:
    """Whether the text has a minus, and the value of each unit; only seconds have a fraction."""
    fraction = node.args.get("fraction")
    digits = fraction if isinstance(fraction, int) else DEFAULT_FRACTION
    tail = rf"(?:\.[0-9]{{1,{digits}}})?)" if units[-1] == "SECOND" and digits else ")"
    following_units = "".join(f"){BETWEEN[unit]}([0-9]+" for unit in units[1:])
    pattern = f"([+-]?)([0-9]+{following_units}{tail}"
    match = re.fullmatch(pattern, str(node.this).strip())
    if match is None:
        qualifier = units[0] if len(units) == 1 else f"{units[0]} TO {units[-1]}"
        message = f"Illegal interval literal format '{node.this}' for INTERVAL {qualifier}"
        raise ValidationError(message, position=position_of(node))
    sign, *parts = match.groups()
    return sign == "-", [(unit, Decimal(part)) for unit, part in zip(units, parts, strict=True)]


def _check_range(fields: list[tuple[str, Decimal]], precision: object, position: Position | None) -> None:
    unit, first = fields[0]
    digits = precision if isinstance(precision, int) else DEFAULT_PRECISION
    if not 1 <= digits <= MAX_PRECISION:
        message = f"Interval leading field precision '{digits}' out of range for INTERVAL {unit}({digits})"
        raise ValidationError(message, position=position)
    if first >= min(10**digits, MAX_FIELD + 1):
        whole = f"{first:,}".partition(".")[0]
        message = f"Interval field value {whole} exceeds precision of {unit}({digits}) field"
        raise ValidationError(message, position=position)
    for unit, value in fields[1:]:
        if value >= WRAP[unit]:
            message = f"Interval field value {value} is out of range for {unit}"
            raise ValidationError(message, position=position)


def _check_months(months: int, text: str, position: Position | None) -> None:
    if months > MAX_FIELD:
        raise ValidationError(f"Interval literal '{text}' is out of range", position=position)


HANDLERS: dict[type[exp.Expr], Handler] = {DateTimeLiteral: _date_time, IntervalLiteral: _interval}
