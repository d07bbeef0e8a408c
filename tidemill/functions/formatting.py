"""PRINTF, and TYPEOF.

PRINTF formats as Java's Formatter. A format that does not fit its arguments gives NULL; that is decided
while planning, so for a format that is not a literal a misfit is an error of the query instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidemill.errors import NotSupportedError
from tidemill.functions.api import Argument, Resolved, ScalarFunction, SparkCall
from tidemill.functions.signatures import check_count, mismatch
from tidemill.functions.spark_text import bind, quoted
from tidemill.types import logical as t

_SPECIFIER = re.compile(r"%(?:(\d+)\$)?([-#+ 0,(<]*)(\d+)?(\.\d+)?([a-zA-Z%]|\Z)")
# Of a result that ends Spark's JVM; as in ``LONGEST_TEXT``. Java and Python read it the same.
_WIDE = re.compile(r"%[-#+ 0,(<$.0-9]*[0-9]{8}")
_NULL = "CAST(NULL AS STRING)"
_INTEGRAL = (*t.INTEGER_TYPES, t.DateType, t.TimeType)
# Which types a conversion formats; a value of another type is a misfit unless it is NULL.
_FITS: dict[str, tuple[type[t.LogicalType], ...]] = {
    **dict.fromkeys("doxX", _INTEGRAL),
    **dict.fromkeys("eEfgGaA", t.APPROXIMATE_TYPES),
    **dict.fromkeys("cC", (t.TinyIntType, t.SmallIntType, t.IntType)),
}
_ANY_TYPE = "sSbB"


def _resolve_printf(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
    check_count("PRINTF", len(arguments), 1, None)
    if not isinstance(arguments[0].type, t.CHARACTER_TYPES):
        raise mismatch("PRINTF", arguments, "PRINTF(<CHARACTER>, <ANY>...)")
    return Resolved(arg_types=tuple(a.type for a in arguments), result=t.STRING)


def _printf(call: SparkCall) -> str:
    source = call.literals[0]
    values = [_value(sql, kind) for sql, kind in zip(call.args[1:], call.arg_types[1:], strict=True)]
    if not isinstance(source, str):
        return bind(call.args[0], lambda s: _checked(s, f"format_string({', '.join([s, *values])})"))
    if _WIDE.search(source):
        raise NotSupportedError("PRINTF with a width of more than seven digits is not supported")
    used = _uses(source)
    if used is None or any(index >= len(values) for index, _ in used):
        return _NULL
    wrong = sorted({index for index, conversion in used if not _fits(conversion, call.arg_types[index + 1])})
    shown_values = [_NULL if index in wrong else value for index, value in enumerate(values)]
    formatted = f"format_string({', '.join([quoted(source), *shown_values])})"
    if not wrong:
        return formatted
    all_null = " AND ".join(f"{call.args[index + 1]} IS NULL" for index in wrong)
    return f"CASE WHEN {all_null} THEN {formatted} END"


def _checked(source: str, formatted: str) -> str:
    error = "raise_error('a width of more than seven digits')"
    return f"CASE WHEN {source} RLIKE {quoted(_WIDE.pattern)} THEN {error} ELSE {formatted} END"


def _uses(source: str) -> list[tuple[int, str]] | None:
    """(argument index, conversion) per specifier; None for a format that Java refuses."""
    out: list[tuple[int, str]] = []
    following = 0
    for match in _SPECIFIER.finditer(source):
        position, flags, width, _, conversion = match.groups()
        if conversion in ("%", "n"):
            continue
        if conversion not in (*_FITS, *_ANY_TYPE):
            return None
        if ("-" in flags or "0" in flags) and width is None:
            return None
        if position is None:
            following += 1
        out.append((int(position) - 1 if position else following - 1, conversion))
    stray = _SPECIFIER.sub("", source).count("%")
    return None if stray else out


def _fits(conversion: str, kind: t.LogicalType) -> bool:
    return conversion in _ANY_TYPE or isinstance(kind, (*_FITS[conversion], t.NullType))


def _value(sql: str, kind: t.LogicalType) -> str:
    """What Java's Formatter gets: decimals as their text, dates as days, times as milliseconds."""
    if isinstance(kind, t.DecimalType):
        return f"CAST({sql} AS STRING)"
    if isinstance(kind, t.DateType):
        return f"unix_date({sql})"
    if isinstance(kind, (*t.TIMESTAMP_TYPES, *t.COLLECTION_TYPES, *t.BINARY_TYPES)):
        raise NotSupportedError(f"PRINTF of a {kind.text()}; cast it to STRING")
    return sql


def _resolve_typeof(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
    """TYPEOF(value[, force_serializable])."""
    check_count("TYPEOF", len(arguments), 1, 2)
    if len(arguments) == 2 and not isinstance(arguments[1].type, t.BooleanType):
        raise mismatch("TYPEOF", arguments, "TYPEOF(<ANY>, <BOOLEAN>)")
    return Resolved(arg_types=tuple(a.type for a in arguments), result=t.STRING)


def _typeof(call: SparkCall) -> str:
    """The type as it is declared: a value does not know that its column is a time attribute."""
    (kind, *_) = call.arg_types
    return quoted(str(kind).removesuffix(kind.mark))


FUNCTIONS: tuple[ScalarFunction, ...] = (
    ScalarFunction(name="PRINTF", resolve=_resolve_printf, spark=_printf),
    ScalarFunction(name="TYPEOF", resolve=_resolve_typeof, spark=_typeof),
)
