"""Requests for a snapshot of a running job: others ask, the job's own thread answers between two epochs."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

from tidemill.errors import ValidationError
from tidemill.runtime.checkpoint.epochs import EpochCommit


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A commit whose files stay until ``release``; None before the first epoch. ``rested``: the job waits for
    that."""

    commit: EpochCommit | None
    release: Callable[[], None]
    rested: threading.Event = field(default_factory=threading.Event)


@dataclass(slots=True)
class SnapshotRequests:
    _waiting: queue.SimpleQueue[tuple[Future[Held], bool]] = field(default_factory=queue.SimpleQueue)
    _closed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, *, rests: bool = False) -> Held:
        """Waits for the end of the epoch under way; ValidationError where the job ends instead. ``rests``: no
        epoch follows before ``rested`` is set."""
        future: Future[Held] = Future()
        with self._lock:
            if self._closed:
                raise _ended()
            self._waiting.put((future, rests))
        try:
            return future.result()
        except BaseException:
            # Whoever waits may be interrupted: the answer is for nobody then.
            future.add_done_callback(_let_go)
            raise

    def answer(self, hold: Callable[[], Held]) -> None:
        """All that wait, each with a ``hold`` of its own."""
        while not self._waiting.empty():
            future, rests = self._waiting.get()
            try:
                held = hold()
                future.set_result(held)
            except BaseException as e:
                future.set_exception(e)
                raise
            if rests:
                held.rested.wait()

    def close(self) -> None:
        """The job has ended: nobody answers any more."""
        with self._lock:
            self._closed = True
        while not self._waiting.empty():
            self._waiting.get()[0].set_exception(_ended())


def _let_go(future: Future[Held]) -> None:
    if future.exception() is None:
        held = future.result()
        held.rested.set()
        held.release()


def _ended() -> ValidationError:
    return ValidationError("The job ended before it answered.")
