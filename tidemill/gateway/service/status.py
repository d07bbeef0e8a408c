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
    step, in order, before anybody sees it; while it does, who asks for the status is not kept waiting."""

    def __init__(self, handle: str, changed: Callable[[S], None] = lambda _: None) -> None:
        self._handle = handle
        self._changed = changed
        self._value = S.INITIALIZED
        self._moving = False
        self._listeners: list[Callable[[], None]] = []
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
        """``ended`` is called once, by any thread, unless it has ended by now: whether it will be."""
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
        """Whether it has ended within ``timeout`` seconds."""
        with self._lock:
            return self._lock.wait_for(lambda: self._value.is_terminal, timeout)
