"""DROP TABLE, VIEW, CATALOG, DATABASE, FUNCTION."""

from __future__ import annotations

from tidemill.session.context import SessionContext
from tidemill.session.result import TableResult, ok
from tidemill.sql import statements as s


def drop_table(statement: s.DropTable, context: SessionContext) -> TableResult:
    return _drop(statement, context, view=False)


def drop_view(statement: s.DropView, context: SessionContext) -> TableResult:
    return _drop(statement, context, view=True)


def _drop(statement: s.Drop, context: SessionContext, *, view: bool) -> TableResult:
    context.catalogs.drop(
        context.catalogs.qualify(statement.path),
        view=view,
        temporary=statement.temporary,
        ignore_if_missing=statement.if_exists,
    )
    return ok()


def drop_catalog(statement: s.DropCatalog, context: SessionContext) -> TableResult:
    context.catalogs.drop_catalog(statement.path[-1], ignore_if_missing=statement.if_exists)
    return ok()


def drop_database(statement: s.DropDatabase, context: SessionContext) -> TableResult:
    catalog, database = context.catalogs.qualify_database(statement.path)
    context.catalogs.drop_database(
        catalog, database, ignore_if_missing=statement.if_exists, cascade=statement.cascade
    )
    return ok()


def drop_function(statement: s.DropFunction, context: SessionContext) -> TableResult:
    context.catalogs.functions.drop(
        statement.path,
        temporary=statement.temporary,
        system=statement.system,
        ignore_if_missing=statement.if_exists,
    )
    return ok()
