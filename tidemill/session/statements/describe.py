"""DESCRIBE and SHOW COLUMNS: one row per column of a table or view."""

from __future__ import annotations

from typing import Any

from tidemill.catalog.table import CatalogFrame, CatalogTable, CatalogView, Column, ColumnKind, ObjectPath
from tidemill.errors import ValidationError
from tidemill.session import planning
from tidemill.session.context import SessionContext
from tidemill.session.result import TableResult, listing
from tidemill.session.schema.expression_text import canonical
from tidemill.session.statements import like
from tidemill.sql import statements as s
from tidemill.types.logical import (
    BOOLEAN,
    STRING,
    Field,
    LocalZonedTimestampType,
    LogicalType,
    TimestampType,
)

_COLUMNS = (
    Field("name", STRING),
    Field("type", STRING),
    Field("null", BOOLEAN),
    Field("key", STRING),
    Field("extras", STRING),
    Field("watermark", STRING),
)
_COMMENT = Field("comment", STRING)


def describe(statement: s.Describe, context: SessionContext) -> TableResult:
    return _result(_described(statement.path, context), None)


def show_columns(statement: s.Show, context: SessionContext) -> TableResult:
    return _result(_described(statement.path, context), statement)


def _described(name: s.Path, context: SessionContext) -> CatalogTable:
    """What ``name`` names, as a table: a view's columns are its query's."""
    path = context.catalogs.qualify(name)
    entry = context.catalogs.find(path)
    match entry:
        case CatalogTable():
            return entry
        case CatalogView():
            return _as_table(path, planning.view_fields(context, path))
        case CatalogFrame():
            return _as_table(path, entry.fields)
    raise ValidationError(
        f"Tables or views with the identifier '{path}' doesn't exist.",
        hint=planning.did_you_mean(context.catalogs.nearest(name)),
    )


def _as_table(path: ObjectPath, fields: tuple[Field, ...]) -> CatalogTable:
    return CatalogTable(
        path=path, columns=tuple(Column(name=f.name, type=f.type) for f in fields), options={}
    )


def _result(table: CatalogTable, pattern: s.Show | None) -> TableResult:
    commented = any(c.comment for c in table.columns)
    rows = [
        _row(table, c) + ((c.comment or None,) if commented else ())
        for c in table.columns
        if pattern is None or like.matches(pattern, c.name)
    ]
    return listing((*_COLUMNS, _COMMENT) if commented else _COLUMNS, rows)


def _row(table: CatalogTable, column: Column) -> tuple[Any, ...]:
    key = f"PRI({', '.join(table.primary_key)})" if column.name in table.primary_key else None
    watermark = table.watermark
    timed = watermark is not None and watermark.column == column.name
    kind = column.type.with_nullable(True)
    return (
        column.name,
        str(_rowtime(kind) if timed else kind),
        column.type.nullable,
        key,
        _extras(column),
        canonical(watermark.expression) if timed and watermark else None,
    )


def _rowtime(kind: LogicalType) -> LogicalType:
    match kind:
        case TimestampType():
            return TimestampType(precision=kind.precision, rowtime=True)
        case LocalZonedTimestampType():
            return LocalZonedTimestampType(precision=kind.precision, attribute="ROWTIME")
    return kind


def _extras(column: Column) -> str | None:
    if column.kind is ColumnKind.COMPUTED:
        return f"AS {canonical(column.expression)}"
    if column.kind is ColumnKind.METADATA:
        return "METADATA" + metadata_suffix(column)
    return None


def metadata_suffix(column: Column) -> str:
    """`` FROM 'key' VIRTUAL``, the parts that apply."""
    source = f" FROM '{column.metadata_key}'" if column.metadata_key else ""
    return source + (" VIRTUAL" if column.virtual else "")
