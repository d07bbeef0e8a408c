"""The current time: one value per query in batch and per epoch in streaming.

Milliseconds, as in Flink; CURRENT_TIME and LOCALTIME are whole seconds of the session's zone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidemill.errors import NotSupportedError
from tidemill.functions.api import Argument, Resolved, ScalarFunction, SignatureError, SparkCall
from tidemill.functions.casts_datetime import cut_fraction, cut_millis, millis_of_day
from tidemill.functions.signatures import check_count, fixed, not_null, signature
from tidemill.types import logical as t

_NOW = cut_fraction("current_timestamp()", 3)
_LOCAL_NOW = f"CAST({_NOW} AS TIMESTAMP_NTZ)"
CURRENT_WATERMARK = "CURRENT_WATERMARK"
INSTANTS = frozenset({"CURRENT_ROW_TIMESTAMP", "CURRENT_TIMESTAMP", "NOW", "PROCTIME"})
"""Over Arrow batches these are the time of the epoch's plan, which a repeated task has again."""
_INSTANT = t.LocalZonedTimestampType(precision=3)


def _clock(name: str, kind: t.LogicalType, text: str) -> ScalarFunction:
    resolve = signature(name, result=not_null(fixed(kind)))
    return ScalarFunction(name=name, resolve=resolve, spark=_constant(text), deterministic=False)


def _constant(text: str) -> Callable[[SparkCall], str]:
    return lambda _: text


def _current_watermark(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
    check_count(CURRENT_WATERMARK, len(arguments), 1, 1)
    (kind,) = (a.type for a in arguments)
    if not isinstance(kind, t.TIMESTAMP_TYPES):
        raise SignatureError(
            f"{CURRENT_WATERMARK}() must be called with a single rowtime attribute argument, but '{kind}' "
            "cannot be a time attribute."
        )
    if kind.time_attribute != "ROWTIME":
        raise SignatureError(
            f"The argument of {CURRENT_WATERMARK}() must be a rowtime attribute, but was '{kind}'."
        )
    return Resolved(arg_types=(kind,), result=t.without_attribute(kind.with_nullable(True)))


def _unknown_watermark(call: SparkCall) -> str:
    """Where rows carry their watermark the call is a column of theirs, and not translated."""
    raise NotSupportedError(
        f"{CURRENT_WATERMARK} is supported in SELECT and WHERE over rows as they come from their table"
    )


_TIME = cut_millis(millis_of_day("CAST(current_timestamp() AS TIMESTAMP_NTZ)"), 0)

FUNCTIONS: tuple[ScalarFunction, ...] = (
    _clock("CURRENT_DATE", t.DATE, "current_date()"),
    _clock("CURRENT_TIME", t.TimeType(), _TIME),
    _clock("LOCALTIME", t.TimeType(), _TIME),
    _clock("CURRENT_TIMESTAMP", _INSTANT, _NOW),
    _clock("NOW", _INSTANT, _NOW),
    _clock("CURRENT_ROW_TIMESTAMP", _INSTANT, _NOW),
    _clock("LOCALTIMESTAMP", t.TimestampType(precision=3), _LOCAL_NOW),
    _clock("PROCTIME", t.LocalZonedTimestampType(precision=3, attribute="PROCTIME"), _NOW),
    ScalarFunction(
        name=CURRENT_WATERMARK, resolve=_current_watermark, spark=_unknown_watermark, deterministic=False
    ),
)
