"""Passes: bearer tokens that a browser stores for some hours instead of a password, and revokes at logout.

The process creates them and keeps only their hashes, in memory: a restart invalidates all passes. Cost: a
lookup in a table per request.
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
"""The most passes; beyond it the oldest pass is revoked."""


@dataclass(slots=True)
class Passes:
    """``clock``: a monotonic clock in seconds. ``_held``: user and end of validity, by the pass's hash."""

    clock: Callable[[], float] = time.monotonic
    _held: dict[str, tuple[str, float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def issue(self, user: str) -> str:
        """Creates a pass for an authenticated user."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            while len(self._held) >= MOST:
                self._held.pop(next(iter(self._held)))
            self._held[_hash(token)] = (user, self.clock() + HOURS * 3600)
        return token

    def user(self, token: str) -> str | None:
        """The user of a pass; None if it is unknown or has expired."""
        with self._lock:
            user, ends = self._held.get(_hash(token), ("", 0.0))
            return user if self.clock() < ends else None

    def revoke(self, token: str) -> None:
        with self._lock:
            self._held.pop(_hash(token), None)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
