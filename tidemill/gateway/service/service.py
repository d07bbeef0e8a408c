"""The gateway's service, which all endpoints call, whatever their protocol.

Calls return at once; statements run in the session's lane. Every call names its user: '' without
authentication.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial

from tidemill.config import gateway_options as g
from tidemill.config.option import Configuration
from tidemill.errors import NotSupportedError
from tidemill.gateway.api import (
    OperationInfo,
    OperationStatus,
    ResultInfo,
    ResultPage,
    SessionInfo,
    StatusError,
    UnknownOperationError,
)
from tidemill.gateway.security.audit import Audit
from tidemill.gateway.service.catalog import SessionCatalog
from tidemill.gateway.service.metrics import Metrics
from tidemill.gateway.service.operation import Control, Operation, Outcome, Work
from tidemill.gateway.service.pages import PAGE_ROWS
from tidemill.gateway.service.persistence import Forgetful, Memory
from tidemill.gateway.service.quotas import Quotas
from tidemill.gateway.service.sessions import Session, Sessions, Statements
from tidemill.gateway.service.telemetry import Silent, Telemetry
from tidemill.gateway.service.workers import Workers
from tidemill.runtime.events import JobEvent
from tidemill.runtime.progress import EpochProgress
from tidemill.session.history.records import Records
from tidemill.session.history.watch import JobWatch
from tidemill.session.jobs.started import Jobs
from tidemill.session.permissions import EVERYTHING, Permissions
from tidemill.sql.redaction import redacted_statement

_CONFIGURING_SECONDS = 600.0
_BRIEF = frozenset({"SHOW", "DESCRIBE", "DESC", "SET", "RESET", "USE"})
"""First words of statements that only look something up or store a setting: they plan no query."""


@dataclass(slots=True, kw_only=True)
class Gateway:
    """``new_session`` creates the statement runner of a new session, from its properties and its user; None
    if the gateway has no sessions and only shows jobs. ``memory`` stores the state that outlives the
    process."""

    config: Configuration
    new_session: Callable[[Mapping[str, str], str], Statements] | None
    memory: Memory = field(default_factory=Forgetful)
    workers: Workers = field(init=False)
    sessions: Sessions = field(init=False)
    quotas: Quotas = field(init=False)
    audit: Audit = field(init=False)
    metrics: Metrics = field(default_factory=Metrics)
    telemetry: Telemetry = field(default_factory=Silent)
    jobs: Callable[[str], Jobs] = lambda _: Jobs()
    """The jobs of a user's INSERTs."""
    records: Callable[[str], Records] = lambda _: Records("", 0)
    """The records of a user's ended jobs."""
    permissions: Callable[[str], Permissions] = lambda _: EVERYTHING
    """The permissions of a user."""
    watches: dict[str, JobWatch] = field(default_factory=dict)
    """By user; see ``watch``."""

    def __post_init__(self) -> None:
        read = self.config.read
        self.metrics.jobs.statuses = self.job_statuses
        self.quotas = Quotas.of(self.config)
        self.audit = Audit(self.config.read(g.AUDIT_FILE))
        self.workers = Workers(most=read(g.MAX_WORKERS))
        self.sessions = Sessions(
            most=read(g.MAX_SESSIONS),
            idle=read(g.IDLE_TIMEOUT).seconds,
            interval=read(g.CHECK_INTERVAL).seconds,
            closed=self.memory.session_closed,
        )

    def start(self) -> None:
        self.sessions.start()

    def close(self) -> None:
        """Refuses new statements and stops the running ones. If there is a memory, the next process has the
        sessions again."""
        self.sessions.end()
        self.workers.close()
        for session in self.sessions.of(None):
            session.stop()
        self.telemetry.close()

    # -- sessions

    def open_session(self, properties: Mapping[str, str], *, name: str = "", user: str = "") -> str:
        """Opens a session and returns its handle. ValidationError if a property is invalid."""
        if self.new_session is None:
            raise NotSupportedError("There are no sessions here: jobs can be looked at, a gateway runs SQL.")
        self.quotas.check_session(self.sessions.of(user))
        statements = self.new_session(properties, user)
        session = self.sessions.open(name, user, statements, self.workers, self.memory.session_opened)
        self.audit.note("open session", user, session=session.handle, name=name)
        return session.handle

    def close_session(self, session: str, *, user: str = "") -> None:
        """Stops the session's statements and frees its results. Jobs of its INSERTs continue."""
        self.audit.note("close session", user, session=session)
        self.sessions.close(session, user)

    def configure_session(self, session: str, statement: str, *, timeout: float = 0, user: str = "") -> None:
        """Runs SET, RESET, CREATE, DROP, ALTER, USE and the like, and waits for the end. Refuses others."""
        opened = self.sessions.get(session, user)
        self.audit.note("configure session", user, session=session, statement=redacted_statement(statement))
        operation = Operation(work=self._remembered(opened, partial(opened.statements.configure, statement)))
        opened.submit(operation, timeout)
        try:
            operation.status.wait_ended(timeout or _CONFIGURING_SECONDS)
            if operation.error is not None:
                raise operation.error
            if operation.status.value is not OperationStatus.FINISHED:
                raise StatusError(f"The statement did not end: it is {operation.status.value.value}.")
        finally:
            opened.operations.pop(operation.handle, None)
            operation.close()

    def session_config(self, session: str, *, user: str = "") -> dict[str, str]:
        """The session's current options, with masked secrets."""
        return dict(self.sessions.get(session, user).statements.options())

    def heartbeat(self, session: str, *, user: str = "") -> None:
        """Keeps the session from being closed as idle."""
        self.sessions.get(session, user)

    def list_sessions(self, *, user: str | None = "") -> list[SessionInfo]:
        """A user's sessions with their operations; those of all users for None."""
        return [session.info() for session in self.sessions.of(user)]

    def catalog(self, session: str, *, user: str = "") -> SessionCatalog:
        """Catalogs, databases, tables, columns and functions as the session sees them."""
        return self.sessions.get(session, user).statements.catalog()

    def complete(self, session: str, statement: str, position: int, *, user: str = "") -> list[str]:
        """Completions for ``position`` of ``statement``."""
        return self.sessions.get(session, user).statements.complete(statement, position)

    def watch(self, user: str) -> JobWatch:
        """The live view of a user's jobs."""
        return self.watches.setdefault(user, JobWatch())

    # -- operations

    def execute(
        self,
        session: str,
        statement: str,
        options: Mapping[str, str] | None = None,
        *,
        then: Callable[[Outcome], Outcome] | None = None,
        timeout: float = 0,
        user: str = "",
    ) -> str:
        """Submits a statement and returns the handle of its operation. ``options`` apply to this statement
        only; ``then`` maps its outcome; ``timeout`` is in seconds, 0 for none. An error of the statement
        appears in the operation's status, and is raised when its result is read."""
        return self.executing(session, statement, options, then=then, timeout=timeout, user=user).result()

    def executing(
        self,
        session: str,
        statement: str,
        options: Mapping[str, str] | None = None,
        *,
        then: Callable[[Outcome], Outcome] | None = None,
        timeout: float = 0,
        user: str = "",
    ) -> Future[str]:
        """``execute`` without waiting for the operation to be stored."""
        run = partial(self.sessions.get(session, user).statements.run, statement, dict(options or {}))
        work = run if then is None else lambda control: then(run(control))
        return self._submitting(session, work, redacted_statement(statement), timeout, user)

    def submit(self, session: str, work: Work, *, shown: str = "", timeout: float = 0, user: str = "") -> str:
        """``execute`` for any ``work``: it runs in its turn among the session's statements. ``shown``: the
        text of the operation for users."""
        return self._submitting(session, work, shown, timeout, user).result()

    def _submitting(self, session: str, work: Work, shown: str, timeout: float, user: str) -> Future[str]:
        opened = self.sessions.get(session, user)
        self.quotas.check_statement(self.sessions.of(user))
        operation = Operation(
            work=self._remembered(opened, work),
            changed=self._operation_changed,
            statement=shown,
            brief=_is_brief(shown),
        )
        ids = {"session": session, "operation": operation.handle}
        self.audit.note("execute", user, **ids, statement=shown)
        submitted: Future[str] = Future()

        def stored(written: Future[None]) -> None:
            try:
                written.result()
                opened.submit(operation, timeout)
            except Exception as e:  # any error: a caller that waits for the future must not hang
                submitted.set_exception(e)
            else:
                submitted.set_result(operation.handle)

        self.memory.submitted(opened, operation).add_done_callback(stored)
        return submitted

    def _operation_changed(self, operation: Operation, status: OperationStatus) -> None:
        self.memory.operation_changed(operation, status)
        self.metrics.operation(status)
        if status.is_terminal and not operation.status.value.is_terminal:
            self.telemetry.ended(operation, status)

    def epoch(self, progress: EpochProgress, user: str = "") -> None:
        """Records that a job of ``user`` has committed an epoch."""
        self.metrics.jobs.epoch(progress, user)
        self.telemetry.epoch(progress)

    def job_event(self, event: JobEvent, user: str = "") -> None:
        """Records that a job of ``user`` has begun, or failed."""
        self.metrics.jobs.event(event, user)

    def job_statuses(self, user: str) -> dict[str, str]:
        """The statuses of a user's jobs, by job id."""
        return {started.job.job_id: started.job.status for started in self.jobs(user).all()}

    def now(self) -> dict[str, int]:
        """The number of sessions, and of operations by status: ``{"sessions": 2, "RUNNING": 1}``."""
        sessions = self.sessions.of(None)
        statuses = Counter(o.status.value.value for s in sessions for o in list(s.operations.values()))
        return {"sessions": len(sessions), **statuses}

    def _remembered(self, session: Session, work: Work) -> Work:
        def run(control: Control) -> Outcome:
            outcome = work(control)
            self.memory.session_changed(session)
            return outcome

        return run

    def operation_info(self, session: str, operation: str, *, user: str = "") -> OperationInfo:
        return self.operation(session, operation, user).info()

    def wait(self, session: str, operation: str, seconds: float, *, user: str = "") -> OperationInfo:
        """``operation_info`` once the operation has ended or ``seconds`` have passed."""
        running = self.operation(session, operation, user)
        running.status.wait_ended(seconds)
        return running.info()

    def cancel(self, session: str, operation: str, *, user: str = "") -> OperationStatus:
        """Stops the statement and its Spark jobs. StatusError if the operation has ended."""
        running = self.operation(session, operation, user)
        self.audit.note("cancel", user, session=session, operation=operation)
        running.cancel()
        return running.status.value

    def stop_rows(self, session: str, operation: str, *, user: str = "") -> None:
        """Ends the streaming query of a finished operation. The rows it has produced can still be read."""
        self.operation(session, operation, user).control.stop()

    def close_operation(self, session: str, operation: str, *, user: str = "") -> None:
        """Frees the operation's result and ends its query. No error if the operation is gone."""
        opened = self.sessions.get(session, user)
        closing = opened.operations.pop(operation.lower(), None)
        if closing is not None:
            closing.close()

    def result_info(self, session: str, operation: str, *, user: str = "") -> ResultInfo | None:
        """The result's columns and kind, before any row is read; None while the statement runs."""
        return self.operation(session, operation, user).result_info()

    def fetch(
        self, session: str, operation: str, token: int, *, most: int = PAGE_ROWS, user: str = ""
    ) -> ResultPage:
        """A page of at most ``most`` rows. A streaming query gives an empty page if it has no new rows."""
        return self.operation(session, operation, user).fetch(token, most)

    def wait_rows(self, session: str, operation: str, token: int, seconds: float, *, user: str = "") -> None:
        """Returns once the page of ``token`` has rows or is the last page, or after ``seconds``."""
        running = self.operation(session, operation, user)
        if not running.status.wait_ended(seconds):
            return
        if running.outcome is not None and token == running.outcome.pages.token:
            running.outcome.pages.wait_rows(seconds)

    def fetch_next(
        self,
        session: str,
        operation: str,
        *,
        most: int = PAGE_ROWS,
        first: bool = False,
        wait: float = 0,
        user: str = "",
    ) -> ResultPage:
        """``fetch`` for protocols without tokens: the next unread rows, or with ``first`` the first rows
        again. Waits up to ``wait`` seconds for rows."""
        running = self.operation(session, operation, user)
        if running.outcome is not None:
            if first:
                running.outcome.pages.rewind()
            if wait > 0:
                running.outcome.pages.wait_rows(wait)
        return running.fetch(0 if running.outcome is None else running.outcome.pages.token, most)

    def operation(self, session: str, operation: str, user: str = "") -> Operation:
        """The operation with a handle. UnknownOperationError if there is none."""
        opened = self.sessions.get(session, user)
        known = opened.operations.get(operation.lower())
        if known is None:
            raise UnknownOperationError(operation)
        return known


def _is_brief(statement: str) -> bool:
    words = statement[:100].split(maxsplit=1)
    return bool(words) and words[0].upper() in _BRIEF
