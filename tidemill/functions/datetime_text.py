"""Dates and times from and to text and epoch numbers: DATE_FORMAT, TO_DATE, TO_TIMESTAMP, UNIX_TIMESTAMP, …

Text that cannot be read gives NULL, but fails in TO_TIMESTAMP_LTZ without a pattern and is the smallest
BIGINT in UNIX_TIMESTAMP. Patterns for reading must be constants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidemill.errors import NotSupportedError
from tidemill.functions.api import Argument, Resolved, ScalarFunction, SparkCall
from tidemill.functions.arrays import times
from tidemill.functions.casts import cast_sql
from tidemill.functions.casts_datetime import cut_fraction, utc_instant
from tidemill.functions.datetime_patterns import LENIENT, SMART, Reader, read_sql, spark_pattern
from tidemill.functions.literals import string_literal
from tidemill.functions.sharing import share
from tidemill.functions.signatures import (
    AS_BIGINT,
    AS_INT,
    CHARACTER,
    NUMERIC,
    TIMESTAMP,
    fixed,
    kind_of,
    nullable,
    overloaded,
    signature,
)
from tidemill.types import logical as t

_DEFAULT_PATTERN = "yyyy-MM-dd HH:mm:ss"
_UNREADABLE = "(-9223372036854775807L - 1L)"
_MILLIS_STAMP = t.TimestampType(precision=3)


def _pattern(call: SparkCall, index: int) -> str:
    """The constant pattern at ``index``; NotSupportedError where it is a column."""
    value = call.literals[index]
    if not isinstance(value, str):
        raise NotSupportedError("A date format must be a constant text")
    return value


def _is_null_literal(call: SparkCall, index: int) -> bool:
    return call.args[index].startswith(("NULL", "CAST(NULL AS"))


def _read(call: SparkCall, reader: Reader, default: str = _DEFAULT_PATTERN) -> str:
    if len(call.args) == 1:
        return read_sql(call.args[0], default, reader)
    if _is_null_literal(call, 1):
        return "CAST(NULL AS TIMESTAMP_NTZ)"
    return read_sql(call.args[0], _pattern(call, 1), reader)


def format_local(local: str, pattern: str, zone: str) -> str:
    """Text of a TIMESTAMP_NTZ: Spark's date_format would take it through the session's zone, where a
    clock change shifts hours that do not exist; its JSON writer leaves it alone."""
    form = string_literal(spark_pattern(pattern))
    if zone in times.UTC_ZONES:
        return f"date_format({local}, {form})"
    json = f"to_json(named_struct('v', {local}), map('timestampNTZFormat', {form}))"
    return f"get_json_object({json}, '$.v')"


def _date_format(call: SparkCall) -> str:
    sql, kind = call.args[0], call.arg_types[0]
    if _is_null_literal(call, 1):
        return "CAST(NULL AS STRING)"
    if isinstance(kind, t.LocalZonedTimestampType):
        return f"date_format({sql}, {string_literal(spark_pattern(_pattern(call, 1)))})"
    local = read_sql(sql, _DEFAULT_PATTERN, LENIENT) if isinstance(kind, t.CHARACTER_TYPES) else sql
    return format_local(local, _pattern(call, 1), call.zone)


def _to_date(call: SparkCall) -> str:
    if len(call.args) == 1:
        return cast_sql(call.args[0], call.arg_types[0], t.DATE, safe=True, zone=call.zone)
    return f"CAST({_read(call, LENIENT)} AS DATE)"


def _text_to_stamp(call: SparkCall) -> str:
    """By the pattern, else as ``yyyy-M-d[ H:m:s[.f]]``, which Flink falls back to under any pattern."""
    text, kind = call.args[0], call.arg_types[0]
    if len(call.args) == 1:
        return cast_sql(text, kind, _MILLIS_STAMP, safe=True, zone=call.zone)
    by_pattern = _read(call, SMART)
    plain = share(text, lambda s: cast_sql(f"trim({s})", t.STRING, _MILLIS_STAMP, safe=True, zone=call.zone))
    return cut_fraction(f"coalesce({by_pattern}, {plain})", 3)


def _unix_timestamp(call: SparkCall) -> str:
    if not call.args:
        return "unix_timestamp()"
    text = call.args[0]
    if len(call.args) == 2 and _is_null_literal(call, 1):
        return "CAST(NULL AS BIGINT)"
    seconds = share(_read(call, LENIENT), _standard_seconds)
    return f"coalesce({seconds}, IF({text} IS NULL, NULL, {_UNREADABLE}))"


def _from_unixtime(call: SparkCall) -> str:
    if len(call.args) == 2 and _is_null_literal(call, 1):
        return "CAST(NULL AS STRING)"
    pattern = _pattern(call, 1) if len(call.args) == 2 else _DEFAULT_PATTERN
    return f"date_format(timestamp_seconds({call.args[0]}), {string_literal(spark_pattern(pattern))})"


def _convert_tz(call: SparkCall) -> str:
    text, source, target = call.args
    local = read_sql(text, _DEFAULT_PATTERN, LENIENT)
    in_utc = share(local, lambda s: _standard_utc(s, source))
    return f"CAST(convert_timezone('UTC', {target}, {in_utc}) AS STRING)"


def _standard_seconds(local: str) -> str:
    """Epoch seconds of a local time; one that a clock change repeats is the second, standard one, as in
    java.text, where Spark's cast would take the first."""

    def later(seconds: str) -> str:
        repeated = f"CAST(timestamp_seconds({seconds} + 3600) AS TIMESTAMP_NTZ) = {local}"
        return f"IF({repeated}, {seconds} + 3600, {seconds})"

    return share(f"unix_seconds(CAST({local} AS TIMESTAMP))", later)


def _standard_utc(local: str, zone: str) -> str:
    """The same in any zone, as local time in UTC."""

    def later(utc: str) -> str:
        after = f"timestampadd(HOUR, 1, {utc})"
        return f"IF(convert_timezone('UTC', {zone}, {after}) = {local}, {after}, {utc})"

    return share(f"convert_timezone({zone}, 'UTC', {local})", later)


def _instant_of(local: str, zone: str) -> str:
    """The instant at which it is ``local`` in ``zone`` (Spark SQL text)."""
    in_utc = local if zone == "'UTC'" else f"convert_timezone({zone}, 'UTC', {local})"
    return utc_instant(in_utc)


def _text_to_instant(call: SparkCall) -> str:
    text = call.args[0]
    if len(call.args) == 1:
        local = cast_sql(text, call.arg_types[0], _MILLIS_STAMP, safe=False, zone=call.zone)
        return _instant_of(local, "'UTC'")
    local = cut_fraction(_read(call, SMART), 3)
    return _instant_of(local, call.args[2] if len(call.args) == 3 else "'UTC'")


_EPOCH_SCALES: dict[int, Callable[[str], str]] = {
    0: lambda n: f"timestamp_micros(CAST({n} AS BIGINT) * 1000000)",
    3: lambda n: f"timestamp_micros(CAST({n} AS BIGINT) * 1000)",
    6: lambda n: f"timestamp_micros(CAST({n} AS BIGINT))",
    9: lambda n: f"timestamp_micros(CAST(floor({n} / 1000) AS BIGINT))",
}


def _number_to_instant(call: SparkCall) -> str:
    digits = call.literals[1] if len(call.args) == 2 else 3
    if digits not in _EPOCH_SCALES or not isinstance(digits, int):
        raise NotSupportedError("TO_TIMESTAMP_LTZ takes the constant precisions 0, 3, 6 and 9")
    if digits == 0 and isinstance(call.arg_types[0], t.APPROXIMATE_TYPES):
        return f"timestamp_micros(CAST(CAST({call.args[0]} AS DOUBLE) * 1000 AS BIGINT) * 1000)"
    return _EPOCH_SCALES[digits](call.args[0])


def _to_instant(call: SparkCall) -> str:
    if isinstance(call.arg_types[0], t.NUMERIC_TYPES):
        return _number_to_instant(call)
    return _text_to_instant(call)


_TEXT_INSTANT = overloaded(
    signature("TO_TIMESTAMP_LTZ", CHARACTER, result=nullable(fixed(t.LocalZonedTimestampType(precision=3)))),
    signature(
        "TO_TIMESTAMP_LTZ",
        CHARACTER,
        CHARACTER,
        CHARACTER,
        optional=1,
        result=nullable(fixed(t.LocalZonedTimestampType(precision=3))),
        forms="TO_TIMESTAMP_LTZ(<NUMERIC> [, <INTEGER>]) or TO_TIMESTAMP_LTZ(<CHARACTER> [, <CHARACTER>"
        " [, <CHARACTER>]])",
    ),
)


def _resolve_instant(arguments: tuple[Argument, ...], options: Mapping[str, str]) -> Resolved:
    """Of numbers the precision decides the type: (6) and (9) stay, 0 and 3 are TIMESTAMP_LTZ(3)."""
    if arguments and not isinstance(arguments[0].type, t.NUMERIC_TYPES):
        return _TEXT_INSTANT(arguments, options)
    digits = arguments[1].literal if len(arguments) == 2 else 3
    precision = max(3, digits) if isinstance(digits, int) and digits in _EPOCH_SCALES else 3
    result = nullable(fixed(t.LocalZonedTimestampType(precision=precision)))
    return signature("TO_TIMESTAMP_LTZ", NUMERIC, AS_INT, optional=1, result=result)(arguments, options)


_SHOWN = kind_of("<TIMESTAMP>", TIMESTAMP, CHARACTER)

FUNCTIONS: tuple[ScalarFunction, ...] = (
    ScalarFunction(
        name="DATE_FORMAT",
        resolve=signature(
            "DATE_FORMAT",
            _SHOWN,
            CHARACTER,
            result=nullable(fixed(t.STRING)),
            forms="DATE_FORMAT(<TIMESTAMP>, <CHARACTER>)\nDATE_FORMAT(<CHARACTER>, <CHARACTER>)",
        ),
        spark=_date_format,
        arrays=times.text,
    ),
    ScalarFunction(
        name="TO_DATE",
        resolve=signature("TO_DATE", CHARACTER, CHARACTER, optional=1, result=nullable(fixed(t.DATE))),
        spark=_to_date,
        arrays=times.parsed,
    ),
    ScalarFunction(
        name="TO_TIMESTAMP",
        resolve=signature(
            "TO_TIMESTAMP", CHARACTER, CHARACTER, optional=1, result=nullable(fixed(_MILLIS_STAMP))
        ),
        spark=_text_to_stamp,
        arrays=times.parsed,
    ),
    ScalarFunction(
        name="TO_TIMESTAMP_LTZ", resolve=_resolve_instant, spark=_to_instant, arrays=times.instant
    ),
    ScalarFunction(
        name="UNIX_TIMESTAMP",
        resolve=overloaded(
            signature("UNIX_TIMESTAMP", result=fixed(t.BIGINT.with_nullable(False))),
            signature("UNIX_TIMESTAMP", CHARACTER, CHARACTER, optional=1, result=fixed(t.BIGINT)),
        ),
        spark=_unix_timestamp,
        deterministic=False,
    ),
    ScalarFunction(
        name="FROM_UNIXTIME",
        resolve=signature(
            "FROM_UNIXTIME",
            AS_BIGINT,
            CHARACTER,
            optional=1,
            result=nullable(fixed(t.STRING)),
            forms="FROM_UNIXTIME(<INTEGER>)\nFROM_UNIXTIME(<INTEGER>, <CHARACTER>)",
        ),
        spark=_from_unixtime,
    ),
    ScalarFunction(
        name="CONVERT_TZ",
        resolve=signature("CONVERT_TZ", CHARACTER, CHARACTER, CHARACTER, result=nullable(fixed(t.STRING))),
        spark=_convert_tz,
    ),
)
