"""EXTRACT(unit FROM x) and its short forms YEAR(x), DAYOFWEEK(x), …

Fields are those of the local time: of TIMESTAMP_LTZ in the session's zone, of times before 1970 counted
from the past, so that no field is ever negative. WEEK and ISOYEAR are ISO 8601, DOW counts from Sunday
= 1, MILLISECOND and smaller are the fraction of the second. EPOCH is seconds of the local time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidemill.functions.api import Argument, Resolved, Resolver, ScalarFunction, SignatureError, SparkCall
from tidemill.functions.arrays import times
from tidemill.functions.casts_datetime import EPOCH, seconds_between
from tidemill.functions.signatures import check_count, mismatch
from tidemill.types import logical as t

Field = Callable[[str], str]

_DATE_FIELDS: dict[str, Field] = {
    "YEAR": lambda s: f"year({s})",
    "QUARTER": lambda s: f"quarter({s})",
    "MONTH": lambda s: f"month({s})",
    "WEEK": lambda s: f"weekofyear({s})",
    "DAY": lambda s: f"day({s})",
    "DOW": lambda s: f"dayofweek({s})",
    "ISODOW": lambda s: f"(weekday({s}) + 1)",
    "DOY": lambda s: f"dayofyear({s})",
    "ISOYEAR": lambda s: f"extract(YEAROFWEEK FROM {s})",
    "DECADE": lambda s: f"floor(year({s}) / 10)",
    "CENTURY": lambda s: f"ceil(year({s}) / 100)",
    "MILLENNIUM": lambda s: f"ceil(year({s}) / 1000)",
}
_CLOCK_FIELDS: dict[str, Field] = {
    "HOUR": lambda s: f"hour({s})",
    "MINUTE": lambda s: f"minute({s})",
    "SECOND": lambda s: f"second({s})",
    "MILLISECOND": lambda s: f"(extract(SECOND FROM {s}) % 1 * 1000)",
    "MICROSECOND": lambda s: f"(extract(SECOND FROM {s}) % 1 * 1000000)",
    "NANOSECOND": lambda s: f"(extract(SECOND FROM {s}) % 1 * 1000000000)",
}
_MILLI_FIELDS: dict[str, Field] = {
    "HOUR": lambda s: f"({s} div 3600000 % 24)",
    "MINUTE": lambda s: f"({s} div 60000 % 60)",
    "SECOND": lambda s: f"({s} div 1000 % 60)",
    "MILLISECOND": lambda s: f"({s} % 1000)",
}
_MIDNIGHT_FIELDS: dict[str, Field] = dict.fromkeys(
    ("HOUR", "MINUTE", "SECOND", "MILLISECOND"), lambda s: f"IF({s} IS NULL, NULL, 0)"
)
_MONTH_FIELDS: dict[str, Field] = {
    "YEAR": lambda s: f"({s} div 12)",
    "QUARTER": lambda s: f"({s} % 12 div 3)",
    "MONTH": lambda s: f"({s} % 12)",
    "DECADE": lambda s: f"({s} div 120)",
    "CENTURY": lambda s: f"({s} div 1200)",
    "MILLENNIUM": lambda s: f"({s} div 12000)",
}


def _epoch(local: str) -> str:
    return f"floor({seconds_between(EPOCH, local)})"


_STAMP_FIELDS = {**_DATE_FIELDS, **_CLOCK_FIELDS}
FIELDS: dict[type[t.LogicalType], dict[str, Field]] = {
    t.DateType: {
        **_DATE_FIELDS,
        **_MIDNIGHT_FIELDS,
        "EPOCH": lambda s: f"(datediff({s}, DATE'1970-01-01') * 86400L)",
    },
    t.TimeType: _MILLI_FIELDS,
    t.TimestampType: {**_STAMP_FIELDS, "EPOCH": _epoch},
    t.LocalZonedTimestampType: {
        **_STAMP_FIELDS,
        "EPOCH": lambda s: _epoch(f"CAST({s} AS TIMESTAMP_NTZ)"),
    },
    t.DayTimeIntervalType: {**_MILLI_FIELDS, "DAY": lambda s: f"({s} div 86400000)"},
    t.YearMonthIntervalType: _MONTH_FIELDS,
}

_SHORT_FORMS = {
    "YEAR": "YEAR",
    "QUARTER": "QUARTER",
    "MONTH": "MONTH",
    "WEEK": "WEEK",
    "DAYOFYEAR": "DOY",
    "DAYOFMONTH": "DAY",
    "DAYOFWEEK": "DOW",
    "HOUR": "HOUR",
    "MINUTE": "MINUTE",
    "SECOND": "SECOND",
}


def _resolver(name: str, unit: str | None) -> Resolver:
    def resolve(arguments: tuple[Argument, ...], options: Mapping[str, str]) -> Resolved:
        check_count(name, len(arguments), 1, 1)
        kind = arguments[0].type
        if isinstance(kind, t.NullType):
            kind = t.TimestampType(precision=3)
        if type(kind) not in FIELDS:
            raise mismatch("EXTRACT", arguments, "EXTRACT(<DATETIME_INTERVAL> FROM <DATETIME>)")
        unit_name = unit or options["unit"].upper()
        if unit_name not in FIELDS[type(kind)]:
            type_name = "time" if isinstance(kind, t.TimeType) else str(kind)
            raise SignatureError(f"unit {unit_name} can not be applied to {type_name} variable")
        return Resolved(arg_types=(kind,), result=t.BIGINT.with_nullable(kind.nullable))

    return resolve


def _extract(unit: str | None) -> Callable[[SparkCall], str]:
    def spark(call: SparkCall) -> str:
        field = FIELDS[type(call.arg_types[0])][unit or call.options["unit"].upper()]
        return f"CAST({field(call.args[0])} AS BIGINT)"

    return spark


FUNCTIONS: tuple[ScalarFunction, ...] = (
    ScalarFunction(
        name="EXTRACT",
        resolve=_resolver("EXTRACT", None),
        spark=_extract(None),
        arrays=times.extract(None),
    ),
    *(
        ScalarFunction(
            name=name,
            resolve=_resolver(name, unit),
            spark=_extract(unit),
            arrays=times.extract(unit),
        )
        for name, unit in _SHORT_FORMS.items()
    ),
)
