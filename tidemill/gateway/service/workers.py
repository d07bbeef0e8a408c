"""Threads that run statements: of one session in order, of several sessions side by side."""

from __future__ import annotations

import logging
import queue
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

Task = Callable[[], None]
_LOGGER = logging.getLogger("tidemill.gateway")


@dataclass(slots=True, kw_only=True)
class Workers:
    """At most ``most`` threads; those beyond ``least`` end after ``keepalive`` idle seconds."""

    least: int
    most: int
    keepalive: float
    _tasks: queue.SimpleQueue[Task | None] = field(default_factory=queue.SimpleQueue)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _threads: int = 0
    _idle: int = 0
    _closed: bool = False

    def submit(self, task: Task) -> None:
        """Runs ``task`` as soon as a thread is free."""
        with self._lock:
            if self._closed:
                return
            self._tasks.put(task)
            if self._idle >= self._tasks.qsize() or self._threads >= self.most:
                return
            self._threads += 1
        threading.Thread(target=self._work, name="tidemill-gateway-worker", daemon=True).start()

    def close(self) -> None:
        """Takes no more tasks; threads end with what they run."""
        with self._lock:
            self._closed = True
            for _ in range(self._threads):
                self._tasks.put(None)

    def _work(self) -> None:
        while True:
            task = self._next()
            if task is None:
                return
            try:
                task()
            except Exception:
                _LOGGER.exception("a task of the gateway failed")

    def _next(self) -> Task | None:
        with self._lock:
            self._idle += 1
        while True:
            try:
                task = self._tasks.get(timeout=self.keepalive)
            except queue.Empty:
                with self._lock:
                    if self._threads > self.least and self._tasks.empty():
                        self._threads -= 1
                        self._idle -= 1
                        return None
                continue
            with self._lock:
                self._idle -= 1
                if task is None:
                    self._threads -= 1
            return task


@dataclass(slots=True)
class Lane:
    """Tasks that run one after the other, in the order in which they came."""

    workers: Workers
    _waiting: deque[Task] = field(default_factory=deque)
    _running: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def submit(self, task: Task) -> None:
        with self._lock:
            self._waiting.append(task)
            if self._running:
                return
            self._running = True
        self.workers.submit(self._run)

    def _run(self) -> None:
        """One task a turn: a session with many does not hold a thread while others wait."""
        with self._lock:
            task = self._waiting.popleft()
        try:
            task()
        finally:
            with self._lock:
                self._running = bool(self._waiting)
                again = self._running
            if again:
                self.workers.submit(self._run)
