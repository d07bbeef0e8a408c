"""The text of values in results: what a client prints and what the JSON output has.

BOOLEAN, integers, FLOAT and DOUBLE stay values (``is_plain``); everything else is the text that
CAST(x AS STRING) gives, byte strings as ``x'0aff'``.
"""

from __future__ import annotations

from tidemill.functions.casts import cast_sql
from tidemill.types import logical as t

_PLAIN = (t.BooleanType, *t.INTEGER_TYPES, *t.APPROXIMATE_TYPES, t.NullType, *t.CHARACTER_TYPES)


def is_plain(kind: t.LogicalType) -> bool:
    """Whether values of ``kind`` are shown as they are, without a cast to text."""
    return isinstance(kind, _PLAIN)


def render_sql(sql: str, kind: t.LogicalType, zone: str) -> str:
    """Spark SQL text of the shown form of ``sql``; NULL stays NULL."""
    if is_plain(kind):
        return sql
    if isinstance(kind, t.BINARY_TYPES):
        return f"concat('x\\'', lower(hex({sql})), '\\'')"
    return cast_sql(sql, kind, t.STRING.with_nullable(kind.nullable), safe=False, zone=zone)
