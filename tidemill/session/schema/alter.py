"""ALTER TABLE: one function per change, table in, table out.

After a change the table is put together again as by CREATE TABLE: computed columns and the watermark
get their types anew, so a change that breaks them is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch

from tidemill.catalog.table import CatalogTable, Column, ColumnKind
from tidemill.errors import ValidationError
from tidemill.session.schema import partitions
from tidemill.session.schema.columns import TypeOf, check_distribution, declared, find, typed
from tidemill.session.schema.primary_key import only_key, with_key
from tidemill.session.schema.watermark import with_watermark
from tidemill.sql import statements as s
from tidemill.sql.lexer import Kind, tokens


@singledispatch
def changed(change: s.TableChange, table: CatalogTable, type_of: TypeOf) -> CatalogTable:
    """The table after ``change``; RENAME TO is the catalog's affair and not handled here."""
    raise TypeError(type(change).__name__)


def failed(message: str) -> ValidationError:
    return ValidationError(f"Failed to execute ALTER TABLE statement.\n{message}")


@changed.register
def _(change: s.SetOptions, table: CatalogTable, type_of: TypeOf) -> CatalogTable:
    return replace(table, options={**table.options, **dict(change.options)})


@changed.register
def _(change: s.ResetOptions, table: CatalogTable, type_of: TypeOf) -> CatalogTable:
    if not change.keys:
        raise ValidationError("ALTER TABLE RESET does not support empty key")
    if "connector" in change.keys:
        raise ValidationError("ALTER TABLE RESET does not support changing 'connector'.")
    return replace(table, options={k: v for k, v in table.options.items() if k not in change.keys})


@changed.register
def _(change: s.SetDistribution, table: CatalogTable, type_of: TypeOf) -> CatalogTable:
    if change.add and table.distribution is not None:
        raise failed(
            f"The current table has already defined the distribution `{table.distribution.ddl}`. You can "
            "modify it or drop it before adding a new one."
        )
    if not change.add and table.distribution is None:
        raise failed("The base table does not define any distribution.")
    made = replace(table, distribution=change.distribution)
    check_distribution(made, None)
    return made


@changed.register
def _(change: s.AddPartitions, table: CatalogTable, type_of: TypeOf) -> CatalogTable:
    return partitions.added(change, table)


@changed.register
def _(change: s.DropPartitions, table: CatalogTable, type_of: TypeOf) -> CatalogTable:
    return partitions.dropped(change, table)


@changed.register
def _(change: s.AddSchema, table: CatalogTable, type_of: TypeOf) -> CatalogTable:
    columns = list(table.columns)
    for placed in change.columns:
        if find(columns, placed.column.name) is not None:
            raise failed(f"Column `{placed.column.name}` already exists in the table.")
        _insert(columns, declared(placed.column), placed)
    if change.constraints and table.primary_key:
        listed = ", ".join(f"`{c}`" for c in table.primary_key)
        raise failed(
            f"The current table has already defined the primary key constraint [{listed}]. You might want "
            "to drop it before adding a new one."
        )
    if change.watermarks and table.watermark is not None:
        raise failed(
            f"The current table has already defined the watermark strategy `{table.watermark.column}` AS "
            f"{table.watermark.expression}. You might want to drop it before adding a new one."
        )
    return _completed(replace(table, columns=tuple(columns)), change.constraints, change.watermarks, type_of)


@changed.register
def _(change: s.ModifySchema, table: CatalogTable, type_of: TypeOf) -> CatalogTable:
    columns = list(table.columns)
    for placed in change.columns:
        _modify(columns, placed)
    if change.constraints and not table.primary_key:
        raise failed(
            "The current table does not define any primary key constraint. You might want to add a new one."
        )
    if change.watermarks and table.watermark is None:
        raise failed(
            "The current table does not define any watermark strategy. You might want to add a new one."
        )
    return _completed(replace(table, columns=tuple(columns)), change.constraints, change.watermarks, type_of)


@changed.register
def _(change: s.RenameColumn, table: CatalogTable, type_of: TypeOf) -> CatalogTable:
    name = ".".join(change.column)
    _check_free(table, name)
    if find(table.columns, change.to) is not None:
        raise failed(f"The column `{change.to}` already existed in table schema.")
    columns = tuple(replace(c, name=change.to) if c.name == name else c for c in table.columns)
    key = tuple(change.to if k == name else k for k in table.primary_key)
    partitions = tuple(change.to if k == name else k for k in table.partitioned_by)
    return replace(table, columns=columns, primary_key=key, partitioned_by=partitions)


@changed.register
def _(change: s.DropColumns, table: CatalogTable, type_of: TypeOf) -> CatalogTable:
    names = [".".join(path) for path in change.columns]
    for name in names:
        _check_free(table, name, dropped=names)
        if name in table.primary_key:
            raise failed(f"The column `{name}` is used as the primary key.")
        if name in table.partitioned_by:
            raise failed(f"The column `{name}` is used as the partition keys.")
    return replace(table, columns=tuple(c for c in table.columns if c.name not in names))


@changed.register
def _(change: s.DropConstraint, table: CatalogTable, type_of: TypeOf) -> CatalogTable:
    if not table.primary_key:
        raise failed("The current table does not define any primary key.")
    if change.name and change.name != table.primary_key_name:
        raise failed(
            "The base table does not define a primary key constraint named "
            f"'{change.name}'. Available constraint name: ['{table.primary_key_name}']."
        )
    return replace(table, primary_key=(), primary_key_name="")


@changed.register
def _(change: s.DropWatermark, table: CatalogTable, type_of: TypeOf) -> CatalogTable:
    if table.watermark is None:
        raise failed("The current table does not define any watermark strategy.")
    return replace(table, watermark=None)


def _insert(columns: list[Column], column: Column, placed: s.PlacedColumn) -> None:
    if placed.placement is s.Placement.LAST:
        columns.append(column)
        return
    if placed.placement is s.Placement.FIRST:
        columns.insert(0, column)
        return
    after = ".".join(placed.after)
    if find(columns, after) is None:
        raise failed(f"Referenced column `{after}` by 'AFTER' does not exist in the table.")
    columns.insert([c.name for c in columns].index(after) + 1, column)


def _modify(columns: list[Column], placed: s.PlacedColumn) -> None:
    column = declared(placed.column)
    old = find(columns, column.name)
    if old is None:
        raise failed(f"Column `{column.name}` does not exist in the table.")
    kept = replace(column, comment=column.comment or old.comment)
    if placed.placement is s.Placement.LAST:
        columns[columns.index(old)] = kept
        return
    columns.remove(old)
    _insert(columns, kept, placed)


def _completed(
    table: CatalogTable,
    constraints: Sequence[s.Constraint],
    watermarks: Sequence[s.Watermark],
    type_of: TypeOf,
) -> CatalogTable:
    key = only_key(constraints)
    base = replace(table, primary_key=(), primary_key_name="") if key else table
    return with_watermark(typed(with_key(base, key), type_of), watermarks, type_of)


def _check_free(table: CatalogTable, name: str, *, dropped: Sequence[str] = ()) -> None:
    """The column exists and no computed column or watermark that stays uses it."""
    if find(table.columns, name) is None:
        raise failed(f"The column `{name}` does not exist in the base table.")
    for column in table.columns:
        if (
            column.kind is ColumnKind.COMPUTED
            and column.name not in dropped
            and _mentions(column.expression, name)
        ):
            raise failed(f"The column `{name}` is referenced by computed column `{column.name}`.")
    watermark = table.watermark
    if watermark is not None and (watermark.column == name or _mentions(watermark.expression, name)):
        raise failed(f"The column `{name}` is referenced by watermark expression.")


def _mentions(expression: str, name: str) -> bool:
    return any(t.kind in (Kind.WORD, Kind.QUOTED) and t.value == name for t in tokens(expression))
