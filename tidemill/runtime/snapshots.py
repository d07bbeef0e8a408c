"""Requests for a snapshot of a running job: others ask, the job's own thread answers between two epochs."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

from tidemill.errors import ValidationError
from tidemill.runtime.checkpoint.directory import EpochCommit


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A commit whose files stay until ``release``; None before the first epoch."""

    commit: EpochCommit | None
    release: Callable[[], None]


@dataclass(slots=True)
class SnapshotRequests:
    _waiting: queue.SimpleQueue[Future[Held]] = field(default_factory=queue.SimpleQueue)
    _closed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self) -> Held:
        """Waits for the end of the epoch under way; ValidationError where the job ends instead."""
        future: Future[Held] = Future()
        with self._lock:
            if self._closed:
                raise _ended()
            self._waiting.put(future)
        return future.result()

    def answer(self, hold: Callable[[], Held]) -> None:
        """All that wait, each with a ``hold`` of its own."""
        while not self._waiting.empty():
            future = self._waiting.get()
            try:
                future.set_result(hold())
            except BaseException as e:
                future.set_exception(e)
                raise

    def close(self) -> None:
        """The job has ended: nobody answers any more."""
        with self._lock:
            self._closed = True
        while not self._waiting.empty():
            self._waiting.get().set_exception(_ended())


def _ended() -> ValidationError:
    return ValidationError("The job ended before its savepoint.")
