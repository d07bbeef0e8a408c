"""How the statements of one session run: what TableEnvironment does, plus what only a gateway needs.

One statement at a time. ``BEGIN STATEMENT SET`` collects the INSERTs that follow until ``END`` runs them as
one job. With ``table.dml-sync`` an INSERT's operation ends with its job.
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
from tidemill.session import planning, snapshot
from tidemill.session.environment import TableEnvironment
from tidemill.session.job import EndedJob, JobHandle
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
"""What changes a session: these are what ``configure`` takes, and after these a snapshot is another one."""

_MORE = (";", "--", "/*")
"""What text has that is more than one statement, or not a statement alone."""
_OPENS_A_SET = re.compile(r"BEGIN\s+STATEMENT\s+SET\b", re.IGNORECASE)
_QUERY = "collect"
JobStarted = Callable[[JobHandle, str, Json], None]


@dataclass(slots=True, kw_only=True)
class SqlStatements:
    """The statements of one session. ``job_started`` and ``job_altered`` hear of an INSERT's job, with the
    statement that starts it again in a session of the snapshot, before anybody is told of it."""

    environment: TableEnvironment
    results: Results
    job_started: JobStarted = lambda *_: None
    job_altered: JobStarted = lambda *_: None
    _set: list[str] | None = None
    _changed: bool = False
    _warned: int = 0
    """Of how many of the session's warnings its client has heard."""

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
        """As ``snapshot`` took them down."""
        return cls(
            environment=restored_environment(kept), results=results, job_started=job_started, _set=kept["set"]
        )

    def snapshot(self) -> Json:
        return {**snapshot.taken(self.environment.context), "set": self._set}

    def changed(self) -> bool:
        """Whether a statement since the last time may have changed what a snapshot has."""
        changed, self._changed = self._changed, False
        return changed

    def _list(self, result: TableResult, job_id: str) -> None:
        """A query is a job of its user's, too, as is an INSERT in batch, which has ended by now."""
        if result.kind is StatementKind.QUERY:
            self.environment.context.jobs.add_query(result.job or EndedJob(job_id, _QUERY, "FINISHED"))
        elif result.kind is StatementKind.INSERT and result.job is None:
            name = f"insert-into_{','.join(field.name for field in result.fields)}"
            self.environment.context.jobs.add_query(EndedJob(job_id, name, "FINISHED"))

    def _with_warnings(self, outcome: Outcome) -> Outcome:
        """What the user was warned of since the last statement that did not fail."""
        warnings = self.environment.context.warnings[self._warned :]
        if not warnings:
            return outcome
        self._warned += len(warnings)
        return replace(outcome, info=replace(outcome.info, warnings=tuple(warnings)))

    def _statement_of(self, text: str) -> s.Statement | None:
        """What ``text`` asks for; None for what opens a statement set, adds to it, or ends an empty one."""
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
        planning.bind_insert(self.environment.context, statement)  # what is wrong with it is said now
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
        """``options`` over the session's while a statement runs; what SET changes takes none along."""
        context = self.environment.context
        before = context.configuration
        context.permissions.check_options(options)
        changes = isinstance(statement, s.SetOption | s.ResetOption)
        if not changes:
            context.configuration = Configuration({**before, **_own(statement, before), **options})
        waited = context.configuration.read(table_options.DML_SYNC)

        def started(job: JobHandle) -> None:
            whole = {**snapshot.taken(context, whole=True), "set": None}
            self.job_started(job, _insert_text(statement, self.environment), whole)
            if waited:
                control.stop_with(job.abort)

        def altered(job: JobHandle) -> None:
            whole = {**snapshot.taken(context, whole=True), "set": None}
            self.job_altered(job, _altered_text(statement, self.environment), whole)

        context.work, context.on_job, context.on_altered = work, started, altered
        try:
            yield
        finally:
            context.work, context.on_job, context.on_altered = "", lambda _: None, lambda _: None
            if not changes:
                context.configuration = before
            self._changed |= isinstance(statement, CONFIGURING)


def restored_environment(kept: Json) -> TableEnvironment:
    """Of what ``SqlStatements.snapshot`` took down, without the statement set that was open."""
    return TableEnvironment(snapshot.restored({key: value for key, value in kept.items() if key != "set"}))


def new_environment(gateway: Mapping[str, str], properties: Mapping[str, str]) -> TableEnvironment:
    """A session that starts with ``properties`` over the gateway's own options."""
    return TableEnvironment.create({**gateway, **properties})


def _own(statement: s.Statement, before: Mapping[str, str]) -> dict[str, str]:
    """A query shows each change, as Flink's does, unless the session has chosen: what an INSERT writes is the
    same in either way."""
    if isinstance(statement, s.Query) and MINI_BATCH_ENABLED.key not in before:
        return {MINI_BATCH_ENABLED.key: "false"}
    return {}


def _insert_text(statement: s.Statement, environment: TableEnvironment) -> str:
    """The INSERT that fills what CREATE TABLE AS has made, or that a compiled plan has; of others their own
    text."""
    if environment.context.compiled:
        return environment.context.compiled
    if isinstance(statement, s.CreateTable):
        return create_table_as.insert_text(statement, environment.context)
    return statement.text


def _altered_text(statement: s.Statement, environment: TableEnvironment) -> str:
    """The INSERT that an altered job is from now on."""
    if isinstance(statement, s.CreateTable):
        return create_table_as.insert_text(statement, environment.context)
    if isinstance(statement, s.AlterMaterializedTable):
        return materialized.insert_text(environment.context.catalogs.qualify(statement.path), statement)
    assert isinstance(statement, s.AlterJob)
    assert statement.target is not None
    return statement.target.text


def _single(text: str) -> str:
    """The one statement in ``text``."""
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
    # Clients take a statement that breaks off at its end for one that goes on in the next line.
    return f"{piece};" if ";" in text.partition(piece)[2] else piece
