"""Which status may follow which: one table."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tidemill.gateway.api import OperationStatus as S
from tidemill.gateway.api import StatusError

_ENDS = frozenset({S.CANCELED, S.CLOSED, S.TIMEDOUT, S.ERROR})
NEXT: dict[S, frozenset[S]] = {
    S.INITIALIZED: frozenset({S.PENDING}) | _ENDS,
    S.PENDING: frozenset({S.RUNNING}) | _ENDS,
    S.RUNNING: frozenset({S.FINISHED}) | _ENDS,
    S.FINISHED: frozenset({S.CLOSED}),
    S.CANCELED: frozenset({S.CLOSED}),
    S.TIMEDOUT: frozenset({S.CLOSED}),
    S.ERROR: frozenset({S.CLOSED}),
    S.CLOSED: frozenset(),
}


class Status:
    """The status of one operation. Of two threads that want to end it one succeeds. ``changed`` hears of each
    step, in order, before anybody sees it."""

    def __init__(self, handle: str, changed: Callable[[S], None] = lambda _: None) -> None:
        self._handle = handle
        self._changed = changed
        self._value = S.INITIALIZED
        self._lock = threading.Condition()

    @classmethod
    def ended(cls, handle: str, value: S, changed: Callable[[S], None]) -> Status:
        """As an operation of an earlier process left it."""
        made = cls(handle, changed)
        made._value = value
        return made

    @property
    def value(self) -> S:
        return self._value

    def move(self, to: S) -> None:
        """StatusError where ``to`` cannot follow."""
        if not self.try_move(to):
            raise StatusError(
                f"Failed to convert the Operation Status from {self._value.value} to {to.value} "
                f"for {self._handle}."
            )

    def try_move(self, to: S) -> bool:
        """Whether ``to`` could follow."""
        with self._lock:
            if to not in NEXT[self._value]:
                return False
            self._changed(to)
            self._value = to
            self._lock.notify_all()
            return True

    def wait_ended(self, timeout: float | None) -> bool:
        """Whether it has ended within ``timeout`` seconds."""
        with self._lock:
            return self._lock.wait_for(lambda: self._value.is_terminal, timeout)
