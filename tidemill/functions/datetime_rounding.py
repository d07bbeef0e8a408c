"""FLOOR and CEIL, of numbers and of dates and times TO a unit.

A week starts on Sunday. TIMESTAMP_LTZ is rounded in the session's zone; units up to an hour move the
instant itself, so the repeated hour of a clock change keeps its place. CEIL leaves exact values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tidemill.functions.api import Argument, Resolved, Resolver, ScalarFunction, SignatureError, SparkCall
from tidemill.functions.arrays import numeric, times
from tidemill.functions.casts_datetime import MILLIS_PER_DAY, cut_fraction
from tidemill.functions.numeric import CEIL_NUMBER, FLOOR_NUMBER, whole_number_resolver
from tidemill.functions.sharing import share
from tidemill.functions.signatures import check_count, mismatch, with_aliases
from tidemill.types import logical as t
from tidemill.types.physical import spark_type

Step = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class DateUnit:
    """A unit of whole days: the first day of the unit of a date, and the first day of the next."""

    floor: Step
    following: Step


def _months(count: int) -> Step:
    return lambda d: f"add_months({d}, {count})"


def _days(count: int) -> Step:
    return lambda d: f"date_add({d}, {count})"


_DATE_UNITS = {
    "DAY": DateUnit(lambda d: d, _days(1)),
    "WEEK": DateUnit(lambda d: f"date_sub(next_day({d}, 'SUN'), 7)", _days(7)),
    "MONTH": DateUnit(lambda d: f"trunc({d}, 'MONTH')", _months(1)),
    "QUARTER": DateUnit(lambda d: f"trunc({d}, 'QUARTER')", _months(3)),
    "YEAR": DateUnit(lambda d: f"trunc({d}, 'YEAR')", _months(12)),
    "DECADE": DateUnit(lambda d: f"make_date(CAST(floor(year({d}) / 10) * 10 AS INT), 1, 1)", _months(120)),
    "CENTURY": DateUnit(lambda d: f"make_date({_block(d, 100)}, 1, 1)", _months(1200)),
    "MILLENNIUM": DateUnit(lambda d: f"make_date({_block(d, 1000)}, 1, 1)", _months(12000)),
}
_CLOCK_MILLIS = {"HOUR": 3_600_000, "MINUTE": 60_000, "SECOND": 1_000, "MILLISECOND": 1}


def _block(date: str, years: int) -> str:
    """The first year of a century or millennium: 1901, 2001."""
    return f"CAST(floor((year({date}) - 1) / {years}) * {years} + 1 AS INT)"


def _floor_clock(stamp: str, unit: str) -> str:
    if unit == "MILLISECOND":
        return cut_fraction(stamp, 3)
    if unit == "SECOND":
        return cut_fraction(stamp, 0)

    def body(s: str) -> str:
        micros = f"CAST(extract(SECOND FROM {s}) * 1000000 AS BIGINT)"
        if unit == "HOUR":
            micros += f" + minute({s}) * 60000000L"
        return f"timestampadd(MICROSECOND, -({micros}), {s})"

    return share(stamp, body)


def _floor_stamp(stamp: str, unit: str, kind: t.LogicalType) -> str:
    if unit in _CLOCK_MILLIS:
        return _floor_clock(stamp, unit)
    return f"CAST({_DATE_UNITS[unit].floor(f'CAST({stamp} AS DATE)')} AS {spark_type(kind)})"


def _ceil_stamp(stamp: str, unit: str, kind: t.LogicalType) -> str:
    if unit in _CLOCK_MILLIS:
        after = f"timestampadd(MICROSECOND, {_CLOCK_MILLIS[unit] * 1000}L, {{}})"
        return share(stamp, lambda s: _unless_exact(s, _floor_clock(s, unit), after))
    following = f"CAST({_DATE_UNITS[unit].following('CAST({} AS DATE)')} AS {spark_type(kind)})"
    return share(stamp, lambda s: _unless_exact(s, _floor_stamp(s, unit, kind), following))


def _unless_exact(value: str, floor: str, following: str) -> str:
    return share(floor, lambda f: f"IF({f} = {value}, {value}, {following.format(f)})")


def _floor_date(date: str, unit: str, _: t.LogicalType) -> str:
    return date if unit in _CLOCK_MILLIS else _DATE_UNITS[unit].floor(date)


def _ceil_date(date: str, unit: str, _: t.LogicalType) -> str:
    if unit in _CLOCK_MILLIS:
        return date
    following = _DATE_UNITS[unit].following("{}")
    return share(date, lambda d: _unless_exact(d, _DATE_UNITS[unit].floor(d), following))


def _floor_time(time: str, unit: str, _: t.LogicalType) -> str:
    size = _CLOCK_MILLIS[unit]
    return f"CAST({time} div {size} * {size} AS INT)"


def _ceil_time(time: str, unit: str, _: t.LogicalType) -> str:
    size = _CLOCK_MILLIS[unit]
    return f"CAST(({time} + {size - 1}) div {size} * {size} % {MILLIS_PER_DAY} AS INT)"


Rounding = Callable[[str, str, t.LogicalType], str]
_ROUNDINGS: dict[tuple[str, type[t.LogicalType]], Rounding] = {
    ("FLOOR", t.DateType): _floor_date,
    ("FLOOR", t.TimeType): _floor_time,
    ("FLOOR", t.TimestampType): _floor_stamp,
    ("FLOOR", t.LocalZonedTimestampType): _floor_stamp,
    ("CEIL", t.DateType): _ceil_date,
    ("CEIL", t.TimeType): _ceil_time,
    ("CEIL", t.TimestampType): _ceil_stamp,
    ("CEIL", t.LocalZonedTimestampType): _ceil_stamp,
}
_FORMS = (
    "{0}(<NUMERIC>)\n{0}(<DATE> TO <TIME_UNIT>)\n{0}(<TIME> TO <TIME_UNIT>)\n{0}(<TIMESTAMP> TO <TIME_UNIT>)"
)


def _resolver(name: str) -> Resolver:
    number = whole_number_resolver(name)

    def resolve(arguments: tuple[Argument, ...], options: Mapping[str, str]) -> Resolved:
        check_count(name, len(arguments), 1, 1)
        kind = arguments[0].type
        if "unit" not in options:
            if not isinstance(kind, (*t.NUMERIC_TYPES, t.NullType)):
                raise mismatch(name, arguments, _FORMS.format(name))
            return number(arguments, options)
        if isinstance(kind, t.NullType):
            kind = t.TimestampType(precision=3)
        if (name, type(kind)) not in _ROUNDINGS:
            raise mismatch(name, arguments, _FORMS.format(name))
        unit = options["unit"].upper()
        units = _CLOCK_MILLIS if isinstance(kind, t.TimeType) else {**_CLOCK_MILLIS, **_DATE_UNITS}
        if unit not in units:
            raise SignatureError(f"{name} of {kind} to {unit} is not supported")
        return Resolved(arg_types=(kind,), result=kind)

    return resolve


def _spark(name: str, number: Callable[[SparkCall], str]) -> Callable[[SparkCall], str]:
    def spark(call: SparkCall) -> str:
        if "unit" not in call.options:
            return number(call)
        kind = call.arg_types[0]
        return _ROUNDINGS[name, type(kind)](call.args[0], call.options["unit"].upper(), kind)

    return spark


FUNCTIONS: tuple[ScalarFunction, ...] = (
    ScalarFunction(
        name="FLOOR",
        resolve=_resolver("FLOOR"),
        spark=_spark("FLOOR", FLOOR_NUMBER),
        arrays=numeric.whole("floor", times.floor),
    ),
    *with_aliases(
        ScalarFunction(
            name="CEIL",
            resolve=_resolver("CEIL"),
            spark=_spark("CEIL", CEIL_NUMBER),
            arrays=numeric.whole("ceil"),
        ),
        "CEILING",
    ),
)
