"""CREATE, SHOW, DESCRIBE, DIFF and DROP SAVEPOINT."""

from __future__ import annotations

import datetime as dt

from tidemill.catalog.table import CatalogTable, Column, ObjectPath
from tidemill.errors import StateError
from tidemill.files.storage import Storage
from tidemill.plan import nodes as n
from tidemill.runtime.checkpoint.savepoint import Savepoint
from tidemill.runtime.checkpoint.savepoint_report import parts, savepoints_in
from tidemill.runtime.state_tables import connector, differences
from tidemill.session import selects
from tidemill.session.context import SessionContext
from tidemill.session.mode import in_mode
from tidemill.session.result import TableResult, listing, ok
from tidemill.session.statements.jobs import named_job, savepoint_directory
from tidemill.sql import statements as s
from tidemill.types.logical import BIGINT, STRING, Field, LocalZonedTimestampType

_PATH = Field("savepoint path", STRING)
_LISTED = (
    _PATH,
    Field("job id", STRING),
    Field("job name", STRING),
    Field("epoch", BIGINT),
    Field("created", LocalZonedTimestampType(precision=3)),
    Field("bytes", BIGINT),
)
_DESCRIBED = (
    Field("part", STRING),
    Field("id", STRING),
    Field("description", STRING),
    Field("rows", BIGINT),
    Field("bytes", BIGINT),
)


def create_savepoint(statement: s.CreateSavepoint, context: SessionContext) -> TableResult:
    """Returns when the savepoint is whole; the job goes on meanwhile."""
    if statement.path:
        context.permissions.check_place(statement.path, "CREATE SAVEPOINT", statement.position)
    started = named_job(statement, context)
    directory = "" if statement.path else savepoint_directory(statement, context)
    return listing((_PATH,), [(context.jobs.create_savepoint(started, directory, statement.path),)])


def show_savepoints(statement: s.ShowSavepoints, context: SessionContext) -> TableResult:
    """Oldest first."""
    directory = statement.directory or savepoint_directory(statement, context)
    listed = savepoints_in(_storage(directory, "SHOW SAVEPOINTS", statement, context))
    return listing(
        _LISTED,
        [(x.where, x.identity.job_id, x.identity.name, x.epoch, _time(x.created), x.size) for x in listed],
    )


def describe_savepoint(statement: s.DescribeSavepoint, context: SessionContext) -> TableResult:
    savepoint = Savepoint.open(_storage(statement.path, "DESCRIBE SAVEPOINT", statement, context))
    return listing(_DESCRIBED, [(p.kind, p.id, p.description, p.rows, p.size) for p in parts(savepoint)])


def drop_savepoint(statement: s.DropSavepoint, context: SessionContext) -> TableResult:
    """Only what is a savepoint goes."""
    storage = _storage(statement.path, "DROP SAVEPOINT", statement, context)
    try:
        savepoint = Savepoint.open(storage)
    except StateError as e:
        if statement.if_exists and not storage.exists():
            return ok()
        e.position = statement.position
        raise
    savepoint.remove()
    return ok()


def diff_savepoint(statement: s.DiffSavepoint, context: SessionContext) -> TableResult:
    """By table and row, in batch whatever mode the session is in."""
    first, second = (
        _storage(path, "DIFF SAVEPOINT", statement, context) for path in (statement.first, statement.second)
    )
    options = {
        "connector": connector.CONNECTOR.identifier,
        connector.PATH: first.location,
        connector.COMPARED: second.location,
        connector.TABLE: differences.NAME,
        **dict(first.settings),
    }
    columns = tuple(Column(name=f.name, type=f.type) for f in differences.FIELDS)
    table = CatalogTable(
        path=ObjectPath("state", "savepoints", differences.NAME), columns=columns, options=options
    )
    names = tuple(c.name for c in columns)
    scan = n.Scan(fields=differences.FIELDS, table=table, columns=names, options=tuple(options.items()))
    with in_mode(context, "batch"):
        return selects.run_query(context, scan)


def _storage(location: str, what: str, statement: s.Statement, context: SessionContext) -> Storage:
    """NotPermittedError where the place is not for this session."""
    context.permissions.check_place(location, what, statement.position)
    return Storage.configured(location, context.configuration)


def _time(milliseconds: int) -> dt.datetime | None:
    return dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC) if milliseconds else None
