"""JobClient: a job, with PyFlink's methods, which return futures."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeVar

from tidemill.session.jobs.job import JobHandle

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class JobExecutionResult:
    """``milliseconds`` from the creation of the client to the end of the job."""

    job_id: str
    milliseconds: int

    def get_job_id(self) -> str:
        return self.job_id

    def get_net_runtime(self) -> int:
        return self.milliseconds


@dataclass(slots=True)
class JobClient:
    """PyFlink's JobClient, with four additions: ``wait``, ``stop``, ``is_running`` and ``job_id``.

    >>> client = env.execute_sql("INSERT INTO sink SELECT * FROM source").get_job_client()
    >>> client.get_job_status().result()
    'RUNNING'
    >>> client.cancel().result()
    """

    job: JobHandle
    _since: float = field(default_factory=time.monotonic)

    @property
    def job_id(self) -> str:
        return self.job.job_id

    def is_running(self) -> bool:
        return self.job.is_running()

    def wait(self, timeout: float | None = None) -> None:
        self.job.wait(timeout)

    def stop(self) -> None:
        """Asks the job to stop after its current epoch, and returns at once."""
        self.job.stop()

    def get_job_id(self) -> str:
        return self.job.job_id

    def get_job_status(self) -> Future[str]:
        """RUNNING, FINISHED, CANCELED or FAILED."""
        return _done(self.job.status)

    def cancel(self) -> Future[None]:
        """Stops the job after its current epoch, and waits until it has stopped."""
        self.job.cancel()
        return _done(None)

    def stop_with_savepoint(self, advance_to_end_of_event_time: bool, directory: str) -> Future[str]:
        """Stops the job after its current epoch and writes a savepoint. The result is the savepoint's path,
        below ``directory``."""
        return _done(self.job.stop_with_savepoint(directory, drain=advance_to_end_of_event_time))

    def trigger_savepoint(self, savepoint_directory: str) -> Future[str]:
        """Writes a savepoint below ``savepoint_directory`` while the job goes on; its place."""
        return _done(self.job.create_savepoint(savepoint_directory))

    def get_job_execution_result(self) -> Future[JobExecutionResult]:
        """A future that is done when the job has ended. Its ``result`` raises the error of a failed job."""
        future: Future[JobExecutionResult] = Future()
        threading.Thread(target=self._follow, args=(future,), name="tidemill-job-result", daemon=True).start()
        return future

    def _follow(self, future: Future[JobExecutionResult]) -> None:
        try:
            self.job.wait()
        except BaseException as e:  # handed to whoever asks for the result
            future.set_exception(e)
            return
        took = int((time.monotonic() - self._since) * 1000)
        future.set_result(JobExecutionResult(self.job.job_id, took))


def _done(value: T) -> Future[T]:
    future: Future[T] = Future()
    future.set_result(value)
    return future
