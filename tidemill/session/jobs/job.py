"""The interface of a running or finished job, whatever runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tidemill.errors import ExecutionError, ValidationError


class JobHandle(Protocol):
    """One running INSERT, STATEMENT SET or SELECT."""

    @property
    def job_id(self) -> str:
        """32 hexadecimal digits, stable over restarts from a checkpoint directory."""
        ...

    @property
    def name(self) -> str: ...

    @property
    def status(self) -> str:
        """RUNNING, FINISHED, CANCELED or FAILED, as Flink says it."""
        ...

    def wait(self, timeout: float | None = None) -> None:
        """Blocks until the job has ended or ``timeout`` seconds have passed (TimeoutError); raises what
        made the job fail."""
        ...

    def stop(self) -> None:
        """Asks the job to stop after its current epoch; returns at once."""
        ...

    def cancel(self) -> None:
        """Asks the job to stop after its current epoch; returns when it has stopped."""
        ...

    def abort(self) -> None:
        """Discards the current epoch and stops; returns at once."""
        ...

    def stop_with_savepoint(self, directory: str, *, drain: bool = False) -> str:
        """Stops after the current epoch, writes a savepoint below ``directory``, and returns its path.
        ``drain``: results that wait for time to pass are emitted before."""
        ...

    def create_savepoint(self, directory: str = "", *, path: str = "") -> str:
        """Writes a savepoint after the current epoch, at ``path`` or below ``directory``, and returns its
        path. The job continues."""
        ...

    def is_running(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class EndedJob:
    """A job of an earlier process. ``error``: why it failed, '' if it did not."""

    job_id: str
    name: str
    status: str
    error: str = ""

    def wait(self, timeout: float | None = None) -> None:
        if self.error:
            raise ExecutionError(self.error)

    def stop(self) -> None:
        """It has stopped."""

    def cancel(self) -> None:
        """It has stopped."""

    def abort(self) -> None:
        """It has stopped."""

    def stop_with_savepoint(self, directory: str, *, drain: bool = False) -> str:
        raise ValidationError(f"Job {self.job_id} does not run: it is {self.status}.")

    def create_savepoint(self, directory: str = "", *, path: str = "") -> str:
        raise ValidationError(f"Job {self.job_id} does not run: it is {self.status}.")

    def is_running(self) -> bool:
        return False
