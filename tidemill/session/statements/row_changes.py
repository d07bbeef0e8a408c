"""Statements that change the rows of a table where it lies: TRUNCATE TABLE."""

from __future__ import annotations

from tidemill.catalog.table import CatalogTable
from tidemill.connectors.api import TruncatingConnector
from tidemill.connectors.registry import validate
from tidemill.errors import NotSupportedError, Position, ValidationError
from tidemill.session import execution, planning
from tidemill.session.context import SessionContext
from tidemill.session.result import TableResult, ok
from tidemill.sql import statements as s


def truncate(statement: s.TruncateTable, context: SessionContext) -> TableResult:
    if not execution.is_batch(context):
        raise ValidationError(
            "TRUNCATE TABLE statement is not supported in streaming mode.", position=statement.position
        )
    table = _table(statement.path, statement.position, context)
    found = validate(table, table.options, role="sink")
    if not isinstance(found, TruncatingConnector):
        raise NotSupportedError(
            f"TRUNCATE TABLE of a table of connector '{found.identifier}'", position=statement.position
        )
    found.truncate(table, table.options)
    return ok()


def _table(path: tuple[str, ...], position: Position, context: SessionContext) -> CatalogTable:
    """The table whose rows change."""
    full = context.catalogs.qualify(path)
    found = context.catalogs.find(full)
    if not isinstance(found, CatalogTable):
        what = "doesn't exist" if found is None else "is a view"
        raise ValidationError(
            f"Table `{full.catalog}`.`{full.database}`.`{full.name}` {what}.",
            position=position,
            hint=planning.did_you_mean(context.catalogs.nearest(path)) if found is None else "",
        )
    context.permissions.check_table(found, found.options, position)
    return found
