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


@dataclass(frozen=True, slots=True)
class StartedJob:
    """``query``: it gives its rows to who asked, and is over with these."""

    job: JobHandle
    started: dt.datetime
    query: bool = False


@dataclass(slots=True)
class Jobs:
    """In the order in which they were started; ended ones stay. Any thread may ask."""

    _started: list[StartedJob] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

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
