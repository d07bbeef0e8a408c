"""DESCRIBE and SHOW COLUMNS: one row per column of a table or view, or per fact of something else."""

from __future__ import annotations

from typing import Any

from tidemill.catalog.table import CatalogFrame, CatalogTable, CatalogView, Column, ColumnKind, ObjectPath
from tidemill.config.secrets import shown_value
from tidemill.errors import ValidationError
from tidemill.functions import registry
from tidemill.session import binding
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


_FACTS = (Field("info name", STRING), Field("info value", STRING))


def describe_catalog(statement: s.DescribeCatalog, context: SessionContext) -> TableResult:
    catalog = context.catalogs.described(statement.name)
    rows: list[tuple[str, str | None]] = [
        ("name", catalog.name),
        ("type", catalog.options.get("type", "")),
        ("comment", catalog.comment),
    ]
    if statement.extended:
        others = sorted(k for k in catalog.options if k != "type")
        rows += [(f"option:{k}", shown_value(k, catalog.options[k])) for k in others]
    return listing(_FACTS, rows)


def describe_function(statement: s.DescribeFunction, context: SessionContext) -> TableResult:
    """Of a built-in one Flink shows more, which it derives from its class."""
    functions = context.catalogs.functions
    name, path = statement.path[-1], context.catalogs.qualify(statement.path)
    plain = len(statement.path) == 1
    own = functions.system(name) if plain else None
    built_in = plain and name.upper() in registry.names() and context.modules.core_is_used
    if own is None and not built_in:
        own = functions.find(path)
    if own is None and not built_in:
        quoted = ".".join(f"`{part}`" for part in statement.path)
        raise ValidationError(
            f"Function with the identifier '{quoted}' doesn't exist.", position=statement.position
        )
    rows = [
        ("is system function", str(own is None or own.path is None).lower()),
        ("is temporary", str(own is not None and own.temporary).lower()),
    ]
    if own is not None:
        rows += [("class name", own.implementation), ("function language", own.language)]
    return listing(_FACTS, rows)


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
            return _as_table(path, binding.view_fields(context, path))
        case CatalogFrame():
            return _as_table(path, entry.fields)
    raise ValidationError(
        f"Tables or views with the identifier '{path}' doesn't exist.",
        hint=binding.did_you_mean(context.catalogs.nearest(name)),
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
