"""Runs the statements of one session with a TableEnvironment, and adds the features that only a gateway
needs.

Statements run one at a time. After ``BEGIN STATEMENT SET`` the INSERTs are collected until ``END`` runs them
as one job. With ``table.dml-sync`` an INSERT's operation ends with its job.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from tidemill.config import table_options
from tidemill.config.mini_batch_options import MINI_BATCH_ENABLED
from tidemill.config.option import Configuration
from tidemill.config.secrets import shown_value
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.gateway.service.catalog import SessionCatalog
from tidemill.gateway.service.completion import complete
from tidemill.gateway.service.operation import Control, Outcome
from tidemill.gateway.service.results import Results
from tidemill.runtime.spark.job_groups import give_up_here
from tidemill.session import binding, snapshot
from tidemill.session.environment import TableEnvironment
from tidemill.session.jobs.job import EndedJob, JobHandle
from tidemill.session.result import StatementKind, TableResult, ok
from tidemill.session.statements import create_table_as, materialized
from tidemill.sql import statements as s
from tidemill.sql.parser import parse_statement
from tidemill.sql.splitter import split

Json = dict[str, Any]
CONFIGURING: tuple[type[s.Statement], ...] = (
    s.SetOption,
    s.ResetOption,
    s.CreateTable,
    s.AlterTable,
    s.AlterMaterializedTable,
    s.CreateView,
    s.AlterView,
    s.Drop,
    s.CreateCatalog,
    s.AlterCatalog,
    s.CreateDatabase,
    s.AlterDatabase,
    s.CreateFunction,
    s.AlterFunction,
    s.CreateModel,
    s.AlterModel,
    s.UseCatalog,
    s.UseDatabase,
    s.UseModules,
    s.LoadModule,
    s.UnloadModule,
    s.AddJar,
    s.RemoveJar,
)
"""Statements that change a session: ``configure`` accepts them, and the snapshot changes after them."""

_MORE = (";", "--", "/*")
"""Only a text with one of these may be more than one statement, or have comments."""
_OPENS_A_SET = re.compile(r"BEGIN\s+STATEMENT\s+SET\b", re.IGNORECASE)
_QUERY = "collect"
JobStarted = Callable[[JobHandle, str, Json], None]


@dataclass(slots=True, kw_only=True)
class SqlStatements:
    """The statements of one session. ``job_started`` and ``job_altered`` are called with the job of an
    INSERT, before the client learns of the job. They get the statement and the snapshot that start the job
    again. ``job_set`` is called with the options that ALTER JOB ... SET has changed."""

    environment: TableEnvironment
    results: Results
    job_started: JobStarted = lambda *_: None
    job_altered: JobStarted = lambda *_: None
    job_set: Callable[[JobHandle, Mapping[str, str]], None] = lambda *_: None
    _set: list[str] | None = None
    _changed: bool = False
    _warned: int = 0
    """The number of the session's warnings that its client has received."""

    def run(self, text: str, options: Mapping[str, str], control: Control) -> Outcome:
        work = uuid.uuid4().hex
        control.stop_with(lambda: give_up_here(work))
        statement = self._statement_of(_single(text))
        if statement is None:
            return self.results.of(ok(), work, control)
        with self._at_work(statement, work, options, control):
            result = self.environment.execute(statement)
            outcome = self.results.of(result, work, control)
        self._list(result, outcome.info.job_id)
        return self._with_warnings(outcome)

    def configure(self, text: str, control: Control) -> Outcome:
        piece = _single(text)
        statement = parse_statement(piece)
        filling = isinstance(statement, s.CreateTable) and statement.query is not None
        if not isinstance(statement, CONFIGURING) or filling:
            raise NotSupportedError(
                f"Unsupported statement for configuring session:{text}\n"
                "The configureSession API only supports to execute statement of type CREATE TABLE, "
                "DROP TABLE, ALTER TABLE, CREATE DATABASE, DROP DATABASE, ALTER DATABASE, CREATE FUNCTION, "
                "DROP FUNCTION, ALTER FUNCTION, CREATE CATALOG, DROP CATALOG, ALTER CATALOG, USE CATALOG, "
                "USE [CATALOG.]DATABASE, CREATE VIEW, DROP VIEW, ALTER VIEW, CREATE MODEL, DROP MODEL, "
                "ALTER MODEL, LOAD MODULE, UNLOAD MODULE, USE MODULES, SET, RESET."
            )
        return self.run(piece, {}, control)

    def options(self) -> Mapping[str, str]:
        config = self.environment.context.configuration
        return {key: shown_value(key, value) for key, value in config.items()}

    def catalog(self) -> SessionCatalog:
        return SessionCatalog(self.environment.context)

    def complete(self, text: str, position: int) -> list[str]:
        return complete(self.environment.context, text, position)

    @classmethod
    def restored(cls, kept: Json, results: Results, job_started: JobStarted) -> SqlStatements:
        """The statements of a session from its ``snapshot``."""
        return cls(
            environment=restored_environment(kept), results=results, job_started=job_started, _set=kept["set"]
        )

    def snapshot(self) -> Json:
        return {**snapshot.taken(self.environment.context), "set": self._set}

    def changed(self) -> bool:
        """Whether a statement since the last call may have changed the snapshot."""
        changed, self._changed = self._changed, False
        return changed

    def _list(self, result: TableResult, job_id: str) -> None:
        """Adds a query, or an INSERT in batch mode, which has ended, to the user's jobs."""
        if result.kind is StatementKind.QUERY:
            self.environment.context.jobs.add_query(result.job or EndedJob(job_id, _QUERY, "FINISHED"))
        elif result.kind is StatementKind.INSERT and result.job is None:
            name = f"insert-into_{','.join(field.name for field in result.fields)}"
            self.environment.context.jobs.add_query(EndedJob(job_id, name, "FINISHED"))

    def _with_warnings(self, outcome: Outcome) -> Outcome:
        """``outcome`` with the warnings since the last successful statement."""
        warnings = self.environment.context.warnings[self._warned :]
        if not warnings:
            return outcome
        self._warned += len(warnings)
        return replace(outcome, info=replace(outcome.info, warnings=tuple(warnings)))

    def _statement_of(self, text: str) -> s.Statement | None:
        """The statement to run; None if ``text`` opens a statement set, adds to it, or ends an empty one."""
        words = tuple(text.rstrip("; \n").upper().split())
        if words == ("BEGIN", "STATEMENT", "SET") and self._set is None:
            self._set, self._changed = [], True
            return None
        if words == ("END",):
            return self._ended()
        statement = parse_statement(text) if self._set is None or words[:1] == ("INSERT",) else None
        if self._set is None:
            return statement
        if not isinstance(statement, s.Insert):
            raise ValidationError(
                "Only 'INSERT/CREATE TABLE AS' statement is allowed in Statement Set or use 'END' statement "
                "to submit Statement Set."
            )
        binding.bind_insert(self.environment.context, statement)  # raises the INSERT's errors now
        self._set.append(statement.text)
        self._changed = True
        return None

    def _ended(self) -> s.Statement | None:
        inserts, self._set, self._changed = self._set, None, True
        if inserts is None:
            raise ValidationError(
                "No Statement Set to submit. 'END' statement should be used after 'BEGIN STATEMENT SET'."
            )
        if not inserts:
            return None
        return parse_statement(f"EXECUTE STATEMENT SET BEGIN {'; '.join(inserts)}; END")

    @contextmanager
    def _at_work(
        self, statement: s.Statement, work: str, options: Mapping[str, str], control: Control
    ) -> Iterator[None]:
        """While the statement runs, ``options`` override the session's; but not for SET and RESET."""
        context = self.environment.context
        before = context.configuration
        context.permissions.check_options(options)
        changes = isinstance(statement, s.SetOption | s.ResetOption)
        if not changes:
            context.configuration = Configuration(
                {**before, **_implied_options(statement, before), **options}
            )
        waits_for_job = context.configuration.read(table_options.DML_SYNC)

        def started(job: JobHandle) -> None:
            full_snapshot = {**snapshot.taken(context, whole=True), "set": None}
            self.job_started(job, _insert_text(statement, self.environment), full_snapshot)
            if waits_for_job:
                control.stop_with(job.abort)

        def altered(job: JobHandle) -> None:
            if isinstance(statement, s.AlterJob) and statement.target is None:
                self.job_set(job, dict(statement.options))
                return
            full_snapshot = {**snapshot.taken(context, whole=True), "set": None}
            self.job_altered(job, _altered_text(statement, self.environment), full_snapshot)

        context.work, context.on_job, context.on_altered = work, started, altered
        try:
            yield
        finally:
            context.work, context.on_job, context.on_altered = "", lambda _: None, lambda _: None
            if not changes:
                context.configuration = before
            self._changed |= isinstance(statement, CONFIGURING)


def restored_environment(kept: Json) -> TableEnvironment:
    """The environment of a ``SqlStatements.snapshot``, without its open statement set."""
    return TableEnvironment(snapshot.restored({key: value for key, value in kept.items() if key != "set"}))


def new_environment(gateway: Mapping[str, str], properties: Mapping[str, str]) -> TableEnvironment:
    """A session that starts with ``properties`` over the gateway's own options."""
    return TableEnvironment.create({**gateway, **properties})


def _implied_options(statement: s.Statement, before: Mapping[str, str]) -> dict[str, str]:
    """Disables mini-batches for a query, unless the session sets the option, so that it shows each change as
    Flink does. (For an INSERT the option makes no difference.)"""
    if isinstance(statement, s.Query) and MINI_BATCH_ENABLED.key not in before:
        return {MINI_BATCH_ENABLED.key: "false"}
    return {}


def _insert_text(statement: s.Statement, environment: TableEnvironment) -> str:
    """The INSERT of a compiled plan or of CREATE TABLE AS; for other statements their own text."""
    if environment.context.compiled:
        return environment.context.compiled
    if isinstance(statement, s.CreateTable):
        return create_table_as.insert_text(statement, environment.context)
    return statement.text


def _altered_text(statement: s.Statement, environment: TableEnvironment) -> str:
    """The INSERT that an altered job runs from now on."""
    if isinstance(statement, s.CreateTable):
        return create_table_as.insert_text(statement, environment.context)
    if isinstance(statement, s.AlterMaterializedTable):
        return materialized.insert_text(environment.context.catalogs.qualify(statement.path), statement)
    assert isinstance(statement, s.AlterJob)
    assert statement.target is not None
    return statement.target.text


def _single(text: str) -> str:
    """The only statement in ``text``, without comments. NotSupportedError if there are several."""
    if not any(mark in text for mark in _MORE):
        return text.strip() or text
    pieces = list(split(text))
    if not pieces:
        return text
    piece = pieces[0].text
    whole_set = _OPENS_A_SET.match(piece) and ";" in piece.rstrip("; \n")
    if whole_set or len(pieces) > 1:
        raise NotSupportedError(
            "only single statement supported",
            hint="Send the statements one by one, BEGIN STATEMENT SET and END, too.",
            position=pieces[0 if whole_set else 1].position,
        )
    # Clients read an unfinished statement as one that continues on the next line: keep its semicolon.
    return f"{piece};" if ";" in text.partition(piece)[2] else piece
