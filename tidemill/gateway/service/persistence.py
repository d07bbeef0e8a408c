"""Stores the service's state that outlives its process: sessions, operations with their results, and jobs.

The service writes before it answers the client, and reads once, at the start. After a restart an interrupted
query is an ERROR that says why, and a job continues after its last epoch. If the store cannot be written, the
service refuses new sessions and statements; running statements continue, but the store does not learn of
their end.
"""

from __future__ import annotations

import datetime as dt
import logging
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
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
from tidemill.session.jobs.job import JobHandle
from tidemill.session.jobs.started import ENDED
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
    """Receives the changes of the service's sessions and operations."""

    def session_opened(self, session: Session) -> None:
        """Called before the client learns of the session. StateError refuses the session."""
        ...

    def session_changed(self, session: Session) -> None:
        """Called after a statement that may have changed the session, before its client learns of the end."""
        ...

    def session_closed(self, handle: str) -> None: ...

    def submitted(self, session: Session, operation: Operation) -> Future[None]:
        """Called before the operation runs. It runs, and its client learns of it, once the future is done.
        StateError refuses the operation."""
        ...

    def operation_changed(self, operation: Operation, status: OperationStatus) -> None:
        """Called before ``operation`` changes to ``status``."""
        ...


class Forgetful:
    """A ``Memory`` that stores nothing."""

    def session_opened(self, session: Session) -> None:
        return None

    def session_changed(self, session: Session) -> None:
        return None

    def session_closed(self, handle: str) -> None:
        return None

    def submitted(self, session: Session, operation: Operation) -> Future[None]:
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def operation_changed(self, operation: Operation, status: OperationStatus) -> None:
        return None


@dataclass(slots=True, kw_only=True)
class StoredMemory:
    """A ``Memory`` in a store. ``jobs_folder``: parent of the checkpoint directories of jobs that name
    none."""

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
        if (
            status is OperationStatus.CLOSED
        ):  # no need to wait: a lost removal is repeated when the session closes
            self.store.remove_operation(operation.handle).add_done_callback(_log_failure)
        elif status.is_terminal:
            error = None if operation.error is None else _error(operation.error)
            result = None if operation.outcome is None else _result(operation.outcome)
            self._try(lambda: self.store.end_operation(operation.handle, status.value, error, result))

    def kept_operations(self) -> dict[str, list[Operation]]:
        """The operations of the previous process, by session."""
        by_session: dict[str, list[Operation]] = {}
        for kept in self.store.operations():
            by_session.setdefault(kept.session, []).append(self._operation(kept))
        return by_session

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

    def forget_results(self, handles: Iterable[str]) -> None:
        """Removes the pages of all operations but the ``known`` ones."""
        known_handles = set(handles)
        for name in os.listdir(self.results.folder):
            if name not in known_handles:
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

    def job_set(self, place: str, options: Mapping[str, str]) -> None:
        """Stores other options of the job in ``place``."""
        for job in self.store.jobs():
            if job.place == place:
                changed = {**job.snapshot["options"], **options}
                self.store.put_job(replace(job, snapshot={**job.snapshot, "options": changed}))

    def kept_jobs(self) -> list[KeptJob]:
        """The running jobs and the last ended ones; removes older ended jobs."""
        jobs = self.store.jobs()
        ended = [job for job in jobs if job.status != "RUNNING"]
        old = {job.place for job in ended[: max(0, len(ended) - ENDED)]}
        for place in old:
            self.store.remove_job(place)
        return [job for job in jobs if job.place not in old]

    def job_ended(self, place: str, status: str, error: str | None) -> None:
        """Stores the job's end, and removes its checkpoint directory unless it failed and may be
        inspected."""
        if not self._ending.is_set():
            self._try(lambda: self.store.end_job(place, status, dt.datetime.now(dt.UTC), error))
            if status != "FAILED" and place.startswith(self.jobs_folder):
                shutil.rmtree(place, ignore_errors=True)

    def job_seen(self, place: str, look: JobLook) -> None:
        """Stores a job's metrics, now and then. A killed process may lose those of the last seconds."""
        if not self._ending.is_set():
            self._try(lambda: self.store.put_history(place, document(look)))

    def job_history(self, place: str) -> JobLook | None:
        kept = self.store.history(place)
        try:
            return None if kept is None else restored_look(kept)
        except (
            KeyError,
            TypeError,
            ValueError,
        ):  # written by another version; the history is only for display
            return None

    def end(self) -> None:
        """Stores nothing from now on: the next process finds the state of this moment."""
        self._ending.set()

    @staticmethod
    def _try(write: Callable[[], None]) -> None:
        try:
            write()
        except Exception:
            _LOGGER.exception("the gateway's store was not written")


def _log_failure(written: Future[None]) -> None:
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
    """The result as JSON, with its rows if they are few."""
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
