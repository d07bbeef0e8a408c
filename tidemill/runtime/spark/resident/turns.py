"""A lock that threads get in the order in which they ask for it.

Python's locks know no order: of ten jobs with epochs of some milliseconds some would wait ten times as long.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_LOOK_SECONDS = 0.02


@dataclass(slots=True)
class Turns:
    _is_taken: bool = False
    _queue: deque[object] = field(default_factory=deque)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    @property
    def waiting(self) -> int:
        """How many threads wait."""
        return len(self._queue)

    def take(self, ends: Callable[[], bool]) -> bool:
        """Waits for the turn; False if the asking job ``ends`` before it."""
        ticket = object()
        with self._changed:
            self._queue.append(ticket)
            while self._is_taken or self._queue[0] is not ticket:
                self._changed.wait(_LOOK_SECONDS)
                if ends():
                    self._queue.remove(ticket)
                    self._changed.notify_all()
                    return False
            self._queue.popleft()
            self._is_taken = True
        return True

    def take_now(self) -> bool:
        """Whether nobody has it, and nobody waits."""
        with self._changed:
            if self._is_taken or self._queue:
                return False
            self._is_taken = True
        return True

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Waits for the turn, however long that takes."""
        self.take(lambda: False)
        try:
            yield
        finally:
            self.give_back()

    def give_back(self) -> None:
        with self._changed:
            self._is_taken = False
            self._changed.notify_all()
