"""A job that is started again when it fails for reasons outside its query.

The job opens its checkpoint directory anew and continues after its last epoch, so that nothing is lost or
written twice. A job without such a directory is never started again. If a row fails, or if the statement is
no longer valid, a new start would fail again: the job ends at once. It also ends if another job took the
directory, or if this process's JVM ended.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tidemill.errors import (
    CommitUnknownError,
    ConnectorError,
    LostDriverError,
    LostProcessError,
    OwnershipError,
    StateError,
    TidemillError,
    ValidationError,
)
from tidemill.runtime.events import JobFailed
from tidemill.runtime.job.running import RunningJob
from tidemill.runtime.progress import EpochProgress
from tidemill.runtime.restarts.strategy import Strategy
from tidemill.runtime.snapshots import Held

RESTARTING = "RESTARTING"
_OUTSIDE = (ConnectorError, StateError, CommitUnknownError, LostProcessError)


@dataclass(slots=True)
class _Alteration:
    """The query with which a job continues. ``switch``: makes the job's state that of ``start``; this cannot
    be undone. ``error``: the reason if it failed."""

    start: Callable[[], RunningJob]
    switch: Callable[[], object] | None
    error: BaseException | None = None
    done: threading.Event = field(default_factory=threading.Event)


@dataclass(slots=True, kw_only=True)
class RestartingJob:
    """A job's handle that outlives its failures. ``restart`` starts the job anew; ``failed`` hears of each
    failure; ``clock`` gives seconds that only grow."""

    restart: Callable[[], RunningJob]
    strategy: Strategy
    failed: Callable[[JobFailed], None] = lambda _: None
    clock: Callable[[], float] = time.monotonic
    _now: RunningJob
    _waiting: bool = False
    _next: _Alteration | None = None
    _listeners: list[Callable[[EpochProgress], None]] = field(default_factory=list)
    _error: BaseException | None = None
    _stopping: threading.Event = field(default_factory=threading.Event)
    _done: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def follow(
        cls,
        job: RunningJob,
        restart: Callable[[], RunningJob],
        strategy: Strategy,
        failed: Callable[[JobFailed], None],
    ) -> RestartingJob:
        """Of a job that runs."""
        made = cls(_now=job, restart=restart, strategy=strategy, failed=failed)
        threading.Thread(target=made._follow, name=f"tidemill-restarts-{job.name}", daemon=True).start()
        return made

    @property
    def job_id(self) -> str:
        return self._now.job_id

    @property
    def name(self) -> str:
        return self._now.name

    @property
    def directory(self) -> str:
        """Where its state lies; '' if that goes with the job."""
        return self._now.directory

    @property
    def status(self) -> str:
        """As of a RunningJob; RESTARTING while it waits to be started again."""
        if not self._done.is_set():
            return RESTARTING if self._waiting else "RUNNING"
        if self._error is not None:
            return "FAILED"
        return "CANCELED" if self._waiting else self._now.status

    def is_running(self) -> bool:
        return not self._done.is_set()

    def wait(self, timeout: float | None = None) -> None:
        """Blocks until the job has ended for good; raises its last error, or TimeoutError."""
        if not self._done.wait(timeout):
            raise TimeoutError(f"job '{self.name}' still runs after {timeout} seconds")
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        with self._lock:
            self._stopping.set()
            self._now.stop()

    def cancel(self) -> None:
        self.stop()
        self._done.wait()

    def abort(self) -> None:
        with self._lock:
            self._stopping.set()
            self._now.abort()

    def stop_with_savepoint(self, directory: str, *, drain: bool = False) -> str:
        """ValidationError while it waits to be started again."""
        with self._lock:
            if self._waiting:
                raise ValidationError(f"Job {self.job_id} does not run: it is {self.status}.")
            job = self._now
            self._stopping.set()
        try:
            return job.stop_with_savepoint(directory, drain=drain)
        finally:
            self._done.wait()

    def create_savepoint(self, directory: str = "", *, path: str = "") -> str:
        """ValidationError while it waits to be started again."""
        with self._lock:
            if self._waiting:
                raise ValidationError(f"Job {self.job_id} does not run: it is {self.status}.")
            job = self._now
        return job.create_savepoint(directory, path=path)

    def listen(self, listener: Callable[[EpochProgress], None]) -> None:
        """``listener`` hears of each epoch, whatever restarts and alterations come; in the job's thread."""
        with self._lock:
            self._listeners.append(listener)
            self._now.listen(listener)

    def rest(self) -> Held:
        """As of a RunningJob. ValidationError while it waits to be started again."""
        with self._lock:
            if self._waiting:
                raise ValidationError(f"Job {self.job_id} does not run: it is {self.status}.")
            job = self._now
        return job.rest()

    def alter(self, start: Callable[[], RunningJob], switch: Callable[[], object] | None = None) -> None:
        """The job ends its epoch and goes on as ``start`` has it; returns when it does. If that cannot start,
        the job goes on as it was, and this raises the reason. ``switch`` comes first, and decides: once it
        has succeeded the job is the other one, and is started again if it fails."""
        alteration = _Alteration(start, switch)
        with self._lock:
            if self._waiting or self._next is not None or self._done.is_set():
                status = "being altered" if self._next is not None else self.status
                raise ValidationError(f"Job {self.job_id} does not run: it is {status}.")
            self._next = alteration
            self._now.stop()
        alteration.done.wait()
        if alteration.error is not None:
            raise alteration.error

    def _follow(self) -> None:
        try:
            error = _outcome(self._now.wait)
            while self._next is not None or (error is not None and self._waits_after(error)):
                error = self._started_again() if self._next is None else self._altered(self._next, error)
            self._error = None if self._waiting else error  # stopped while it waited
        finally:
            self._done.set()

    def _waits_after(self, error: BaseException) -> bool:
        """Whether the job is to be started now: it was to wait, and has."""
        outside = isinstance(error, _OUTSIDE) and not isinstance(error, OwnershipError | LostDriverError)
        with self._lock:
            again = outside and not self._stopping.is_set()
            wait = self.strategy.after_failure(self.clock()) if again else None
            self._waiting = wait is not None
        if again:
            self.failed(JobFailed(job_id=self.job_id, error=_said(error), wait=wait))
        return wait is not None and not self._stopping.wait(wait)

    def _altered(self, alteration: _Alteration, failure: BaseException | None) -> BaseException | None:
        """Runs it as it is from now on; ``failure``: of its last epoch, after which nothing is altered.
        Whoever asked hears of it when the job runs again."""
        error, job = failure, None
        if failure is None:
            try:
                if alteration.switch is not None:
                    alteration.switch()
                    self.restart = alteration.start
                job = self._begun(alteration.start)
                self.restart = alteration.start
            except Exception as e:
                error = e
        if job is None and failure is None:
            try:
                job = self._begun(self.restart)
            except Exception as e:
                failure = e
        alteration.error, self._next = None if self.restart is alteration.start else error, None
        alteration.done.set()
        return failure if job is None else _outcome(job.wait)

    def _started_again(self) -> BaseException | None:
        """Runs it until it ends or fails."""
        try:
            job = self._begun(self.restart)
        except Exception as e:
            return e
        return _outcome(job.wait)

    def _begun(self, start: Callable[[], RunningJob]) -> RunningJob:
        job = start()
        with self._lock:
            self._now, self._waiting = job, False
            for listener in self._listeners:
                job.listen(listener)
            if self._stopping.is_set():
                job.stop()
        return job


def _outcome(wait: Callable[[], None]) -> BaseException | None:
    """The exception that ended the job, of any kind, because every waiting thread must get it."""
    try:
        wait()
    except BaseException as e:
        return e
    return None


def _said(error: BaseException) -> str:
    return str(error) if isinstance(error, TidemillError) else f"{type(error).__name__}: {error}"
