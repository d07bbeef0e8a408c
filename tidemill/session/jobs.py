"""The jobs that statements have started: of one session, or of all sessions of a gateway."""

from __future__ import annotations

import datetime as dt
import threading
from contextlib import suppress
from dataclasses import dataclass, field, replace

from tidemill.errors import TidemillError
from tidemill.session.job import EndedJob, JobHandle

ENDED = 1_000
QUERIES = 100
_TAKEN_DOWN = 30
"""Seconds at most until it is taken down that a job has ended: a store that is down keeps nobody for ever."""


@dataclass(frozen=True, slots=True)
class StartedJob:
    """``query``: it gives its rows to who asked, and is over with these."""

    job: JobHandle
    started: dt.datetime
    query: bool = False


@dataclass(slots=True)
class Jobs:
    """In the order in which they were started; ended ones stay. Any thread may ask. ``followed``: somebody
    takes down how each ends, and retires it."""

    followed: bool = False
    _started: list[StartedJob] = field(default_factory=list)
    _lock: threading.Condition = field(default_factory=threading.Condition)

    def add(self, job: JobHandle) -> None:
        with self._lock:
            self._started.append(StartedJob(job, dt.datetime.now(dt.UTC)))

    def add_query(self, job: JobHandle) -> None:
        """Of queries the last ``QUERIES`` stay, and of an ended one only what is shown of it."""
        with self._lock:
            self._started = [_ended(s) if s.query else s for s in self._started]
            self._started.append(StartedJob(job, dt.datetime.now(dt.UTC), query=True))
            ended = [s for s in self._started if s.query and isinstance(s.job, EndedJob)]
            for one in ended[:-QUERIES]:
                self._started.remove(one)

    def retire(self, job: JobHandle, error: str) -> None:
        """Keeps of an ended job what is shown of it, and of ended jobs the last ``ENDED``."""
        with self._lock:
            kept = EndedJob(job.job_id, job.name, job.status, error)
            self._started = [StartedJob(kept, s.started) if s.job is job else s for s in self._started]
            ended = [s for s in self._started if isinstance(s.job, EndedJob) and not s.query]
            if len(ended) > ENDED:
                self._started.remove(ended[0])
            self._lock.notify_all()

    def cancel(self, started: StartedJob) -> None:
        """Stops it after its epoch; returns when it has stopped, and that is taken down: who has been told so
        does not find it at work after a crash."""
        started.job.cancel()
        self._settled(started)

    def stop_with_savepoint(self, started: StartedJob, directory: str, *, drain: bool) -> str:
        """As ``cancel``; the place of the savepoint, below ``directory``."""
        path = started.job.stop_with_savepoint(directory, drain=drain)
        self._settled(started)
        return path

    def create_savepoint(self, started: StartedJob, directory: str, path: str) -> str:
        """The place of the savepoint, ``path`` or one below ``directory``; the job goes on."""
        return started.job.create_savepoint(directory, path=path)

    def _settled(self, started: StartedJob) -> None:
        if self.followed and not started.query and not isinstance(started.job, EndedJob):
            with self._lock:
                self._lock.wait_for(lambda: all(s.job is not started.job for s in self._started), _TAKEN_DOWN)

    def put_back(self, job: JobHandle, started: dt.datetime) -> None:
        """One that an earlier process had started."""
        with self._lock:
            self._started.append(StartedJob(job, started))

    def all(self) -> tuple[StartedJob, ...]:
        with self._lock:
            return tuple(self._started)

    def stop(self, seconds: float) -> None:
        """Stops all that run, each after its epoch; waits for them, for each so long at most."""
        running = [s.job for s in self.all() if s.job.is_running()]
        for job in running:
            job.stop()
        for job in running:
            with suppress(TimeoutError, TidemillError):
                job.wait(seconds)

    def find(self, job_id: str) -> StartedJob | None:
        """The latest of that id: a job that goes on where it stopped keeps it."""
        return next((s for s in reversed(self.all()) if s.job.job_id == job_id), None)


def _ended(started: StartedJob) -> StartedJob:
    job = started.job
    if isinstance(job, EndedJob) or job.is_running():
        return started
    return replace(started, job=EndedJob(job.job_id, job.name, job.status))
