"""What of the service outlives its process: sessions, operations with their results, jobs.

Written before a client is told; read once, at the start. What was running then has an end: a query is an
ERROR that says why, a job goes on after its last epoch. Where the store cannot be written a new session or
statement is refused; what runs goes on, and its end is lost to the store.
"""

from __future__ import annotations

import datetime as dt
import logging
import os
import shutil
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

from tidemill import errors
from tidemill.errors import TidemillError
from tidemill.gateway.api import GatewayError, OperationStatus, ResultInfo
from tidemill.gateway.service.operation import Operation, Outcome
from tidemill.gateway.service.pages import restored
from tidemill.gateway.service.results import Results
from tidemill.gateway.service.sessions import Session
from tidemill.gateway.store.store import KeptJob, KeptOperation, KeptSession, Store
from tidemill.session.catalogs.reading import type_named
from tidemill.session.history.documents import document
from tidemill.session.history.documents import restored as restored_look
from tidemill.session.history.watch import JobLook
from tidemill.session.job import JobHandle
from tidemill.session.jobs import ENDED
from tidemill.session.time_zone import zone_of
from tidemill.types.logical import Field

Json = dict[str, Any]
_LOGGER = logging.getLogger("tidemill.gateway")
_ERRORS: dict[str, type[TidemillError]] = {
    kind.code: kind
    for kind in (
        errors.SqlSyntaxError,
        errors.ValidationError,
        errors.NotSupportedError,
        errors.NotPermittedError,
        errors.ConnectorError,
        errors.ExecutionError,
        errors.StateError,
        errors.CommitUnknownError,
        errors.LostProcessError,
        errors.SetupError,
        errors.InternalError,
        GatewayError,
    )
}
INTERRUPTED = "The gateway was restarted while the statement ran. Send it again."
_LOST = "The gateway was restarted before all rows of the result were there. Send the statement again."


class Memory(Protocol):
    """What the service tells of its sessions and operations."""

    def session_opened(self, session: Session) -> None:
        """Before its client knows of it; StateError refuses it."""
        ...

    def session_changed(self, session: Session) -> None:
        """A statement has run, and may have changed the session; nobody knows yet that it has ended."""
        ...

    def session_closed(self, handle: str) -> None: ...

    def submitted(self, session: Session, operation: Operation) -> Future[None]:
        """Before it runs, or its client knows of it, which is when this is done; StateError refuses it."""
        ...

    def operation_changed(self, operation: Operation, status: OperationStatus) -> None:
        """``operation`` will have ``status`` next."""
        ...


class Forgetful:
    """Nothing outlives the process."""

    def session_opened(self, session: Session) -> None:
        return None

    def session_changed(self, session: Session) -> None:
        return None

    def session_closed(self, handle: str) -> None:
        return None

    def submitted(self, session: Session, operation: Operation) -> Future[None]:
        made: Future[None] = Future()
        made.set_result(None)
        return made

    def operation_changed(self, operation: Operation, status: OperationStatus) -> None:
        return None


@dataclass(slots=True, kw_only=True)
class Keeping:
    """A ``Memory`` in a store. ``jobs_folder``: where jobs without a checkpoint directory keep theirs."""

    store: Store
    results: Results
    jobs_folder: str
    _ending: threading.Event = field(default_factory=threading.Event)

    # -- sessions and operations

    def session_opened(self, session: Session) -> None:
        self.store.put_session(_kept_session(session))

    def session_changed(self, session: Session) -> None:
        if session.statements.changed() and not self._ending.is_set():
            self.store.put_session(_kept_session(session))

    def session_closed(self, handle: str) -> None:
        self._try(lambda: self.store.remove_session(handle))

    def submitted(self, session: Session, operation: Operation) -> Future[None]:
        return self.store.add_operation(
            KeptOperation(
                handle=operation.handle,
                session=session.handle,
                submitted=operation.submitted,
                status=OperationStatus.RUNNING.value,
            )
        )

    def operation_changed(self, operation: Operation, status: OperationStatus) -> None:
        if self._ending.is_set():
            return
        if status is OperationStatus.CLOSED:  # nobody waits: one that comes back goes with its session
            self.store.remove_operation(operation.handle).add_done_callback(_noted)
        elif status.is_terminal:
            error = None if operation.error is None else _error(operation.error)
            result = None if operation.outcome is None else _result(operation.outcome)
            self._try(lambda: self.store.end_operation(operation.handle, status.value, error, result))

    def kept_operations(self) -> dict[str, list[Operation]]:
        """What the process before had, by session."""
        found: dict[str, list[Operation]] = {}
        for kept in self.store.operations():
            found.setdefault(kept.session, []).append(self._operation(kept))
        return found

    def _operation(self, kept: KeptOperation) -> Operation:
        status, outcome = OperationStatus(kept.status), None
        error = None if kept.error is None else _restored_error(kept.error)
        if status is OperationStatus.RUNNING:
            status, error = OperationStatus.ERROR, GatewayError(INTERRUPTED)
        elif status is OperationStatus.FINISHED and kept.result is not None:
            outcome = self._outcome(kept.handle, kept.result)
            if outcome is None:
                status, error = OperationStatus.ERROR, GatewayError(_LOST)
        if status.value != kept.status and error is not None:
            self.store.end_operation(kept.handle, status.value, _error(error), None)
        return Operation.ended(kept.handle, kept.submitted, status, outcome, error, self.operation_changed)

    def _outcome(self, handle: str, kept: Json) -> Outcome | None:
        info = _restored_info(kept)
        pages = self.results.pages(info, handle, endless=not kept.get("whole", not kept["endless"]))
        return Outcome(info, pages) if restored(pages, kept.get("rows", "")) else None

    def forget_results(self, known: Iterable[str]) -> None:
        """Removes the pages of operations that nobody knows."""
        names = set(known)
        for name in os.listdir(self.results.folder):
            if name not in names:
                shutil.rmtree(os.path.join(self.results.folder, name), ignore_errors=True)

    # -- jobs

    def job_started(self, job: JobHandle, place: str, owner: str, statement: str, snapshot: Json) -> None:
        self.store.put_job(
            KeptJob(
                place=place,
                job_id=job.job_id,
                name=job.name,
                owner=owner,
                started=dt.datetime.now(dt.UTC),
                status=job.status,
                statements=[statement],
                snapshot=snapshot,
            )
        )

    def kept_jobs(self) -> list[KeptJob]:
        """Those that run, and of ended ones the last; others are forgotten now."""
        found = self.store.jobs()
        ended = [job for job in found if job.status != "RUNNING"]
        old = {job.place for job in ended[: max(0, len(ended) - ENDED)]}
        for place in old:
            self.store.remove_job(place)
        return [job for job in found if job.place not in old]

    def job_ended(self, place: str, status: str, error: str | None) -> None:
        """What it has left goes with it, unless it failed: then somebody may want to look."""
        if not self._ending.is_set():
            self._try(lambda: self.store.end_job(place, status, dt.datetime.now(dt.UTC), error))
            if status != "FAILED" and place.startswith(self.jobs_folder):
                shutil.rmtree(place, ignore_errors=True)

    def job_seen(self, place: str, look: JobLook) -> None:
        """What there is to show of it, now and then: a killed process may lose the last seconds of it."""
        if not self._ending.is_set():
            self._try(lambda: self.store.put_history(place, document(look)))

    def job_history(self, place: str) -> JobLook | None:
        kept = self.store.history(place)
        try:
            return None if kept is None else restored_look(kept)
        except (KeyError, TypeError, ValueError):  # another version's: it is only shown
            return None

    def end(self) -> None:
        """From now on what stops does so with the process: the next one finds it as it is now."""
        self._ending.set()

    @staticmethod
    def _try(write: Callable[[], None]) -> None:
        try:
            write()
        except Exception:
            _LOGGER.exception("the gateway's store was not written")


def _noted(written: Future[None]) -> None:
    if written.exception() is not None:
        _LOGGER.error("the gateway's store was not written", exc_info=written.exception())


def _kept_session(session: Session) -> KeptSession:
    return KeptSession(
        handle=session.handle,
        name=session.name,
        owner=session.user,
        opened=session.opened,
        snapshot=session.statements.snapshot(),
    )


def _error(error: TidemillError) -> Json:
    return {"code": error.code, "message": str(error)}


def _restored_error(kept: Json) -> TidemillError:
    return _ERRORS.get(kept["code"], TidemillError)(kept["message"])


def _result(outcome: Outcome) -> Json:
    """With the rows, where there are few."""
    info = outcome.info
    return {
        "fields": [[f.name, str(f.type)] for f in info.fields],
        "query": info.is_query,
        "kind": info.result_kind,
        "job": info.job_id,
        "zone": str(info.zone),
        "endless": info.changelog,
        "whole": outcome.pages.keep,
        "rows": outcome.pages.small_rows(),
    }


def _restored_info(kept: Json) -> ResultInfo:
    return ResultInfo(
        fields=tuple(Field(name, type_named(text)) for name, text in kept["fields"]),
        is_query=kept["query"],
        result_kind=kept["kind"],
        job_id=kept["job"],
        zone=zone_of(kept["zone"]),
        changelog=kept["endless"],
    )
