"""Arithmetic of dates, times and timestamps with intervals (carriers: INT months, BIGINT millis).

Adding months clamps to the month's end; a TIME wraps around midnight and ignores months; a DATE takes
whole days of a day-time interval only. TIMESTAMP_LTZ moves by elapsed time for day-time intervals
and by calendar months in UTC for year-month ones.
"""

from __future__ import annotations

from collections.abc import Callable

from tidemill.functions.api import Argument, Resolved, SparkCall
from tidemill.functions.casts_datetime import MILLIS_PER_DAY, cut_fraction, cut_millis, utc_instant, utc_local
from tidemill.functions.signatures import mismatch
from tidemill.types import logical as t

MILLI_DIGITS = 3
MONTHS = t.YearMonthIntervalType(resolution="MONTH")
MILLIS = t.DayTimeIntervalType(resolution="SECOND(3)")
_POINTS = (t.DateType, t.TimeType, *t.TIMESTAMP_TYPES)


def resolve_interval(name: str, arguments: tuple[Argument, ...]) -> Resolved:
    """Types of + - * where at least one side is a date, time, timestamp or interval."""
    left, right = (a.type for a in arguments)
    nullable = left.nullable or right.nullable
    if isinstance(left, t.NullType):
        left = t.INT if name == "*" else right
    if isinstance(right, t.NullType):
        right = t.INT if name == "*" else (left if isinstance(left, t.INTERVAL_TYPES) else MILLIS)
    result = _result(name, left, right)
    if result is None:
        raise mismatch(name, arguments, f"<DATETIME> {name} <DATETIME_INTERVAL>")
    return Resolved(arg_types=(left, right), result=result.with_nullable(nullable))


def _result(name: str, left: t.LogicalType, right: t.LogicalType) -> t.LogicalType | None:
    spans = isinstance(left, t.INTERVAL_TYPES), isinstance(right, t.INTERVAL_TYPES)
    if name in "+-" and all(spans):
        return _canonical(left) if type(left) is type(right) else None
    if name in "+-" and isinstance(left, _POINTS) and spans[1]:
        return left
    if name == "+" and isinstance(right, _POINTS) and spans[0]:
        return right
    if name == "*" and any(spans):
        span, factor = (left, right) if spans[0] else (right, left)
        return _canonical(span) if isinstance(factor, t.NUMERIC_TYPES) else None
    return None


def _canonical(kind: t.LogicalType) -> t.LogicalType:
    return MONTHS if isinstance(kind, t.YearMonthIntervalType) else MILLIS


def spark_interval(operator: str, call: SparkCall) -> str:
    left, right = call.arg_types
    a, b = call.args
    if isinstance(left, t.INTERVAL_TYPES) and isinstance(right, t.INTERVAL_TYPES):
        return f"({a} {operator} {b})"
    if operator == "*":
        carrier = "INT" if isinstance(call.result, t.YearMonthIntervalType) else "BIGINT"
        return f"CAST({a} * {b} AS {carrier})"
    if isinstance(left, t.INTERVAL_TYPES):
        (left, right), (a, b) = (right, left), (b, a)
    return shift(a, left, b if operator == "+" else f"(- {b})", right)


def shift(point: str, kind: t.LogicalType, amount: str, span: t.LogicalType) -> str:
    """``point`` moved by ``amount`` months or milliseconds."""
    moved = _SHIFTS[type(kind), type(span)](point, amount)
    if isinstance(span, t.YearMonthIntervalType):
        return moved
    if isinstance(kind, t.TimeType):
        return cut_millis(moved, kind.precision)
    if isinstance(kind, t.TimestampType | t.LocalZonedTimestampType) and kind.precision < MILLI_DIGITS:
        return cut_fraction(moved, kind.precision)
    return moved


def _date_millis(point: str, amount: str) -> str:
    return f"date_add({point}, CAST({amount} div {MILLIS_PER_DAY} AS INT))"


def _date_months(point: str, amount: str) -> str:
    return f"add_months({point}, {amount})"


def _time_millis(point: str, amount: str) -> str:
    return f"CAST(pmod({point} + {amount}, {MILLIS_PER_DAY}L) AS INT)"


def _time_months(point: str, amount: str) -> str:
    return f"IF({amount} IS NULL, NULL, {point})"


def _timestamp_millis(point: str, amount: str) -> str:
    return f"timestampadd(MICROSECOND, {amount} * 1000, {point})"


def _timestamp_months(point: str, amount: str) -> str:
    return f"timestampadd(MONTH, {amount}, {point})"


def _instant_months(point: str, amount: str) -> str:
    return utc_instant(f"timestampadd(MONTH, {amount}, {utc_local(point)})")


_SHIFTS: dict[tuple[type[t.LogicalType], type[t.LogicalType]], Callable[[str, str], str]] = {
    (t.DateType, t.DayTimeIntervalType): _date_millis,
    (t.DateType, t.YearMonthIntervalType): _date_months,
    (t.TimeType, t.DayTimeIntervalType): _time_millis,
    (t.TimeType, t.YearMonthIntervalType): _time_months,
    (t.TimestampType, t.DayTimeIntervalType): _timestamp_millis,
    (t.TimestampType, t.YearMonthIntervalType): _timestamp_months,
    (t.LocalZonedTimestampType, t.DayTimeIntervalType): _timestamp_millis,
    (t.LocalZonedTimestampType, t.YearMonthIntervalType): _instant_months,
}
