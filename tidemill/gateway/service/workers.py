"""Threads that run statements: of one session in order, of several sessions side by side."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

Task = Callable[[], None]
_MOMENT = 0.01
_LOGGER = logging.getLogger("tidemill.gateway")


@dataclass(slots=True, kw_only=True)
class Workers:
    """At most ``most`` threads; those beyond ``least`` end after ``keepalive`` idle seconds.

    No more than ``abreast`` tasks begin side by side: the next one begins when one of them has ended, or has
    taken a moment. Short tasks run one after the other in the same threads, where many threads would take
    the interpreter from each other and all end late; one that waits for Spark holds up nobody.
    """

    least: int
    most: int
    keepalive: float
    abreast: int = 2
    _tasks: deque[Task] = field(default_factory=deque)
    _begun: dict[int, float] = field(default_factory=dict)
    """When the tasks that run have begun, by thread."""
    _asleep: list[threading.Event] = field(default_factory=list)
    """What wakes the idle threads; who went to sleep last is called first."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _threads: int = 0
    _watched: bool = False
    """A thread sleeps no longer than a moment, as tasks wait."""
    _closed: bool = False

    def submit(self, task: Task) -> None:
        """Runs ``task`` as soon as a thread is free."""
        with self._lock:
            if self._closed:
                return
            self._tasks.append(task)
            one_more = self._call()
        if one_more:
            self._start()

    def close(self) -> None:
        """Takes no more tasks; threads end with what they run and what waits."""
        with self._lock:
            self._closed = True
            while self._asleep:
                self._asleep.pop().set()

    def _start(self) -> None:
        threading.Thread(target=self._work, name="tidemill-gateway-worker", daemon=True).start()

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
        me = threading.get_ident()
        self._begun.pop(me, None)
        while True:
            with self._lock:
                if self._tasks and self._may_begin():
                    task = self._tasks.popleft()
                    self._begun[me] = time.monotonic()
                    one_more = self._call()
                    break
                if self._closed and not self._tasks:
                    self._threads -= 1
                    return None
                watches = bool(self._tasks) and not self._watched
                self._watched |= watches
                bell = threading.Event()
                self._asleep.append(bell)
            bell.wait(_MOMENT if watches else self.keepalive)
            with self._lock:
                self._watched &= not watches
                if bell in self._asleep:  # nobody has called
                    self._asleep.remove(bell)
                    if not watches and not self._tasks and self._threads > self.least:
                        self._threads -= 1
                        return None
        if one_more:
            self._start()
        return task

    def _may_begin(self) -> bool:
        now = time.monotonic()
        return sum(now - begun < _MOMENT for begun in list(self._begun.values())) < self.abreast

    def _call(self) -> bool:
        """Wakes a thread for what waits, where that must not be left to those at work; whether a new one is
        wanted."""
        if not self._tasks or (self._watched and not self._may_begin()):
            return False
        if self._asleep:
            self._asleep.pop().set()
            return False
        wanted = self._threads < self.most
        self._threads += wanted
        return wanted


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
