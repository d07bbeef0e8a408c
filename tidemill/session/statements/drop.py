"""DROP [MATERIALIZED] TABLE, VIEW, CATALOG, DATABASE, FUNCTION."""

from __future__ import annotations

from tidemill.catalog.table import Upkeep, upkeep_of
from tidemill.errors import ValidationError
from tidemill.session.context import SessionContext
from tidemill.session.result import TableResult, ok
from tidemill.sql import statements as s


def drop_table(statement: s.DropTable, context: SessionContext) -> TableResult:
    path = context.catalogs.qualify(statement.path)
    if statement.temporary or upkeep_of(context.catalogs.find_permanent(path)) is None:
        return _drop(statement, context, view=False)
    if statement.if_exists:
        return ok()
    raise ValidationError(
        f"Table with identifier '{path}' does not exist.",
        hint=f"'{path.name}' is a materialized table: use DROP MATERIALIZED TABLE.",
    )


def drop_materialized_table(statement: s.DropMaterializedTable, context: SessionContext) -> TableResult:
    """The table, and with it the job that keeps it."""
    path = context.catalogs.qualify(statement.path)
    upkeep = upkeep_of(context.catalogs.find_permanent(path))
    if upkeep is not None:
        result = _drop(statement, context, view=False)
        _end(upkeep, context)
        return result
    if statement.if_exists:
        return ok()
    raise ValidationError(
        f"Materialized Table with identifier '{path}' does not exist.", position=statement.position
    )


def _end(upkeep: Upkeep, context: SessionContext) -> None:
    job = context.jobs.find(upkeep.job_id)
    if job is not None and job.job.is_running():
        context.jobs.cancel(job)


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
    """With all that is in it, where it cascades: jobs of materialized tables, too."""
    catalogs = context.catalogs
    catalog, database = catalogs.qualify_database(statement.path)
    entries = map(catalogs.find_permanent, catalogs.paths(catalog, database))
    kept = [upkeep for upkeep in map(upkeep_of, entries) if upkeep is not None]
    catalogs.drop_database(
        catalog, database, ignore_if_missing=statement.if_exists, cascade=statement.cascade
    )
    for upkeep in kept:
        _end(upkeep, context)
    return ok()


def drop_function(statement: s.DropFunction, context: SessionContext) -> TableResult:
    context.catalogs.functions.drop(
        statement.path,
        temporary=statement.temporary,
        system=statement.system,
        ignore_if_missing=statement.if_exists,
    )
    return ok()
