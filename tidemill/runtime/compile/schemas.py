"""Names of a node's columns, and Spark DDL of what a reader or a kernel gives: fields, hidden columns."""

from __future__ import annotations

from tidemill.changelog.rowkind import INSERT_ONLY, KIND_COLUMN, SEQUENCE_COLUMN, RowKind
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.types.logical import Field
from tidemill.types.physical import quote, spark_schema


def names(fields: tuple[Field, ...]) -> tuple[str, ...]:
    return tuple(f.name for f in fields)


def keyed_schema(
    fields: tuple[Field, ...], kinds: frozenset[RowKind], sequenced: bool, timed: bool = False
) -> str:
    """Positions count, names are the exec graph's."""
    parts = [spark_schema(fields)] if fields else []
    if kinds != INSERT_ONLY:
        parts.append(f"{quote(KIND_COLUMN)} TINYINT")
    if sequenced:
        parts.append(f"{quote(SEQUENCE_COLUMN)} BIGINT")
    if timed:
        parts.append(f"{quote(WATERMARK_COLUMN)} BIGINT")
    return ", ".join(parts)
