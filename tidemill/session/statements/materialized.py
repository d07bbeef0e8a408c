"""CREATE and ALTER MATERIALIZED TABLE: a table of a query's columns, and the streaming job that keeps it.

Rows are there with the epoch that makes them: FRESHNESS, which Flink turns into an interval of checkpoints,
is kept and shown, and is always met.
"""

from __future__ import annotations

import re
from dataclasses import replace

from tidemill.catalog.manager import quoted
from tidemill.catalog.table import CatalogObject, CatalogTable, ObjectPath, Upkeep
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.session import binding, inserts, planning
from tidemill.session.context import SessionContext
from tidemill.session.mode import is_batch
from tidemill.session.result import TableResult, ok
from tidemill.session.schema import view_text
from tidemill.session.schema.precision import cut_times
from tidemill.session.statements import create_table_as, jobs
from tidemill.sql import statements as s
from tidemill.types.logical import Field, without_attribute

_DEFINITION = {
    "columns": "columns",
    "primary_key": "primary key",
    "watermark": "watermark",
    "partitioned_by": "partitions",
    "distribution": "distribution",
    "options": "options",
}
"""What CREATE OR ALTER leaves as it is, as errors name it."""
_UNITS = ("SECOND", "MINUTE", "HOUR", "DAY", "WEEK")


def create(statement: s.CreateTable, freshness: s.Freshness, context: SessionContext) -> TableResult:
    """OK; the job goes on. What is refused leaves the catalog as it was. With OR ALTER a table that is there
    keeps its comment and its freshness, as in Flink, and gets the query."""
    if is_batch(context):
        raise NotSupportedError(
            "CREATE MATERIALIZED TABLE in batch mode is not supported",
            position=statement.position,
            hint="Its job is a streaming one: SET 'execution.runtime-mode' = 'streaming'.",
        )
    upkeep = Upkeep(
        text=view_text.stored_text(context, statement.query_text, statement.position),
        default_catalog=context.current_catalog,
        default_database=context.current_database,
        freshness=_interval(freshness),
    )
    planned, sink = create_table_as.planned(statement, context)
    before = context.catalogs.find(planned.path) if statement.or_alter else None
    if before is not None:
        return _redefined(statement, planned, before, upkeep, context)
    table = replace(planned, upkeep=upkeep)
    planning.check_sink(table)
    context.catalogs.create(table)
    context.warn(cut_times(table))
    try:
        written = create_table_as.written(statement, context)
        job = inserts.run_inserts(context, [sink], [written], waits=False).job
    except BaseException:
        context.catalogs.drop(table.path, view=False, temporary=False, ignore_if_missing=True)
        raise
    assert job is not None
    context.catalogs.replace(replace(table, upkeep=replace(upkeep, job_id=job.job_id)))
    if context.place_job is None:
        context.warn(f"The job that keeps {quoted(table.path)} ends with this process; a gateway's goes on.")
    return ok()


def _redefined(
    statement: s.CreateTable,
    planned: CatalogTable,
    before: CatalogObject,
    upkeep: Upkeep,
    context: SessionContext,
) -> TableResult:
    if not isinstance(before, CatalogTable) or before.upkeep is None:
        raise ValidationError(
            f"Table {before.path} is not a materialized table. Only materialized table support create or "
            "alter operation.",
            position=statement.position,
        )
    for part in _DEFINITION:
        if getattr(planned, part) != getattr(before, part):
            raise NotSupportedError(
                f"CREATE OR ALTER MATERIALIZED TABLE with other {_DEFINITION[part]} than "
                f"{quoted(before.path)} has is not supported",
                position=statement.position,
                hint="Its definition is shown by SHOW CREATE MATERIALIZED TABLE.",
            )
    written = create_table_as.written(statement, context)
    kept = replace(upkeep, freshness=before.upkeep.freshness, job_id=before.upkeep.job_id)
    return _go_on(statement, replace(before, upkeep=kept), written, context)


def alter(statement: s.AlterMaterializedTable, context: SessionContext) -> TableResult:
    """OK when the table's job goes on as the new query, as with ALTER JOB. A refusal leaves both as they
    were."""
    table = _materialized(statement, context)
    assert table.upkeep is not None
    query = s.Query(text=statement.query_text, position=statement.query_position, tree=statement.query)
    fields = binding.bind(context, query).fields
    _check_columns(table, fields, statement)
    insert = s.Insert(
        text=insert_text(table.path, statement),
        position=statement.position,
        target=(table.path.catalog, table.path.database, table.path.name),
        query=statement.query,
        columns=tuple(f.name for f in fields),
        target_position=statement.position,
    )
    upkeep = replace(
        table.upkeep,
        text=view_text.stored_text(context, statement.query_text, statement.query_position),
        default_catalog=context.current_catalog,
        default_database=context.current_database,
    )
    return _go_on(statement, replace(table, upkeep=upkeep), insert, context)


def _go_on(
    statement: s.Statement, table: CatalogTable, insert: s.Insert, context: SessionContext
) -> TableResult:
    """The table's job goes on as ``insert``; then the catalog has the table so."""
    assert table.upkeep is not None
    job = jobs.altered_job(table.upkeep.job_id, statement, context)
    inserts.alter_job(context, job, [binding.bind_insert(context, insert)], [insert])
    context.catalogs.replace(table)
    return ok()


def insert_text(path: ObjectPath, statement: s.AlterMaterializedTable) -> str:
    """The INSERT that the table's job is from now on."""
    return f"INSERT INTO {quoted(path)} {statement.query_text}"


def _materialized(statement: s.AlterMaterializedTable, context: SessionContext) -> CatalogTable:
    path = context.catalogs.qualify(statement.path)
    table = context.catalogs.find(path)
    if not isinstance(table, CatalogTable) or table.upkeep is None:
        raise ValidationError(
            f"Only materialized table support modify definition query: {quoted(path)} is none.",
            position=statement.position,
        )
    return table


def _check_columns(
    table: CatalogTable, fields: tuple[Field, ...], statement: s.AlterMaterializedTable
) -> None:
    given = [(f.name, without_attribute(f.type).with_nullable(True)) for f in fields]
    if given != [(c.name, c.type.with_nullable(True)) for c in table.written_columns]:
        raise NotSupportedError(
            f"A query with other columns than {quoted(table.path)} has is not supported",
            position=statement.query_position,
            hint="Its columns are " + ", ".join(f"{c.name} {c.type}" for c in table.written_columns) + ".",
        )


def _interval(freshness: s.Freshness) -> str:
    if freshness.unit not in _UNITS:
        raise ValidationError(
            f"Materialized table freshness only supports {', '.join(_UNITS)} as the time unit.",
            position=freshness.position,
        )
    if not re.fullmatch(r"0*[1-9][0-9]*", freshness.number, re.ASCII):
        raise ValidationError(
            "The freshness interval currently only supports positive integer type values. "
            f"But was: {freshness.number}",
            position=freshness.position,
        )
    return f"INTERVAL '{freshness.number}' {freshness.unit}"
