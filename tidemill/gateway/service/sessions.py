"""The open sessions, by handle. Their number is limited, and idle sessions are closed."""

from __future__ import annotations

import datetime as dt
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from tidemill.gateway.api import LimitError, SessionInfo, UnknownOperationError, UnknownSessionError
from tidemill.gateway.service.catalog import SessionCatalog
from tidemill.gateway.service.operation import Control, Operation, Outcome
from tidemill.gateway.service.workers import Lane, Workers


class Statements(Protocol):
    """Runs the statements of one session. Only one thread at a time calls ``run`` and ``configure``."""

    def run(self, text: str, options: Mapping[str, str], control: Control) -> Outcome:
        """Runs a statement, with ``options`` overriding those of the session. Raises TidemillError."""
        ...

    def configure(self, text: str, control: Control) -> Outcome:
        """Runs a statement that changes the session and returns no rows; refuses others."""
        ...

    def options(self) -> Mapping[str, str]:
        """The session's options, with masked secrets."""
        ...

    def snapshot(self) -> dict[str, Any]:
        """The JSON document from which the session can be restored."""
        ...

    def changed(self) -> bool:
        """Whether a statement since the last call may have changed the snapshot."""
        ...

    def catalog(self) -> SessionCatalog:
        """The catalogs, tables and functions that the session can name."""
        ...

    def complete(self, text: str, position: int) -> list[str]:
        """Completions for ``position``."""
        ...


@dataclass(slots=True, kw_only=True)
class Session:
    """``clock``: a monotonic clock in seconds."""

    handle: str
    name: str
    user: str
    statements: Statements
    workers: Workers
    clock: Callable[[], float]
    opened: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC))
    operations: dict[str, Operation] = field(default_factory=dict)
    lane: Lane = field(init=False)
    used: float = field(init=False)

    def __post_init__(self) -> None:
        self.lane = Lane(self.workers)
        self.used = self.clock()

    def operation(self, handle: str) -> Operation:
        operation = self.operations.get(handle)
        if operation is None:
            raise UnknownOperationError(handle)
        return operation

    def submit(self, operation: Operation, timeout: float) -> None:
        """Nobody else knows of the operation before: it is not ended by others until it waits."""
        operation.submit(timeout)
        self.operations[operation.handle] = operation
        self.lane.submit(operation.run, brief=operation.brief)

    def info(self) -> SessionInfo:
        idle = dt.timedelta(seconds=self.clock() - self.used)
        return SessionInfo(
            handle=self.handle,
            name=self.name,
            user=self.user,
            opened=self.opened,
            last_used=dt.datetime.now(dt.UTC) - idle,
            operations=tuple(o.info() for o in list(self.operations.values())),
        )

    @property
    def is_busy(self) -> bool:
        """Whether a statement waits or runs."""
        return any(not o.status.value.is_terminal for o in list(self.operations.values()))

    def stop(self) -> None:
        """Stops its statements and queries; they are not closed."""
        for operation in list(self.operations.values()):
            operation.control.stop()

    def close(self) -> None:
        for operation in list(self.operations.values()):
            operation.close()
        self.operations.clear()


@dataclass(slots=True, kw_only=True)
class Sessions:
    """``idle`` and ``interval`` are in seconds; 0 disables the closing of idle sessions. A user cannot reach
    another user's sessions: for him they do not exist."""

    most: int
    idle: float
    interval: float
    clock: Callable[[], float] = time.monotonic
    closed: Callable[[str], None] = lambda _: None
    _open: dict[str, Session] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ending: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Starts the thread that closes idle sessions."""
        if self.idle > 0 and self.interval > 0:
            threading.Thread(target=self._watch, name="tidemill-gateway-idle", daemon=True).start()

    def open(
        self,
        name: str,
        user: str,
        statements: Statements,
        workers: Workers,
        opened: Callable[[Session], None] = lambda _: None,
    ) -> Session:
        """Opens a session. LimitError if there are ``most`` sessions. ``opened`` is called before the session
        is returned; its error closes the session."""
        session = Session(
            handle=str(uuid.uuid4()),
            name=name,
            user=user,
            statements=statements,
            workers=workers,
            clock=self.clock,
        )
        with self._lock:
            if len(self._open) >= self.most:
                raise LimitError(
                    "Failed to create session, the count of active sessions exceeds the max count: "
                    f"{self.most}",
                    hint="Close a session, or raise 'sql-gateway.session.max-num'.",
                )
            self._open[session.handle] = session
        try:
            opened(session)
        except BaseException:
            self._close(session.handle)
            raise
        return session

    def put_back(self, session: Session) -> None:
        """Adds a session of an earlier process."""
        self._open[session.handle] = session

    def get(self, handle: str, user: str) -> Session:
        """The user's session with a handle, whose idle time restarts. UnknownSessionError if there is
        none."""
        session = self._open.get(handle.lower())
        if session is None or session.user != user:
            raise UnknownSessionError(handle)
        session.used = self.clock()
        return session

    def close(self, handle: str, user: str) -> None:
        self.get(handle, user)
        self._close(handle.lower())

    def of(self, user: str | None) -> list[Session]:
        """A user's sessions; None: all sessions."""
        return [s for s in list(self._open.values()) if user is None or s.user == user]

    def close_idle(self) -> None:
        """Closes the sessions that were unused for ``idle`` seconds and run no statement."""
        now = self.clock()
        for session in list(self._open.values()):
            if now - session.used > self.idle and not session.is_busy:
                self._close(session.handle)

    def end(self) -> None:
        """Stops the thread that closes idle sessions."""
        self._ending.set()

    def _close(self, handle: str) -> None:
        with self._lock:
            session = self._open.pop(handle, None)
        if session is not None:
            session.close()
            self.closed(handle)

    def _watch(self) -> None:
        while not self._ending.wait(self.interval):
            self.close_idle()
