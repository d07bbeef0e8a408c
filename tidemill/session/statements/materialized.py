"""CREATE MATERIALIZED TABLE: a table of a query's columns, and the streaming job that keeps it.

Rows are there with the epoch that makes them: FRESHNESS, which Flink turns into an interval of checkpoints,
is kept and shown, and is always met.
"""

from __future__ import annotations

import re
from dataclasses import replace

from tidemill.catalog.manager import quoted
from tidemill.catalog.table import Upkeep
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.session import execution, planning, view_text
from tidemill.session.context import SessionContext
from tidemill.session.result import TableResult, ok
from tidemill.session.schema.precision import cut_times
from tidemill.session.statements import create_table_as
from tidemill.sql import statements as s

_UNITS = ("SECOND", "MINUTE", "HOUR", "DAY", "WEEK")


def create(statement: s.CreateTable, freshness: s.Freshness, context: SessionContext) -> TableResult:
    """OK; the job goes on. What is refused leaves the catalog as it was."""
    if execution.is_batch(context):
        raise NotSupportedError(
            "CREATE MATERIALIZED TABLE in batch mode is not supported",
            position=statement.position,
            hint="Its job is a streaming one: SET 'execution.runtime-mode' = 'streaming'.",
        )
    upkeep = Upkeep(
        text=view_text.kept_text(context, statement.query_text, statement.position),
        default_catalog=context.current_catalog,
        default_database=context.current_database,
        freshness=_interval(freshness),
    )
    planned, sink = create_table_as.planned(statement, context)
    table = replace(planned, upkeep=upkeep)
    planning.check_sink(table)
    context.catalogs.create(table)
    context.warn(cut_times(table))
    try:
        job = execution.run_inserts(context, [sink], waits=False).job
    except BaseException:
        context.catalogs.drop(table.path, view=False, temporary=False, ignore_if_missing=True)
        raise
    assert job is not None
    context.catalogs.replace(replace(table, upkeep=replace(upkeep, job_id=job.job_id)))
    if context.place_job is None:
        context.warn(f"The job that keeps {quoted(table.path)} ends with this process; a gateway's goes on.")
    return ok()


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
