"""Passes: what a browser keeps in place of a password, for some hours, and gives back when its user leaves.

They are bearer tokens that the process makes and remembers by their hashes; a restart forgets them all.
Cost: a look into a table for each request.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

HOURS = 12.0
MOST = 10_000
"""The oldest goes when there are more."""


@dataclass(slots=True)
class Passes:
    """``clock`` gives seconds that only grow."""

    clock: Callable[[], float] = time.monotonic
    _held: dict[str, tuple[str, float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def issue(self, user: str) -> str:
        """A new pass of a user who has said who he is."""
        made = secrets.token_urlsafe(32)
        with self._lock:
            while len(self._held) >= MOST:
                self._held.pop(next(iter(self._held)))
            self._held[_hash(made)] = (user, self.clock() + HOURS * 3600)
        return made

    def user(self, said: str) -> str | None:
        """Whose pass it is; None where it is none, or no more."""
        with self._lock:
            user, ends = self._held.get(_hash(said), ("", 0.0))
            return user if self.clock() < ends else None

    def revoke(self, said: str) -> None:
        with self._lock:
            self._held.pop(_hash(said), None)


def _hash(said: str) -> str:
    return hashlib.sha256(said.encode()).hexdigest()
