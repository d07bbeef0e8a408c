"""How the statements of one session run: what TableEnvironment does, plus what only a gateway needs.

One statement a time. ``BEGIN STATEMENT SET`` collects the INSERTs that follow until ``END`` runs them as one
job. With ``table.dml-sync`` an INSERT's operation ends with its job. A streaming query gives its rows through
a thread of its own, which waits while the reader is far behind: nothing else waits for it.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from tidemill.changelog.rowkind import KIND_COLUMN
from tidemill.config import gateway_options as g
from tidemill.config import table_options
from tidemill.config.mini_batch_options import MINI_BATCH_ENABLED
from tidemill.config.option import Configuration
from tidemill.config.secrets import shown_value
from tidemill.errors import NotSupportedError, TidemillError, ValidationError
from tidemill.gateway.api import ResultInfo
from tidemill.gateway.service.catalog import SessionCatalog
from tidemill.gateway.service.completion import complete
from tidemill.gateway.service.operation import Control, Outcome
from tidemill.gateway.service.pages import Pages
from tidemill.runtime.spark.job_groups import give_up_here
from tidemill.session.environment import TableEnvironment
from tidemill.session.jobs import Jobs
from tidemill.session.result import StatementKind, TableResult, ok
from tidemill.session.statement_set import StatementSet
from tidemill.sql import statements as s
from tidemill.sql.parser import parse_statement
from tidemill.sql.splitter import split
from tidemill.types.logical import STRING, Field
from tidemill.types.physical import arrow_schema

_KIND_TYPE = pa.int8()
_CONFIGURING: tuple[type[s.Statement], ...] = (
    s.SetOption,
    s.ResetOption,
    s.CreateTable,
    s.AlterTable,
    s.CreateView,
    s.AlterView,
    s.Drop,
    s.CreateCatalog,
    s.CreateDatabase,
    s.AlterDatabase,
    s.CreateFunction,
    s.UseCatalog,
    s.UseDatabase,
    s.UseModules,
    s.AddJar,
    s.RemoveJar,
)
_NEVER = 1 << 62


@dataclass(slots=True, kw_only=True)
class SqlStatements:
    """The statements of one session. ``folder``: where its results spill."""

    environment: TableEnvironment
    gateway: Configuration
    folder: str
    _set: StatementSet | None = None

    def run(self, text: str, options: Mapping[str, str], control: Control) -> Outcome:
        work = uuid.uuid4().hex
        control.stop_with(lambda: give_up_here(work))
        piece = _single(text)
        # What SET changes would take the statement's own options along.
        over = (
            {}
            if piece.split(maxsplit=1)[:1] and piece.split(maxsplit=1)[0].upper() in ("SET", "RESET")
            else options
        )
        with self._statement(work, over, control):
            return self._outcome(self._execute(piece), work, control)

    def configure(self, text: str, control: Control) -> Outcome:
        piece = _single(text)
        statement = parse_statement(piece)
        filling = isinstance(statement, s.CreateTable) and statement.query is not None
        if not isinstance(statement, _CONFIGURING) or filling:
            raise NotSupportedError(
                f"Unsupported statement for configuring session:{text}\n"
                "The configureSession API only supports to execute statement of type CREATE TABLE, "
                "DROP TABLE, ALTER TABLE, CREATE DATABASE, DROP DATABASE, ALTER DATABASE, CREATE FUNCTION, "
                "DROP FUNCTION, CREATE CATALOG, DROP CATALOG, USE CATALOG, USE [CATALOG.]DATABASE, "
                "CREATE VIEW, DROP VIEW, ALTER VIEW, USE MODULES, SET, RESET."
            )
        return self.run(piece, {}, control)

    def options(self) -> Mapping[str, str]:
        config = self.environment.context.configuration
        return {key: shown_value(key, value) for key, value in config.items()}

    def catalog(self) -> SessionCatalog:
        return SessionCatalog(self.environment.context)

    def complete(self, text: str, position: int) -> list[str]:
        return complete(self.environment.context, text, position)

    @contextmanager
    def _statement(self, work: str, options: Mapping[str, str], control: Control) -> Iterator[None]:
        """``options`` over the session's while a statement runs. An INSERT that is waited for ends with
        it."""
        context = self.environment.context
        before = context.configuration
        context.work = work
        if options:
            context.configuration = Configuration({**before, **options})
        if context.configuration.read(table_options.DML_SYNC):
            context.on_job = lambda job: control.stop_with(job.abort)
        try:
            yield
        finally:
            context.work, context.on_job = "", lambda _: None
            if options:
                context.configuration = before

    def _run(self, statement: s.Statement) -> TableResult:
        """A query shows each change, as Flink's does, unless the session has chosen: what an INSERT writes
        is the same in either way."""
        context = self.environment.context
        before = context.configuration
        if isinstance(statement, s.Query) and MINI_BATCH_ENABLED.key not in before:
            context.configuration = before.with_value(MINI_BATCH_ENABLED.key, "false")
        try:
            return self.environment.execute(statement)
        finally:
            if isinstance(statement, s.Query):
                context.configuration = before

    def _execute(self, text: str) -> TableResult:
        words = tuple(text.rstrip(";").upper().split())
        if words == ("BEGIN", "STATEMENT", "SET"):
            if self._set is not None:
                raise ValidationError("A statement set is open already: add INSERTs, or end it with END.")
            self._set = self.environment.create_statement_set()
            return ok()
        if self._set is not None:
            return self._in_set(self._set, text, ends=words == ("END",))
        if words == ("END",):
            raise ValidationError("No Statement Set to submit. \"END\" command should be used after "
                                  '"BEGIN STATEMENT SET".')  # fmt: skip
        return self._run(parse_statement(text))

    def _in_set(self, inserts: StatementSet, text: str, *, ends: bool) -> TableResult:
        if ends:
            self._set = None
            return inserts.execute()
        if not isinstance(parse_statement(text), s.Insert):
            raise ValidationError(
                "Only INSERT/CREATE TABLE AS statement is allowed in Statement Set or use 'END' to submit "
                "Statement Set."
            )
        inserts.add_insert_sql(text)
        return ok()

    def _outcome(self, result: TableResult, work: str, control: Control) -> Outcome:
        if result.kind is StatementKind.INSERT:
            return self._inserted(result, work)
        if result.job is not None:
            control.stop_with(result.job.abort)
        info = ResultInfo(
            fields=result.fields,
            is_query=result.kind is StatementKind.QUERY,
            result_kind=result.result_kind,
            job_id=_job_id(result, work),
            zone=result.zone,
        )
        pages = self._pages(info, endless=result.changelog)
        if result.changelog:
            feeder = threading.Thread(
                target=_feed, args=(result, info, pages), name="tidemill-gateway-result", daemon=True
            )
            feeder.start()
        else:
            _fill(result.tables(), info, pages)
        return Outcome(info, pages)

    def _inserted(self, result: TableResult, work: str) -> Outcome:
        job_id = _job_id(result, work)
        info = ResultInfo(
            fields=(Field("job id", STRING),),
            is_query=False,
            result_kind="SUCCESS_WITH_CONTENT",
            job_id=job_id,
        )
        pages = self._pages(info, endless=False)
        _fill([pa.table({"job id": [job_id]})], info, pages)
        return Outcome(info, pages)

    def _pages(self, info: ResultInfo, *, endless: bool) -> Pages:
        schema = arrow_schema(info.fields)
        return Pages(
            schema=schema.append(pa.field(KIND_COLUMN, _KIND_TYPE)) if endless else schema,
            folder=os.path.join(self.folder, uuid.uuid4().hex),
            memory=self.gateway.read(g.RESULT_MEMORY).bytes,
            ahead=self.gateway.read(g.RESULT_AHEAD).bytes if endless else _NEVER,
            keep=not endless,
        )


def new_statements(
    gateway: Configuration, properties: Mapping[str, str], *, jobs: Jobs, folder: str
) -> SqlStatements:
    """For a session that starts with ``properties`` over the gateway's own options."""
    environment = TableEnvironment.create({**gateway, **properties})
    environment.context.jobs = jobs
    return SqlStatements(environment=environment, gateway=gateway, folder=folder)


def _single(text: str) -> str:
    """The one statement in ``text``."""
    pieces = list(split(text))
    if len(pieces) > 1:
        raise NotSupportedError(
            "only single statement supported",
            hint="Send the statements one by one.",
            position=pieces[1].position,
        )
    return pieces[0].text if pieces else text


def _job_id(result: TableResult, work: str) -> str:
    """What ran in batch has no job of its own: it goes by the name of its work."""
    if result.job is not None:
        return result.job.job_id
    return work if result.kind in (StatementKind.QUERY, StatementKind.INSERT) else ""


def _fill(tables: Iterable[pa.Table], info: ResultInfo, pages: Pages) -> None:
    for table in tables:
        if not pages.put(_uniform(table, info, pages.schema)):
            return
    pages.finish()


def _feed(result: TableResult, info: ResultInfo, pages: Pages) -> None:
    """Until the job ends or nobody reads; who reads gets what made it fail."""
    try:
        _fill(result.tables(), info, pages)
    except TidemillError as e:
        pages.fail(e)
    except Exception as e:
        pages.fail(TidemillError(f"{type(e).__name__}: {e}"))
    finally:
        if result.job is not None and result.job.is_running():
            result.job.abort()


def _uniform(table: pa.Table, info: ResultInfo, schema: pa.Schema) -> pa.Table:
    """In the schema of all pages of the result."""
    columns = [table.column(place) for place in range(len(info.fields))]
    if schema.names[-1:] == [KIND_COLUMN]:
        changes = KIND_COLUMN in table.column_names
        columns.append(table.column(KIND_COLUMN) if changes else _inserts(table.num_rows))
    return pa.table([c.cast(f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def _inserts(rows: int) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array([0] * rows, _KIND_TYPE)])
