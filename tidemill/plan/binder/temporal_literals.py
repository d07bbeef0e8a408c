"""DATE, TIME, TIMESTAMP and INTERVAL literals.

The precision of a time is the number of digits written after the seconds. Intervals are months or
milliseconds whatever units were written; Flink's result types say MONTH and SECOND(3).
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from decimal import Decimal
from zoneinfo import ZoneInfo

from sqlglot import exp

from tidemill.errors import Position, ValidationError
from tidemill.plan.binder.expressions import ExpressionBinder, Handler
from tidemill.plan.expressions import Expr, Literal
from tidemill.sql.expressions import DateTimeLiteral, IntervalLiteral
from tidemill.sql.positions import position_of
from tidemill.types import logical as t

MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
MILLISECONDS = {"WEEK": 604_800_000, "DAY": 86_400_000, "HOUR": 3_600_000, "MINUTE": 60_000, "SECOND": 1_000}
ORDER = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
WRAP = {"MONTH": 12, "HOUR": 24, "MINUTE": 60, "SECOND": 60}
DEFAULT_PRECISION = 2


def _date_time(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    text, kind = str(node.this), str(node.args["kind"])
    try:
        return _READERS[kind](text, binder.context.environment.time_zone)
    except ValueError as error:
        message = f"Illegal {kind} literal '{text}': {error}"
        raise ValidationError(message, position=position_of(node)) from None


def _read_date(text: str, _: str) -> Literal:
    return Literal(type=t.DateType(nullable=False), value=_day(text))


def _day(text: str) -> date:
    year, month, day = (int(part) for part in text.split("-"))
    return date(year, month, day)


def _read_time(text: str, _: str) -> Literal:
    clock, digits = _clock(text)
    millis = ((clock.hour * 60 + clock.minute) * 60 + clock.second) * 1000 + clock.microsecond // 1000
    return Literal(type=t.TimeType(precision=digits, nullable=False), value=millis)


def _clock(text: str) -> tuple[time, int]:
    """The time of day and the number of fraction digits written."""
    whole, _, fraction = text.partition(".")
    hour, minute, second = (int(part) for part in whole.split(":"))
    micros = int(fraction[:6].ljust(6, "0")) if fraction else 0
    return time(hour, minute, second, micros), min(len(fraction), t.MAX_TIMESTAMP_PRECISION)


def _stamp(text: str) -> tuple[datetime, int]:
    day, _, rest = text.strip().partition(" ")
    clock, digits = _clock(rest.strip())
    return datetime.combine(_day(day), clock), digits


def _read_timestamp(text: str, _: str) -> Literal:
    value, digits = _stamp(text)
    return Literal(type=t.TimestampType(precision=digits, nullable=False), value=value)


def _read_instant(text: str, zone: str) -> Literal:
    local, digits = _stamp(text)
    value = local.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    return Literal(type=t.LocalZonedTimestampType(precision=digits, nullable=False), value=value)


_READERS = {
    "DATE": _read_date,
    "TIME": _read_time,
    "TIMESTAMP": _read_timestamp,
    "TIMESTAMP_LTZ": _read_instant,
}


def _interval(_: ExpressionBinder, node: exp.Expr) -> Expr:
    start, end = str(node.args["start"]), node.args.get("end")
    position = position_of(node)
    text = str(node.this).strip()
    negative = bool(node.args.get("negative")) != text.startswith("-")
    units = _units(start, None if end is None else str(end), position)
    fields = _fields(text.lstrip("+-"), units, node)
    _check_range(fields, node.args.get("precision"), position)
    factors = MONTHS if start in MONTHS else MILLISECONDS
    total = sum(int(value * factors[unit]) for unit, value in fields)
    kind: t.LogicalType
    if start in MONTHS:
        kind = t.YearMonthIntervalType(resolution="MONTH", nullable=False)
    else:
        kind = t.DayTimeIntervalType(nullable=False)
    return Literal(type=kind, value=-total if negative else total)


def _units(start: str, end: str | None, position: Position | None) -> tuple[str, ...]:
    if end is None or end == start:
        return (start,)
    if start in ORDER and end in ORDER and ORDER.index(start) < ORDER.index(end):
        units = ORDER[ORDER.index(start) : ORDER.index(end) + 1]
        if len({u in MONTHS for u in units}) == 1:
            return units
    raise ValidationError(f"Illegal interval qualifier {start} TO {end}", position=position)


def _fields(text: str, units: tuple[str, ...], node: exp.Expr) -> list[tuple[str, Decimal]]:
    """The value of each unit; only seconds have a fraction."""
    parts = re.split(r"[\s:-]+", text)
    pattern = r"\d+(\.\d*)?" if units[-1] == "SECOND" else r"\d+"
    whole = all(re.fullmatch(r"\d+", p) for p in parts[:-1])
    if len(parts) != len(units) or not whole or not re.fullmatch(pattern, parts[-1]):
        qualifier = units[0] if len(units) == 1 else f"{units[0]} TO {units[-1]}"
        message = f"Illegal interval literal format '{node.this}' for INTERVAL {qualifier}"
        raise ValidationError(message, position=position_of(node))
    return [(unit, Decimal(part)) for unit, part in zip(units, parts, strict=True)]


def _check_range(fields: list[tuple[str, Decimal]], precision: object, position: Position | None) -> None:
    unit, first = fields[0]
    digits = precision if isinstance(precision, int) else DEFAULT_PRECISION
    if len(str(int(first))) > digits:
        message = f"Interval field value {int(first)} exceeds precision of {unit}({digits}) field"
        raise ValidationError(message, position=position)
    for unit, value in fields[1:]:
        if value >= WRAP[unit]:
            message = f"Interval field value {value} is out of range for {unit}"
            raise ValidationError(message, position=position)


HANDLERS: dict[type[exp.Expr], Handler] = {DateTimeLiteral: _date_time, IntervalLiteral: _interval}
