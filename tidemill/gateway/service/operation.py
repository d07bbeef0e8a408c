"""One statement that a client has sent: where it stands, how to stop it, what it gave."""

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
    """What a statement gave: its rows may still be coming."""

    info: ResultInfo
    pages: Pages


@dataclass(slots=True)
class Control:
    """How to stop what an operation has under way. What is registered after the stop is stopped at once.
    ``handle``: the operation's."""

    handle: str
    _stops: list[Callable[[], None]] = field(default_factory=list)
    _stopped: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def stop_with(self, stop: Callable[[], None]) -> None:
        """``stop`` returns soon, does not raise, and may be called once the work has ended."""
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
    """``work`` runs in a lane of its session; all else may be asked by any thread."""

    handle: str = field(default_factory=lambda: str(uuid.uuid4()))
    work: Work
    changed: Callable[[Operation, OperationStatus], None] = lambda *_: None
    submitted: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC))
    statement: str = ""
    """As it may be shown."""
    brief: bool = False
    """It is not expected to take long: it goes before others."""
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
        """One that an earlier process has ended."""
        made = cls(handle=handle, work=_nothing, submitted=submitted, changed=changed)
        made.outcome, made.error = outcome, error
        made.status = Status.ended(handle, status, made._tell)
        return made

    def submit(self, timeout: float) -> None:
        """It waits for its turn; ``timeout`` in seconds from now, 0 for none."""
        self.status.move(OperationStatus.PENDING)
        if timeout > 0:
            self._timer = threading.Timer(timeout, self._time_out)
            self._timer.daemon = True
            self._timer.start()

    def run(self) -> None:
        """Its turn has come; it may have been ended before."""
        if not self.status.try_move(OperationStatus.RUNNING):
            return
        try:
            outcome = self.work(self.control)
        except Exception as e:
            self._fail(_own(e))
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
        """It has come to its end, and what it holds is read and freed in no time: of one that was stopped
        Spark may have to be told again."""
        by_itself = self.status.value in (OperationStatus.FINISHED, OperationStatus.ERROR)
        return by_itself and (self.outcome is None or self.outcome.pages.is_light)

    def cancel(self) -> None:
        """StatusError where it has ended."""
        self.status.move(OperationStatus.CANCELED)
        self.control.stop()

    def close(self) -> None:
        """Frees what it holds; what still runs is stopped."""
        if self.status.try_move(OperationStatus.CLOSED):
            self.control.stop()
            if self.outcome is not None:
                self.outcome.pages.close()

    def fetch(self, token: int, most: int) -> ResultPage:
        """NOT_READY while it runs; raises what made it fail; StatusError where there is nothing to read."""
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
        """What is known of the result before its rows; None while the statement runs."""
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
        """What fails after it was stopped, fails because of that."""
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


def _own(error: Exception) -> TidemillError:
    if isinstance(error, TidemillError):
        return error
    _LOGGER.error("a statement failed in a way that it should not", exc_info=error)
    made = InternalError(f"{type(error).__name__}: {error}")
    made.__cause__ = error
    return made
