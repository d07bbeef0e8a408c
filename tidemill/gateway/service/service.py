"""The gateway's service: what every endpoint calls, whatever its wire.

Calls return at once; what takes time runs in the session's lane. Every call names the user who asks: '' where
nobody has to say who he is.
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
from tidemill.runtime.progress import EpochProgress, JobEvent
from tidemill.session.history.records import Records
from tidemill.session.history.watch import JobWatch
from tidemill.session.jobs import Jobs
from tidemill.session.permissions import EVERYTHING, Permissions
from tidemill.sql.shown import shown_statement

_CONFIGURING_SECONDS = 600.0
_BRIEF = frozenset({"SHOW", "DESCRIBE", "DESC", "SET", "RESET", "USE"})
"""How statements begin that look something up, or take something down: no query is planned for them."""


@dataclass(slots=True, kw_only=True)
class Gateway:
    """``new_session``: what runs the statements of a user's session that starts with these properties; None
    where there are no sessions, and jobs can only be looked at. ``memory``: what outlives the process."""

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
    """The INSERTs of a user."""
    records: Callable[[str], Records] = lambda _: Records("", 0)
    """A user's jobs that have ended."""
    permissions: Callable[[str], Permissions] = lambda _: EVERYTHING
    """What a user may reach."""
    watches: dict[str, JobWatch] = field(default_factory=dict)
    """What the jobs of each user do (``watch``)."""

    def __post_init__(self) -> None:
        read = self.config.read
        self.metrics.jobs.statuses = self.job_statuses
        self.quotas = Quotas.of(self.config)
        self.audit = Audit(self.config.read(g.AUDIT_FILE))
        self.workers = Workers(
            least=read(g.MIN_WORKERS), most=read(g.MAX_WORKERS), keepalive=read(g.KEEPALIVE).seconds
        )
        self.sessions = Sessions(
            most=read(g.MAX_SESSIONS),
            idle=read(g.IDLE_TIMEOUT).seconds,
            interval=read(g.CHECK_INTERVAL).seconds,
            closed=self.memory.session_closed,
        )

    def start(self) -> None:
        self.sessions.start()

    def close(self) -> None:
        """Takes no more statements and stops those that run; sessions stay for the next process, where there
        is a memory."""
        self.sessions.end()
        self.workers.close()
        for session in self.sessions.of(None):
            session.stop()
        self.telemetry.close()

    # -- sessions

    def open_session(self, properties: Mapping[str, str], *, name: str = "", user: str = "") -> str:
        """The handle of a new session; ValidationError for properties that are refused at once."""
        if self.new_session is None:
            raise NotSupportedError("There are no sessions here: jobs can be looked at, a gateway runs SQL.")
        self.quotas.check_session(self.sessions.of(user))
        statements = self.new_session(properties, user)
        made = self.sessions.open(name, user, statements, self.workers, self.memory.session_opened)
        self.audit.note("open session", user, session=made.handle, name=name)
        return made.handle

    def close_session(self, session: str, *, user: str = "") -> None:
        """Ends what it runs and frees what it holds; jobs that its INSERTs have started go on."""
        self.audit.note("close session", user, session=session)
        self.sessions.close(session, user)

    def configure_session(self, session: str, statement: str, *, timeout: float = 0, user: str = "") -> None:
        """Runs SET, RESET, CREATE, DROP, ALTER, USE and the like, to the end; others are refused."""
        opened = self.sessions.get(session, user)
        self.audit.note("configure session", user, session=session, statement=shown_statement(statement))
        operation = Operation(work=self._noticed(opened, partial(opened.statements.configure, statement)))
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
        """The session's options as they are now, secrets masked."""
        return dict(self.sessions.get(session, user).statements.options())

    def heartbeat(self, session: str, *, user: str = "") -> None:
        """Keeps the session from being closed as idle."""
        self.sessions.get(session, user)

    def list_sessions(self, *, user: str | None = "") -> list[SessionInfo]:
        """A user's sessions with their operations; None is all."""
        return [session.info() for session in self.sessions.of(user)]

    def catalog(self, session: str, *, user: str = "") -> SessionCatalog:
        """Catalogs, databases, tables, columns and functions as the session sees them."""
        return self.sessions.get(session, user).statements.catalog()

    def complete(self, session: str, statement: str, position: int, *, user: str = "") -> list[str]:
        """What may stand at ``position`` of ``statement``."""
        return self.sessions.get(session, user).statements.complete(statement, position)

    def watch(self, user: str) -> JobWatch:
        """What the jobs of a user do."""
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
        """Submits a statement; its handle. ``options`` hold for it alone; ``then`` makes its result of what
        it gave; ``timeout`` in seconds, 0 for none. What is wrong with it shows in its status, and when its
        result is read."""
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
        """As ``execute``, for who does not wait."""
        run = partial(self.sessions.get(session, user).statements.run, statement, dict(options or {}))
        work = run if then is None else lambda control: then(run(control))
        return self._submitting(session, work, shown_statement(statement), timeout, user)

    def submit(self, session: str, work: Work, *, shown: str = "", timeout: float = 0, user: str = "") -> str:
        """As ``execute``, of any work: it runs in its turn among the session's statements. ``shown``: what
        people are told of it."""
        return self._submitting(session, work, shown, timeout, user).result()

    def _submitting(self, session: str, work: Work, shown: str, timeout: float, user: str) -> Future[str]:
        opened = self.sessions.get(session, user)
        self.quotas.check_statement(self.sessions.of(user))
        operation = Operation(
            work=self._noticed(opened, work),
            changed=self._operation_changed,
            statement=shown,
            brief=_is_brief(shown),
        )
        ids = {"session": session, "operation": operation.handle}
        self.audit.note("execute", user, **ids, statement=shown)
        submitted: Future[str] = Future()

        def taken_down(written: Future[None]) -> None:
            try:
                written.result()
                opened.submit(operation, timeout)
            except Exception as e:  # any: who waits for the future would wait for ever
                submitted.set_exception(e)
            else:
                submitted.set_result(operation.handle)

        self.memory.submitted(opened, operation).add_done_callback(taken_down)
        return submitted

    def _operation_changed(self, operation: Operation, status: OperationStatus) -> None:
        self.memory.operation_changed(operation, status)
        self.metrics.operation(status)
        if status.is_terminal and not operation.status.value.is_terminal:
            self.telemetry.ended(operation, status)

    def epoch(self, progress: EpochProgress, user: str = "") -> None:
        """A job of ``user`` has committed an epoch."""
        self.metrics.jobs.epoch(progress, user)
        self.telemetry.epoch(progress)

    def job_event(self, event: JobEvent, user: str = "") -> None:
        """A job of ``user`` has begun, or failed."""
        self.metrics.jobs.event(event, user)

    def job_statuses(self, user: str) -> dict[str, str]:
        """Of a user's jobs, by their ids."""
        return {started.job.job_id: started.job.status for started in self.jobs(user).all()}

    def now(self) -> dict[str, int]:
        """How many sessions there are, and operations by their status."""
        sessions = self.sessions.of(None)
        statuses = Counter(o.status.value.value for s in sessions for o in list(s.operations.values()))
        return {"sessions": len(sessions), **statuses}

    def _noticed(self, session: Session, work: Work) -> Work:
        def run(control: Control) -> Outcome:
            outcome = work(control)
            self.memory.session_changed(session)
            return outcome

        return run

    def operation_info(self, session: str, operation: str, *, user: str = "") -> OperationInfo:
        return self.operation(session, operation, user).info()

    def wait(self, session: str, operation: str, seconds: float, *, user: str = "") -> OperationInfo:
        """As ``operation_info``, after it has ended or ``seconds`` have passed."""
        found = self.operation(session, operation, user)
        found.status.wait_ended(seconds)
        return found.info()

    def cancel(self, session: str, operation: str, *, user: str = "") -> OperationStatus:
        """Stops the statement and Spark's work for it; StatusError where it has ended."""
        found = self.operation(session, operation, user)
        self.audit.note("cancel", user, session=session, operation=operation)
        found.cancel()
        return found.status.value

    def stop_rows(self, session: str, operation: str, *, user: str = "") -> None:
        """Ends the query of an operation that has ended and gives rows still: those there are can be read."""
        self.operation(session, operation, user).control.stop()

    def close_operation(self, session: str, operation: str, *, user: str = "") -> None:
        """Frees its result and ends its query, if it gives rows still. One that is gone is fine."""
        opened = self.sessions.get(session, user)
        found = opened.operations.pop(operation.lower(), None)
        if found is not None:
            found.close()

    def result_info(self, session: str, operation: str, *, user: str = "") -> ResultInfo | None:
        """Columns and more, before any row is read; None while the statement runs."""
        return self.operation(session, operation, user).result_info()

    def fetch(
        self, session: str, operation: str, token: int, *, most: int = PAGE_ROWS, user: str = ""
    ) -> ResultPage:
        """A page of at most ``most`` rows; an endless query gives empty pages while there are none."""
        return self.operation(session, operation, user).fetch(token, most)

    def wait_rows(self, session: str, operation: str, token: int, seconds: float, *, user: str = "") -> None:
        """Returns when the page of ``token`` has rows, or is the last one, or after ``seconds``."""
        found = self.operation(session, operation, user)
        if not found.status.wait_ended(seconds):
            return
        if found.outcome is not None and token == found.outcome.pages.token:
            found.outcome.pages.wait_rows(seconds)

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
        """As ``fetch``, for wires without tokens: the rows after those read last, or with ``first`` from the
        beginning. Waits up to ``wait`` seconds for rows."""
        found = self.operation(session, operation, user)
        if found.outcome is not None:
            if first:
                found.outcome.pages.rewind()
            if wait > 0:
                found.outcome.pages.wait_rows(wait)
        return found.fetch(0 if found.outcome is None else found.outcome.pages.token, most)

    def operation(self, session: str, operation: str, user: str = "") -> Operation:
        """UnknownOperationError where there is none."""
        opened = self.sessions.get(session, user)
        found = opened.operations.get(operation.lower())
        if found is None:
            raise UnknownOperationError(operation)
        return found


def _is_brief(statement: str) -> bool:
    words = statement[:100].split(maxsplit=1)
    return bool(words) and words[0].upper() in _BRIEF
