"""What a caller may do with a running or finished job, whatever runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tidemill.errors import ExecutionError, ValidationError


class JobHandle(Protocol):
    """One INSERT, STATEMENT SET or SELECT under way."""

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
        """Gives up the epoch under way, of which nothing is kept, and stops; returns at once."""
        ...

    def stop_with_savepoint(self, directory: str, *, drain: bool = False) -> str:
        """Stops after the current epoch and writes a savepoint below ``directory``; where it lies. ``drain``:
        what waits for time to pass comes out before."""
        ...

    def create_savepoint(self, directory: str = "", *, path: str = "") -> str:
        """Writes a savepoint after the epoch under way, at ``path`` or below ``directory``, and goes on;
        where it lies."""
        ...

    def is_running(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class EndedJob:
    """A job of an earlier process. ``error``: what made it fail."""

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
