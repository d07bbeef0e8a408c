"""TIMESTAMPADD, TIMESTAMPDIFF and OVERLAPS.

Differences in units up to a week are whole elapsed units, cut towards zero, as INT that wraps; in
months and longer they count calendar months by Calcite's rule: a month is complete when the day of
the month is reached, the end of a shorter month counting as reached; those of TIMESTAMP_LTZ in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.functions.api import Argument, Resolved, ScalarFunction, SignatureError, SparkCall
from tidemill.functions.arrays import times
from tidemill.functions.arrays.api import ArrayCall, Kernel
from tidemill.functions.casts import cast_sql
from tidemill.functions.casts_datetime import MILLIS_PER_DAY, micros_between, millis_of_day, utc_local
from tidemill.functions.interval import MILLIS, MONTHS, shift
from tidemill.functions.sharing import share
from tidemill.functions.signatures import check_count, mismatch
from tidemill.types import logical as t
from tidemill.types.physical import quote

_PREFIX = "SQL_TSI_"
_UNIT_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12, "DECADE": 120, "CENTURY": 1200, "MILLENNIUM": 12000}
_UNIT_MILLIS = {
    "MILLISECOND": 1,
    "SECOND": 1_000,
    "MINUTE": 60_000,
    "HOUR": 3_600_000,
    "DAY": MILLIS_PER_DAY,
    "WEEK": 7 * MILLIS_PER_DAY,
}
_UNIT_MICROS = {"MICROSECOND": 1, **{unit: n * 1000 for unit, n in _UNIT_MILLIS.items()}}
_POINTS = (t.DateType, t.TimeType, *t.TIMESTAMP_TYPES)
_CLOCK_UNITS = ("HOUR", "MINUTE", "SECOND", "MILLISECOND")


def _unit(options: Mapping[str, str]) -> str:
    return options["unit"].upper().removeprefix(_PREFIX)


def _resolve_add(arguments: tuple[Argument, ...], options: Mapping[str, str]) -> Resolved:
    check_count("TIMESTAMPADD", len(arguments), 2, 2)
    amount, point = (a.type for a in arguments)
    if isinstance(amount, t.NullType):
        amount = t.INT
    if isinstance(point, t.NullType):
        point = t.TimestampType(precision=3)
    if not isinstance(amount, t.INTEGER_TYPES) or not isinstance(point, _POINTS):
        raise mismatch("TIMESTAMPADD", arguments, "TIMESTAMPADD(<TIME_UNIT>, <INTEGER>, <DATETIME>)")
    unit = _unit(options)
    if unit not in _UNIT_MONTHS and unit not in _UNIT_MILLIS:
        raise SignatureError(f"TIMESTAMPADD of unit {unit} is not supported")
    result = _added_type(unit, point).with_nullable(amount.nullable or point.nullable)
    whole = t.INT if unit in _UNIT_MONTHS else t.BIGINT
    point_type = result.with_nullable(point.nullable)
    return Resolved(arg_types=(whole.with_nullable(amount.nullable), point_type), result=result)


def _added_type(unit: str, point: t.LogicalType) -> t.LogicalType:
    if isinstance(point, t.DateType):
        return t.TimestampType(precision=6) if unit in _CLOCK_UNITS else point
    if unit == "MILLISECOND" and isinstance(point, t.TimestampType):
        return t.TimestampType(precision=max(point.precision, 3))
    if unit == "MILLISECOND" and isinstance(point, t.LocalZonedTimestampType):
        return t.LocalZonedTimestampType(precision=max(point.precision, 3))
    if unit == "MILLISECOND" and isinstance(point, t.TimeType):
        return t.TimeType(precision=max(point.precision, 3))
    return point


def _add(call: SparkCall) -> str:
    unit, (amount, point), kind = _unit(call.options), call.args, call.arg_types[1]
    if unit in _UNIT_MONTHS:
        return shift(point, kind, f"({amount} * {_UNIT_MONTHS[unit]})", MONTHS)
    return shift(point, kind, f"({amount} * {_UNIT_MILLIS[unit]}L)", MILLIS)


def elapsed_micros(options: Mapping[str, str]) -> int | None:
    """The microseconds of the unit that a TIMESTAMPDIFF counts in; None for those of months."""
    return _UNIT_MICROS.get(_unit(options))


def _resolve_diff(arguments: tuple[Argument, ...], options: Mapping[str, str]) -> Resolved:
    check_count("TIMESTAMPDIFF", len(arguments), 2, 2)
    unit = _unit(options)
    if unit not in _UNIT_MONTHS and unit not in _UNIT_MICROS:
        raise SignatureError(f"TIMESTAMPDIFF of unit {unit} is not supported")
    typed = [a.type for a in arguments if not isinstance(a.type, t.NullType)]
    wide = _common_point(typed or [t.TimestampType(precision=3)])
    if wide is None:
        raise mismatch("TIMESTAMPDIFF", arguments, "TIMESTAMPDIFF(<TIME_UNIT>, <DATETIME>, <DATETIME>)")
    types = tuple(wide.with_nullable(a.type.nullable) for a in arguments)
    return Resolved(arg_types=types, result=t.INT.with_nullable(any(k.nullable for k in types)))


def _common_point(kinds: list[t.LogicalType]) -> t.LogicalType | None:
    """Both TIMESTAMP_LTZ, both TIME, or dates and timestamps, which meet as timestamps."""
    if any(isinstance(k, t.LocalZonedTimestampType | t.TimeType) for k in kinds):
        return kinds[0] if len({type(k) for k in kinds}) == 1 else None
    if all(isinstance(k, t.DateType | t.TimestampType) for k in kinds):
        return t.TimestampType(precision=9)
    return None


def _diff(call: SparkCall) -> str:
    unit, (a, b), kind = _unit(call.options), call.args, call.arg_types[0]
    if isinstance(kind, t.TimeType):
        micros = f"(CAST({b} - {a} AS BIGINT) * 1000)"
        months = "0"
    else:
        micros = _micros_between(a, b, kind)
        months = f"({_months_between(_local(a, kind), _local(b, kind))})" if unit in _UNIT_MONTHS else ""
    if unit in _UNIT_MONTHS:
        return f"CAST({months} div {_UNIT_MONTHS[unit]} AS INT)"
    return f"CAST({micros} div {_UNIT_MICROS[unit]}L AS INT)"


def _diff_kernel(call: ArrayCall) -> Kernel | None:
    """Of timestamps, in a unit that is not of months."""
    micros = elapsed_micros(call.options)
    if micros is None or not isinstance(call.arg_types[0], t.TIMESTAMP_TYPES):
        return None
    return times.elapsed(micros)


def _micros_between(a: str, b: str, kind: t.LogicalType) -> str:
    if isinstance(kind, t.LocalZonedTimestampType):
        return f"(unix_micros({b}) - unix_micros({a}))"
    return micros_between(a, b)


def _local(sql: str, kind: t.LogicalType) -> str:
    return sql if isinstance(kind, t.TimestampType) else utc_local(sql)


def _months_between(a: str, b: str) -> str:
    """Complete months from TIMESTAMP_NTZ ``a`` to ``b``; the time of day decides on equal days."""

    def body(start: str, end: str) -> str:
        first, last = f"CAST({start} AS DATE)", f"CAST({end} AS DATE)"
        count = f"IF({last} >= {first}, {_date_months(first, last)}, -{_date_months(last, first)})"
        early = f"{millis_of_day(end)} < {millis_of_day(start)}"
        return share(count, lambda n: f"{n} - IF(add_months({first}, {n}) = {last} AND {early}, 1, 0)")

    return share(a, lambda start: share(b, lambda end: body(start, end)))


def _date_months(first: str, last: str) -> str:
    """Complete months from a date to one that is not before it."""
    count = f"((year({last}) - year({first})) * 12 + month({last}) - month({first}))"
    return f"({count} - IF(add_months({first}, {count}) > {last}, 1, 0))"


def _resolve_overlaps(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
    check_count("OVERLAPS", len(arguments), 2, 2)
    if not all(_is_period(a.type) for a in arguments):
        raise mismatch("OVERLAPS", arguments, "<PERIOD> OVERLAPS <PERIOD>")
    types = tuple(a.type for a in arguments)
    nullable = any(f.type.nullable for k in types if isinstance(k, t.RowType) for f in k.fields)
    return Resolved(arg_types=types, result=t.BOOLEAN.with_nullable(nullable))


def _is_period(kind: t.LogicalType) -> bool:
    if not isinstance(kind, t.RowType) or len(kind.fields) != 2:
        return False
    start, end = (f.type for f in kind.fields)
    return isinstance(start, _POINTS) and (type(start) is type(end) or isinstance(end, t.INTERVAL_TYPES))


def _overlaps(call: SparkCall) -> str:
    (a, b), (left, right) = call.args, call.arg_types
    first, second = _bounds(a, left, call.zone), _bounds(b, right, call.zone)
    unknown = " OR ".join(f"{end} IS NULL" for end in (*first, *second))
    touch = (
        f"least({', '.join(first)}) <= greatest({', '.join(second)})"
        f" AND least({', '.join(second)}) <= greatest({', '.join(first)})"
    )
    return f"IF({unknown}, NULL, {touch})"


def _bounds(row: str, kind: t.LogicalType, zone: str) -> tuple[str, str]:
    assert isinstance(kind, t.RowType)
    start, end = (f"{row}.{quote(f.name)}" for f in kind.fields)
    point, until = (f.type for f in kind.fields)
    if isinstance(until, t.INTERVAL_TYPES):
        return start, shift(start, point, end, until)
    return start, cast_sql(end, until, point, safe=False, zone=zone)


FUNCTIONS: tuple[ScalarFunction, ...] = (
    ScalarFunction(name="TIMESTAMPADD", resolve=_resolve_add, spark=_add),
    ScalarFunction(name="TIMESTAMPDIFF", resolve=_resolve_diff, spark=_diff, arrays=_diff_kernel),
    ScalarFunction(name="OVERLAPS", resolve=_resolve_overlaps, spark=_overlaps),
)
