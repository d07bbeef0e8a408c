"""Checks metadata columns against a connector's metadata keys and their types.

A source returns metadata in its key's own type; the reader casts it to the column's type. All metadata
columns of a table are checked, read or not.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.catalog.table import CatalogTable, Column, ColumnKind
from tidemill.connectors.option_values import spelling_hint
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.functions.casts import can_cast
from tidemill.types.logical import LogicalType
from tidemill.types.physical import arrow_type


def metadata_columns(table: CatalogTable) -> tuple[Column, ...]:
    return tuple(c for c in table.columns if c.kind is ColumnKind.METADATA)


def key_of(column: Column) -> str:
    """The metadata key of ``column``: the declared key, or else the column's name."""
    return column.metadata_key or column.name


def check_readable(table: CatalogTable, connector: str, keys: Mapping[str, LogicalType]) -> None:
    """ValidationError for metadata columns that ``connector``, which has ``keys``, cannot fill."""
    columns = metadata_columns(table)
    if columns and not keys:
        raise ValidationError(
            f"Table '{table.path}' declares metadata columns, but the underlying DynamicTableSource of "
            f"connector '{connector}' doesn't implement the SupportsReadingMetadata interface. "
            "Therefore, metadata cannot be read from the given source."
        )
    for column in columns:
        key = key_of(column)
        if key not in keys:
            raise _unknown_key(column, table, connector, keys)
        if not can_cast(keys[key], column.type):
            named = "" if key == column.name else f" with metadata key '{key}'"
            raise ValidationError(
                f"Invalid data type for metadata column '{column.name}'{named} of table '{table.path}'. "
                f"The column cannot be declared as '{column.type}' because the type must be castable from "
                f"metadata type '{keys[key]}'."
            )


def check_writable(table: CatalogTable, connector: str, keys: Mapping[str, LogicalType]) -> None:
    """ValidationError for metadata columns that are not VIRTUAL and that ``connector``, which can write
    ``keys``, cannot store; NotSupportedError for such a column whose values look different from its key's."""
    columns = [c for c in metadata_columns(table) if not c.virtual]
    if columns and not keys:
        raise ValidationError(
            f"Table '{table.path}' declares persistable metadata columns, but the underlying "
            f"DynamicTableSink of connector '{connector}' doesn't implement the SupportsWritingMetadata "
            "interface. If the column should not be persisted, it can be declared with the VIRTUAL keyword."
        )

    for column in columns:
        key = key_of(column)
        if key not in keys:
            raise _unknown_key(column, table, connector, keys, "writing", "Sink")
        if arrow_type(column.type) != arrow_type(keys[key]):
            raise NotSupportedError(
                f"Writing metadata column '{column.name}' of type {column.type} as '{key}',"
                f" which is {keys[key]}",
                hint=f"Declare the column as {keys[key].with_nullable(True)}, or as VIRTUAL.",
            )


def _unknown_key(
    column: Column,
    table: CatalogTable,
    connector: str,
    keys: Mapping[str, LogicalType],
    use: str = "reading",
    side: str = "Source",
) -> ValidationError:
    key = key_of(column)
    return ValidationError(
        f"Invalid metadata key '{key}' in column '{column.name}' of table '{table.path}'. The "
        f"DynamicTable{side} of connector '{connector}' supports the following metadata keys for {use}:\n"
        + "\n".join(keys),
        hint=spelling_hint((key,), keys),
    )
