"""One cast of one text, and what happens where a value does not fit.

CAST fails with Flink's message, TRY_CAST gives NULL; a NULL input is NULL in both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidemill.types.logical import LogicalType


@dataclass(frozen=True, slots=True, kw_only=True)
class CastStep:
    """``sql``: Spark SQL text of the carrier of ``source``; ``zone``: table.local-time-zone."""

    sql: str
    source: LogicalType
    target: LogicalType
    safe: bool
    zone: str

    def on(self, sql: str) -> CastStep:
        return replace(self, sql=sql)


def attempt(step: CastStep, value: str, sql: str, message: str) -> str:
    """``value``, which is NULL if ``sql`` cannot be converted; CAST then raises ``message``."""
    if step.safe:
        return value
    return f"coalesce({value}, CASE WHEN {sql} IS NOT NULL THEN raise_error({message}) END)"
