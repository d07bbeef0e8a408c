"""A lock that threads get in the order in which they ask for it, a few at a time or one alone.

Python's locks know no order: of ten jobs with epochs of some milliseconds some would wait ten times as long.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_LOOK_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class _Ticket:
    alone: bool
    admitted: threading.Event = field(default_factory=threading.Event)


@dataclass(slots=True)
class Turns:
    """``most``: how many threads have the turn at a time, unless one has it ``alone``."""

    most: int = 1
    _holders: int = 0
    _alone: bool = False
    _queue: deque[_Ticket] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def waiting(self) -> int:
        """How many threads wait."""
        return len(self._queue)

    def take(self, ends: Callable[[], bool], *, alone: bool = False, first: bool = False) -> bool:
        """Waits for the turn; False if the asking job ``ends`` before it. ``first``: before all others that
        wait."""
        ticket = _Ticket(alone)
        with self._lock:
            (self._queue.appendleft if first else self._queue.append)(ticket)
            self._admit()
        while not ticket.admitted.wait(_LOOK_SECONDS):
            if ends() and self._left(ticket):
                return False
        return True

    def take_now(self, *, alone: bool = False) -> bool:
        """Takes the turn if it is there and nobody waits for it."""
        with self._lock:
            ticket = _Ticket(alone)
            if self._queue or not self._fits(ticket):
                return False
            self._enter(ticket)
        return True

    @contextmanager
    def taken(self, *, first: bool = False) -> Iterator[None]:
        """Waits for the turn alone, however long that takes."""
        self.take(lambda: False, alone=True, first=first)
        try:
            yield
        finally:
            self.give_back()

    def give_back(self) -> None:
        with self._lock:
            self._holders -= 1
            self._alone = False
            self._admit()

    def _left(self, ticket: _Ticket) -> bool:
        """Whether the thread was not admitted before it went."""
        with self._lock:
            if ticket.admitted.is_set():
                return False
            self._queue.remove(ticket)
            self._admit()
            return True

    def _admit(self) -> None:
        while self._queue and self._fits(self._queue[0]):
            ticket = self._queue.popleft()
            self._enter(ticket)
            ticket.admitted.set()

    def _fits(self, ticket: _Ticket) -> bool:
        return self._holders == 0 if ticket.alone else not self._alone and self._holders < self.most

    def _enter(self, ticket: _Ticket) -> None:
        self._holders += 1
        self._alone = ticket.alone
