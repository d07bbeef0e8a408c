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
_BRIEF_BEFORE_OTHERS = 8
"""So many brief tasks in a row go before one that waits longer."""
_LOGGER = logging.getLogger("tidemill.gateway")


@dataclass(slots=True, kw_only=True)
class Workers:
    """At most ``most`` threads; those beyond ``least`` end after ``keepalive`` idle seconds.

    No more than ``abreast`` tasks begin side by side: the next one begins when one of them has ended, or has
    taken a moment. Short tasks run one after the other in the same threads, where many threads would take
    the interpreter from each other and all end late; one that waits for Spark holds up nobody. A brief task
    goes before others, and beside one more of them: who asks for a list of tables does not wait until a dozen
    queries are planned. Others have their turn among the brief ones, too.
    """

    least: int
    most: int
    keepalive: float
    abreast: int = 1
    _tasks: deque[Task] = field(default_factory=deque)
    _brief: deque[Task] = field(default_factory=deque)
    _overtaken: int = 0
    """How many brief tasks have gone before the first of the others."""
    _begun: dict[int, float] = field(default_factory=dict)
    """When the tasks that run have begun, by thread."""
    _asleep: list[threading.Event] = field(default_factory=list)
    """What wakes the idle threads; who went to sleep last is called first."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _threads: int = 0
    _watched: bool = False
    """A thread sleeps no longer than a moment, as tasks wait."""
    _closed: bool = False

    def submit(self, task: Task, *, brief: bool = False) -> None:
        """Runs ``task`` as soon as a thread is free; ``brief``: it is not expected to take a moment."""
        with self._lock:
            if self._closed:
                return
            (self._brief if brief else self._tasks).append(task)
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
                task = self._due()
                if task is not None:
                    self._begun[me] = time.monotonic()
                    one_more = self._call()
                    break
                if self._closed and not self._waits:
                    self._threads -= 1
                    return None
                watches = self._waits and not self._watched
                self._watched |= watches
                bell = threading.Event()
                self._asleep.append(bell)
            bell.wait(_MOMENT if watches else self.keepalive)
            with self._lock:
                self._watched &= not watches
                if bell in self._asleep:  # nobody has called
                    self._asleep.remove(bell)
                    if not watches and not self._waits and self._threads > self.least:
                        self._threads -= 1
                        return None
        if one_more:
            self._start()
        return task

    def _due(self) -> Task | None:
        """What begins now."""
        others, brief = self._may_begin(bool(self._tasks), 0), self._may_begin(bool(self._brief), 1)
        if brief and not (others and self._overtaken >= _BRIEF_BEFORE_OTHERS):
            self._overtaken += bool(self._tasks)
            return self._brief.popleft()
        if others:
            self._overtaken = 0
            return self._tasks.popleft()
        return None

    def _may_begin(self, waits: bool, more: int) -> bool:
        """Beside as many as may begin side by side, and so many ``more``."""
        if not waits:
            return False
        now = time.monotonic()
        begun = sum(now - begun < _MOMENT for begun in list(self._begun.values()))
        return begun < self.abreast + more

    @property
    def _waits(self) -> bool:
        return bool(self._tasks or self._brief)

    def _call(self) -> bool:
        """Wakes a thread for what waits, where that must not be left to those at work; whether a new one is
        wanted."""
        if not self._waits:
            return False
        may = self._may_begin(bool(self._tasks), 0) or self._may_begin(bool(self._brief), 1)
        if self._watched and not may:
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
    _waiting: deque[tuple[Task, bool]] = field(default_factory=deque)
    _running: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def submit(self, task: Task, *, brief: bool = False) -> None:
        with self._lock:
            self._waiting.append((task, brief))
            if self._running:
                return
            self._running = True
        self.workers.submit(self._run, brief=brief)

    def _run(self) -> None:
        """One task a turn: a session with many does not hold a thread while others wait."""
        with self._lock:
            task, _ = self._waiting.popleft()
        try:
            task()
        finally:
            with self._lock:
                self._running = bool(self._waiting)
                following = self._waiting[0] if self._waiting else None
            if following is not None:
                self.workers.submit(self._run, brief=following[1])
