"""One statement that a client has sent: its status, its outcome, and how to stop it."""

from __future__ import annotations

import datetime as dt
import logging
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from tidemill.errors import InternalError, TidemillError
from tidemill.gateway.api import (
    OperationInfo,
    OperationStatus,
    ResultInfo,
    ResultPage,
    ResultType,
    StatusError,
)
from tidemill.gateway.service.pages import Page, Pages
from tidemill.gateway.service.status import Status

_LOGGER = logging.getLogger("tidemill.gateway")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a statement. More rows may still arrive in ``pages``."""

    info: ResultInfo
    pages: Pages


@dataclass(slots=True)
class Control:
    """Stops the work of the operation with a ``handle``. Work that is registered after the stop is stopped at
    once."""

    handle: str
    _stops: list[Callable[[], None]] = field(default_factory=list)
    _stopped: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def stop_with(self, stop: Callable[[], None]) -> None:
        """Registers ``stop``, which must return soon, must not raise, and may be called after the work's
        end."""
        with self._lock:
            self._stops.append(stop)
            if not self._stopped:
                return
        stop()

    def stop(self) -> None:
        with self._lock:
            self._stopped, stops = True, tuple(self._stops)
        for stop in stops:
            stop()

    @property
    def is_stopped(self) -> bool:
        return self._stopped


Work = Callable[[Control], Outcome]


@dataclass(slots=True, kw_only=True)
class Operation:
    """``work`` runs in a lane of its session; any thread may call the methods."""

    handle: str = field(default_factory=lambda: str(uuid.uuid4()))
    work: Work
    changed: Callable[[Operation, OperationStatus], None] = lambda *_: None
    submitted: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC))
    statement: str = ""
    """The text for users, with masked secrets."""
    brief: bool = False
    """The operation should end soon, so it overtakes others."""
    control: Control = field(init=False)
    status: Status = field(init=False)
    outcome: Outcome | None = None
    error: TidemillError | None = None
    _timer: threading.Timer | None = None

    def __post_init__(self) -> None:
        self.control = Control(self.handle)
        self.status = Status(self.handle, self._tell)

    @classmethod
    def ended(
        cls,
        handle: str,
        submitted: dt.datetime,
        status: OperationStatus,
        outcome: Outcome | None,
        error: TidemillError | None,
        changed: Callable[[Operation, OperationStatus], None],
    ) -> Operation:
        """An operation that ended in an earlier process."""
        operation = cls(handle=handle, work=_nothing, submitted=submitted, changed=changed)
        operation.outcome, operation.error = outcome, error
        operation.status = Status.ended(handle, status, operation._tell)
        return operation

    def submit(self, timeout: float) -> None:
        """Sets the status to PENDING. ``timeout`` in seconds from now, 0 for none."""
        self.status.move(OperationStatus.PENDING)
        if timeout > 0:
            self._timer = threading.Timer(timeout, self._time_out)
            self._timer.daemon = True
            self._timer.start()

    def run(self) -> None:
        """Runs the work, unless the operation has ended before its turn."""
        if not self.status.try_move(OperationStatus.RUNNING):
            return
        try:
            outcome = self.work(self.control)
        except Exception as e:
            self._fail(_tidemill_error(e))
        else:
            self._finish(outcome)
        finally:
            if self._timer is not None:
                self._timer.cancel()

    def info(self) -> OperationInfo:
        return OperationInfo(
            handle=self.handle,
            status=self.status.value,
            submitted=self.submitted,
            error=self.error,
            statement=self.statement,
            job_id="" if self.outcome is None else self.outcome.info.job_id,
            warnings=() if self.outcome is None else self.outcome.info.warnings,
        )

    @property
    def is_light(self) -> bool:
        """Whether reading or closing the operation takes no time: it has ended by itself, and its result is
        small. (To close a stopped operation may take another call to Spark.)"""
        by_itself = self.status.value in (OperationStatus.FINISHED, OperationStatus.ERROR)
        return by_itself and (self.outcome is None or self.outcome.pages.is_light)

    def cancel(self) -> None:
        """Stops the work. StatusError if the operation has ended."""
        self.status.move(OperationStatus.CANCELED)
        self.control.stop()

    def close(self) -> None:
        """Stops the work and frees the result."""
        if self.status.try_move(OperationStatus.CLOSED):
            self.control.stop()
            if self.outcome is not None:
                self.outcome.pages.close()

    def fetch(self, token: int, most: int) -> ResultPage:
        """A page of the result; NOT_READY while the work runs. Raises the work's error; StatusError if there
        is no result."""
        outcome = self._readable()
        if outcome is None:
            return ResultPage(type=ResultType.NOT_READY, next_token=token)
        page: Page = outcome.pages.fetch(token, most)
        return ResultPage(
            type=ResultType.EOS if page.rows is None else ResultType.PAYLOAD,
            info=outcome.info,
            rows=outcome.pages.schema.empty_table() if page.rows is None else page.rows,
            next_token=page.next_token,
        )

    def result_info(self) -> ResultInfo | None:
        """The result's columns and kind; None while the statement runs."""
        outcome = self._readable()
        return None if outcome is None else outcome.info

    def _readable(self) -> Outcome | None:
        status = self.status.value
        if self.error is not None:
            raise self.error
        if status is OperationStatus.FINISHED and self.outcome is not None:
            return self.outcome
        if status.is_terminal:
            word = status.value
            raise StatusError(
                f"Can not fetch results from the {self.handle} in {word} status ({word.lower()})."
            )
        return None

    def _finish(self, outcome: Outcome) -> None:
        self.outcome = outcome
        if not self.status.try_move(OperationStatus.FINISHED):
            self.control.stop()
            outcome.pages.close()

    def _fail(self, error: TidemillError) -> None:
        """Sets the status to ERROR. If the operation was stopped before, the stop caused the error: drops
        it."""
        self.error = error
        if not self.status.try_move(OperationStatus.ERROR):
            self.error = None

    def _tell(self, status: OperationStatus) -> None:
        self.changed(self, status)

    def _time_out(self) -> None:
        if self.status.try_move(OperationStatus.TIMEDOUT):
            self.control.stop()


def _nothing(control: Control) -> Outcome:
    raise InternalError("an operation of an earlier process does not run again")


def _tidemill_error(error: Exception) -> TidemillError:
    if isinstance(error, TidemillError):
        return error
    _LOGGER.error("a statement failed in a way that it should not", exc_info=error)
    internal = InternalError(f"{type(error).__name__}: {error}")
    internal.__cause__ = error
    return internal
