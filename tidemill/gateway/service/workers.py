"""Threads that run statements: those of one session in order, those of several sessions in parallel."""

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
"""The most brief tasks in a row that overtake another task."""
_LOGGER = logging.getLogger("tidemill.gateway")


@dataclass(slots=True, kw_only=True)
class Workers:
    """A pool of at most ``most`` threads; threads beyond ``least`` end after ``keepalive`` idle seconds.

    At most ``abreast`` tasks begin at the same time. The next task begins when one of them has ended, or has
    run for ``_MOMENT`` seconds. Short tasks thus run one after the other; in many threads they would compete
    for the interpreter and all end late. A task that waits for Spark delays nobody. A brief task overtakes
    others, and may begin beside one more task: a list of tables does not wait for the planning of a dozen
    queries. After ``_BRIEF_BEFORE_OTHERS`` brief tasks another task has its turn.
    """

    least: int
    most: int
    keepalive: float
    abreast: int = 1
    _tasks: deque[Task] = field(default_factory=deque)
    _brief: deque[Task] = field(default_factory=deque)
    _overtaken: int = 0
    """The number of brief tasks that have overtaken the first other task."""
    _begun: dict[int, float] = field(default_factory=dict)
    """Start times of the running tasks, by thread."""
    _asleep: list[threading.Event] = field(default_factory=list)
    """The events that wake the idle threads; the last to sleep is woken first."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _threads: int = 0
    _watched: bool = False
    """Whether a thread sleeps only for ``_MOMENT``, because tasks wait."""
    _closed: bool = False

    def submit(self, task: Task, *, brief: bool = False) -> None:
        """Runs ``task`` as soon as a thread is free. ``brief``: it should take less than ``_MOMENT``."""
        with self._lock:
            if self._closed:
                return
            (self._brief if brief else self._tasks).append(task)
            one_more = self._call()
        if one_more:
            self._start()

    def close(self) -> None:
        """Refuses new tasks; threads end after the running and waiting tasks."""
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
        """Removes the task that may begin now; None if none may."""
        others, brief = self._may_begin(bool(self._tasks), 0), self._may_begin(bool(self._brief), 1)
        if brief and not (others and self._overtaken >= _BRIEF_BEFORE_OTHERS):
            self._overtaken += bool(self._tasks)
            return self._brief.popleft()
        if others:
            self._overtaken = 0
            return self._tasks.popleft()
        return None

    def _may_begin(self, waits: bool, more: int) -> bool:
        """Whether a waiting task may begin, if ``more`` tasks than ``abreast`` may."""
        if not waits:
            return False
        now = time.monotonic()
        begun = sum(now - begun < _MOMENT for begun in list(self._begun.values()))
        return begun < self.abreast + more

    @property
    def _waits(self) -> bool:
        return bool(self._tasks or self._brief)

    def _call(self) -> bool:
        """Wakes a thread if a waiting task needs one now. Returns whether a new thread must be started."""
        if not self._waits:
            return False
        may = self._may_begin(bool(self._tasks), 0) or self._may_begin(bool(self._brief), 1)
        if self._watched and not may:
            return False
        if self._asleep:
            self._asleep.pop().set()
            return False
        may_grow = self._threads < self.most
        self._threads += may_grow
        return may_grow


@dataclass(slots=True)
class Lane:
    """Runs its tasks one after the other, in the order of submission."""

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
        """Runs one task per turn, so that a session with many tasks does not occupy a thread."""
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
