"""The order in which statements run: those of one session in order, those of several sessions in parallel."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

Task = Callable[[], None]
POOL_THREAD = "tidemill-gateway-worker"
"""How the names of threads begin that run statements and requests."""
_MOMENT = 0.01
_BRIEF_BEFORE_OTHERS = 8
"""The most brief tasks in a row that overtake another task."""
_LOGGER = logging.getLogger("tidemill.gateway")


@dataclass(slots=True, kw_only=True)
class Workers:
    """Hands tasks to a pool of threads, which runs at most ``most`` tasks at a time.

    Tasks begin one by one. The next task begins when the last one has ended, or has run for ``_MOMENT``
    seconds. Short tasks thus run one after the other; in many threads they would compete
    for the interpreter and all end late. A task that waits for Spark delays nobody. A brief task overtakes
    others, and may begin beside another task: a list of tables does not wait for the planning of a dozen
    queries. After ``_BRIEF_BEFORE_OTHERS`` brief tasks another task has its turn.
    """

    most: int
    _pool: ThreadPoolExecutor = field(init=False)
    _tasks: deque[Task] = field(default_factory=deque)
    _brief: deque[Task] = field(default_factory=deque)
    _overtaken: int = 0
    """The number of brief tasks that have overtaken the first other task."""
    _begun: dict[object, float] = field(default_factory=dict)
    """Start times of the running tasks."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _watched: bool = False
    """Whether a thread sleeps for ``_MOMENT``, because tasks wait for tasks that have just begun."""
    _closed: bool = False

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(self.most + 1, POOL_THREAD)  # one more, to watch

    def submit(self, task: Task, *, brief: bool = False) -> None:
        """Runs ``task`` as soon as it is its turn. ``brief``: it should take less than ``_MOMENT``."""
        with self._lock:
            (self._brief if brief else self._tasks).append(task)
            self._begin()

    def close(self) -> None:
        """Drops waiting tasks, and refuses new tasks. Running tasks end."""
        with self._lock:
            self._closed = True
            self._pool.shutdown(wait=False)

    def _begin(self) -> None:
        """Begins the tasks that may begin now. Needs the lock."""
        while (task := self._due()) is not None:
            key = object()
            self._begun[key] = time.monotonic()
            self._pool.submit(self._run, task, key)
        if self._waits and not self._watched and not self._closed and len(self._begun) < self.most:
            self._watched = True
            self._pool.submit(self._watch)

    def _run(self, task: Task | None, key: object) -> None:
        """Runs ``task``, then in the same thread the tasks that are due."""
        while task is not None:
            try:
                task()
            except Exception:
                _LOGGER.exception("a task of the gateway failed")
            with self._lock:
                del self._begun[key]
                task = self._due()
                if task is not None:
                    self._begun[key] = time.monotonic()
                self._begin()

    def _watch(self) -> None:
        time.sleep(_MOMENT)
        with self._lock:
            self._watched = False
            self._begin()

    def _due(self) -> Task | None:
        """Removes the task that may begin now; None if none may."""
        if self._closed or not self._waits or len(self._begun) >= self.most:
            return None
        now = time.monotonic()
        young = sum(now - begun < _MOMENT for begun in self._begun.values())
        others = bool(self._tasks) and not young
        brief = bool(self._brief) and young < 2
        if brief and not (others and self._overtaken >= _BRIEF_BEFORE_OTHERS):
            self._overtaken += bool(self._tasks)
            return self._brief.popleft()
        if others:
            self._overtaken = 0
            return self._tasks.popleft()
        return None

    @property
    def _waits(self) -> bool:
        return bool(self._tasks or self._brief)


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
