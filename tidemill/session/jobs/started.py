"""The jobs that statements have started: of one session, or of all sessions of a gateway."""

from __future__ import annotations

import datetime as dt
import threading
from contextlib import suppress
from dataclasses import dataclass, field, replace

from tidemill.errors import TidemillError
from tidemill.session.jobs.job import EndedJob, JobHandle

ENDED = 1_000
QUERIES = 100
_TAKEN_DOWN = 30
"""The longest wait in seconds until a job's end is stored: a store that is down must not block forever."""


@dataclass(frozen=True, slots=True)
class StartedJob:
    """``query``: a SELECT, which ends with its rows."""

    job: JobHandle
    started: dt.datetime
    query: bool = False


@dataclass(slots=True)
class Jobs:
    """Jobs in the order of their start, ended ones included. Any thread may call. ``followed``: another
    thread stores each job's end, and then retires the job."""

    followed: bool = False
    _started: list[StartedJob] = field(default_factory=list)
    _lock: threading.Condition = field(default_factory=threading.Condition)

    def add(self, job: JobHandle) -> None:
        with self._lock:
            self._started.append(StartedJob(job, dt.datetime.now(dt.UTC)))

    def add_query(self, job: JobHandle) -> None:
        """Adds a query. Keeps the last ``QUERIES`` ended queries, as ``EndedJob``."""
        with self._lock:
            self._started = [_ended(s) if s.query else s for s in self._started]
            self._started.append(StartedJob(job, dt.datetime.now(dt.UTC), query=True))
            ended = [s for s in self._started if s.query and isinstance(s.job, EndedJob)]
            for old_query in ended[:-QUERIES]:
                self._started.remove(old_query)

    def retire(self, job: JobHandle, error: str) -> None:
        """Replaces an ended job by an ``EndedJob``, and keeps the last ``ENDED`` of them."""
        with self._lock:
            ended_job = EndedJob(job.job_id, job.name, job.status, error)
            self._started = [StartedJob(ended_job, s.started) if s.job is job else s for s in self._started]
            ended = [s for s in self._started if isinstance(s.job, EndedJob) and not s.query]
            if len(ended) > ENDED:
                self._started.remove(ended[0])
            self._lock.notify_all()

    def cancel(self, started: StartedJob) -> None:
        """Stops a job after its epoch. Returns once the job has stopped and its end is stored, so that the
        job does not run again after a crash."""
        started.job.cancel()
        self._settled(started)

    def stop_with_savepoint(self, started: StartedJob, directory: str, *, drain: bool) -> str:
        """``cancel`` with a savepoint below ``directory``; returns the savepoint's path."""
        path = started.job.stop_with_savepoint(directory, drain=drain)
        self._settled(started)
        return path

    def create_savepoint(self, started: StartedJob, directory: str, path: str) -> str:
        """Writes a savepoint to ``path`` or below ``directory`` and returns its path. The job continues."""
        return started.job.create_savepoint(directory, path=path)

    def _settled(self, started: StartedJob) -> None:
        if self.followed and not started.query and not isinstance(started.job, EndedJob):
            with self._lock:
                self._lock.wait_for(lambda: all(s.job is not started.job for s in self._started), _TAKEN_DOWN)

    def put_back(self, job: JobHandle, started: dt.datetime) -> None:
        """Adds a job of an earlier process."""
        with self._lock:
            self._started.append(StartedJob(job, started))

    def all(self) -> tuple[StartedJob, ...]:
        with self._lock:
            return tuple(self._started)

    def stop(self, seconds: float) -> None:
        """Stops all running jobs after their epochs, and waits at most ``seconds`` for each."""
        running = [s.job for s in self.all() if s.job.is_running()]
        for job in running:
            job.stop()
        for job in running:
            with suppress(TimeoutError, TidemillError):
                job.wait(seconds)

    def find(self, job_id: str) -> StartedJob | None:
        """The latest job with an id: a resumed job keeps its id."""
        return next((s for s in reversed(self.all()) if s.job.job_id == job_id), None)


def _ended(started: StartedJob) -> StartedJob:
    job = started.job
    if isinstance(job, EndedJob) or job.is_running():
        return started
    return replace(started, job=EndedJob(job.job_id, job.name, job.status))
