"""Names of a node's columns, and Spark DDL of what a reader or a kernel gives: fields, hidden columns."""

from __future__ import annotations

import pyarrow as pa

from tidemill.changelog.rowkind import INSERT_ONLY, KIND_COLUMN, SEQUENCE_COLUMN, RowKind
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.runtime import graph as g
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_type, quote, spark_schema

_HIDDEN = {KIND_COLUMN: pa.int8(), SEQUENCE_COLUMN: pa.int64(), WATERMARK_COLUMN: pa.int64()}


def names(fields: tuple[Field, ...]) -> tuple[str, ...]:
    return tuple(f.name for f in fields)


def port_schema(fields: tuple[Field, ...], carried: tuple[str, ...], below: g.ExecNode) -> pa.Schema:
    """What a kernel gets of ``below`` when no row came: ``carried``, of which ``fields`` say the types."""
    types = {f.name: arrow_type(f.type) for f in fields}
    return pa.schema([*(pa.field(name, types[name]) for name in carried), *hidden_fields(below)])


def hidden_fields(node: g.ExecNode) -> list[pa.Field]:
    return [pa.field(name, _HIDDEN[name]) for name in node.hidden]


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


def columns_of(fields: tuple[Field, ...]) -> tuple[tuple[str, pa.DataType], ...]:
    """(name, Arrow type) of every field."""
    return tuple((f.name, arrow_type(f.type)) for f in fields)
