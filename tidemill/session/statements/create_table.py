"""CREATE TABLE with columns or LIKE."""

from __future__ import annotations

from tidemill.catalog.manager import quoted
from tidemill.catalog.table import CatalogTable
from tidemill.errors import ValidationError
from tidemill.session import binding
from tidemill.session.context import SessionContext
from tidemill.session.result import TableResult, ok
from tidemill.session.schema.precision import cut_times
from tidemill.session.schema.table import completed, like_table, plain_table
from tidemill.session.statements import create_table_as, materialized
from tidemill.sql import statements as s


def create_table(statement: s.CreateTable, context: SessionContext) -> TableResult:
    """OK, or for CREATE TABLE AS the job that fills the table. OR REPLACE means something with AS only."""
    if statement.freshness is not None:
        return materialized.create(statement, statement.freshness, context)
    if statement.query is not None:
        return create_table_as.create(statement, context, taken=_taken(statement, context))
    if not _taken(statement, context):
        table = resolved(statement, context)
        context.catalogs.create(table, ignore_if_exists=statement.if_not_exists)
        context.warn(cut_times(table))
    return ok()


def resolved(statement: s.CreateTable, context: SessionContext) -> CatalogTable:
    """The table as the catalog will keep it; nothing is created."""
    path = context.catalogs.qualify(statement.path)
    type_of = binding.typer(context, statement)
    if statement.like is None:
        return completed(statement, plain_table(statement, path), type_of)
    source = context.catalogs.find(context.catalogs.qualify(statement.like.source))
    if not isinstance(source, CatalogTable):
        known = quoted(context.catalogs.qualify(statement.like.source))
        raise ValidationError(
            f"Source table '{known}' of the LIKE clause not found in the catalog, "
            f"at {statement.like.position}",
            position=statement.like.position,
            hint=binding.did_you_mean(context.catalogs.nearest(statement.like.source)),
        )
    return completed(statement, like_table(statement, path, source), type_of)


def _taken(statement: s.CreateTable, context: SessionContext) -> bool:
    """Whether IF NOT EXISTS leaves nothing to do, not even to check the definition."""
    path = context.catalogs.qualify(statement.path)
    held = context.catalogs.temporary if statement.temporary else None
    exists = path in held if held is not None else context.catalogs.find_permanent(path) is not None
    return statement.if_not_exists and exists
