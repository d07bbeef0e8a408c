"""The status of an operation, and the table of allowed transitions."""

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
    """The status of one operation. If two threads try to end the operation, one succeeds. ``changed`` is
    called for each transition, in order, before the new status is visible; meanwhile ``value`` returns the
    old one."""

    def __init__(self, handle: str, changed: Callable[[S], None] = lambda _: None) -> None:
        self._handle = handle
        self._changed = changed
        self._value = S.INITIALIZED
        self._moving = False
        self._listeners: list[Callable[[], None]] = []
        self._lock = threading.Condition()

    @classmethod
    def ended(cls, handle: str, value: S, changed: Callable[[S], None]) -> Status:
        """The status of an operation that ended in an earlier process."""
        status = cls(handle, changed)
        status._value = value
        return status

    @property
    def value(self) -> S:
        return self._value

    def move(self, to: S) -> None:
        """Changes to ``to``. StatusError if the transition is not allowed."""
        if not self.try_move(to):
            raise StatusError(
                f"Failed to convert the Operation Status from {self._value.value} to {to.value} "
                f"for {self._handle}."
            )

    def try_move(self, to: S) -> bool:
        """Changes to ``to``; returns False if the transition is not allowed."""
        with self._lock:
            self._lock.wait_for(lambda: not self._moving)
            if to not in NEXT[self._value]:
                return False
            self._moving = True
        try:
            self._changed(to)
        except BaseException:
            self._settle(self._value)
            raise
        self._settle(to)
        return True

    def _settle(self, value: S) -> None:
        with self._lock:
            self._value, self._moving = value, False
            listeners = self._listeners if value.is_terminal else []
            if listeners:
                self._listeners = []
            self._lock.notify_all()
        for listener in listeners:
            listener()

    def listen(self, ended: Callable[[], None]) -> bool:
        """Registers ``ended``, which some thread will call once. Returns False if the operation has ended."""
        with self._lock:
            if not self._value.is_terminal:
                self._listeners.append(ended)
                return True
        return False

    def listen_no_more(self, ended: Callable[[], None]) -> None:
        with self._lock:
            if ended in self._listeners:
                self._listeners.remove(ended)

    def wait_ended(self, timeout: float | None) -> bool:
        """Waits up to ``timeout`` seconds; returns whether the operation has ended."""
        with self._lock:
            return self._lock.wait_for(lambda: self._value.is_terminal, timeout)
