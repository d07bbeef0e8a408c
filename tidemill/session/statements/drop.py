"""DROP TABLE, VIEW, CATALOG, DATABASE, FUNCTION."""

from __future__ import annotations

from tidemill.catalog.table import CatalogTable
from tidemill.errors import ValidationError
from tidemill.session.context import SessionContext
from tidemill.session.result import TableResult, ok
from tidemill.sql import statements as s


def drop_table(statement: s.DropTable, context: SessionContext) -> TableResult:
    path = context.catalogs.qualify(statement.path)
    entry = None if statement.temporary else context.catalogs.find_permanent(path)
    if isinstance(entry, CatalogTable) and entry.upkeep is not None:
        if statement.if_exists:
            return ok()
        raise ValidationError(
            f"Table with identifier '{path}' does not exist.",
            hint=f"'{path.name}' is a materialized table: use DROP MATERIALIZED TABLE.",
        )
    return _drop(statement, context, view=False)


def drop_materialized_table(statement: s.DropMaterializedTable, context: SessionContext) -> TableResult:
    """Ends the job that keeps it, and then drops the table."""
    path = context.catalogs.qualify(statement.path)
    entry = context.catalogs.find_permanent(path)
    if not isinstance(entry, CatalogTable) or entry.upkeep is None:
        if statement.if_exists:
            return ok()
        raise ValidationError(
            f"Materialized Table with identifier '{path}' does not exist.", position=statement.position
        )
    job = context.jobs.find(entry.upkeep.job_id)
    if job is not None and job.job.is_running():
        context.jobs.cancel(job)
    return _drop(statement, context, view=False)


def drop_view(statement: s.DropView, context: SessionContext) -> TableResult:
    return _drop(statement, context, view=True)


def _drop(statement: s.Drop, context: SessionContext, *, view: bool) -> TableResult:
    path = context.catalogs.qualify(statement.path)
    context.catalogs.drop(
        path,
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
