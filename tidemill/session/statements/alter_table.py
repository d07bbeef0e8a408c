"""ALTER TABLE."""

from __future__ import annotations

from tidemill.catalog.manager import quoted
from tidemill.catalog.table import CatalogTable
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.session import binding
from tidemill.session.context import SessionContext
from tidemill.session.result import TableResult, ok
from tidemill.session.schema import alter
from tidemill.session.schema.precision import cut_times
from tidemill.sql import statements as s


def alter_table(statement: s.AlterTable, context: SessionContext) -> TableResult:
    path = context.catalogs.qualify(statement.path)
    table = context.catalogs.find_permanent(path)
    if not isinstance(table, CatalogTable):
        if statement.if_exists:
            return ok()
        raise ValidationError(
            f"Table {quoted(path)} doesn't exist or is a temporary table.",
            position=statement.position,
            hint=binding.did_you_mean(context.catalogs.nearest(statement.path)),
        )
    if table.upkeep is not None:
        raise ValidationError(
            f"ALTER TABLE is not for {quoted(path)}, which is a materialized table.",
            position=statement.position,
        )
    if isinstance(statement.change, s.RenameTable):
        _rename(table, statement.change, statement, context)
    else:
        type_of = binding.typer(context, statement)
        changed = alter.changed(statement.change, table, type_of)
        context.catalogs.replace(changed)
        context.warn(cut_times(changed))
    return ok()


def _rename(
    table: CatalogTable, change: s.RenameTable, statement: s.AlterTable, context: SessionContext
) -> None:
    target = context.catalogs.qualify(change.to)
    moves = (target.catalog, target.database) != (table.path.catalog, table.path.database)
    if len(change.to) > 1 and moves:
        raise NotSupportedError(
            "Moving a table to another database is not supported", position=statement.position
        )
    context.catalogs.rename(table.path, target.name)
