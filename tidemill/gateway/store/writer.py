"""Who writes to the store: one thread at a time, which takes all that waits into one transaction.

SQLite has one writer at a time, and a transaction costs more than what it writes: under load each carries the
writes of many. Who must not go on before a write is there does it himself; for who cannot wait a thread does.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from tidemill.errors import StateError

Write = Callable[[sa.Connection], None]
Transaction = Callable[[], AbstractContextManager[sa.Connection]]
_MOST = 256
_MOMENT = 0.05
_KEPT_SECONDS = 1.0


@dataclass(slots=True)
class Connection:
    """Transactions one after the other, of which those within a second have one connection: to get one from
    the pool, and to give it back, takes more than to write a row. One that has lain longer is looked at
    again, by the pool, and so it is after a failure."""

    engine: sa.Engine
    _open: sa.Connection | None = None
    _until: float = 0.0

    @contextmanager
    def transaction(self) -> Iterator[sa.Connection]:
        now = time.monotonic()
        if self._open is None or now > self._until:
            self.close()
            self._open, self._until = self.engine.connect(), now + _KEPT_SECONDS
        try:
            with self._open.begin():
                yield self._open
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            opened.close()


@dataclass(frozen=True, slots=True)
class Rows:
    """A statement for each of some rows: those of one statement that wait together are executed as one."""

    statement: sa.Executable
    rows: tuple[dict[str, Any], ...]

    def __call__(self, connection: sa.Connection) -> None:
        connection.execute(self.statement, list(self.rows))


@dataclass(slots=True)
class Writer:
    """Any thread may write. Writes are done in the order in which they came, but for ``Rows``: all of a
    transaction's go before its others, those of the first statement in ``order`` first. Who is told of a
    write is told in that order, too, and must not write then."""

    transaction: Transaction
    order: tuple[sa.Executable, ...] = ()
    _waiting: deque[tuple[Write, Future[None]]] = field(default_factory=deque)
    _turn: threading.Lock = field(default_factory=threading.Lock)
    """Of who writes, and tells."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _bell: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread = field(init=False)
    _asleep: bool = False
    _closed: bool = False

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._work, name="tidemill-gateway-store", daemon=True)
        self._thread.start()

    def write(self, write: Write) -> None:
        """Returns when it is in the database, with what waited before; StateError where it cannot be."""
        made = self._added(write)
        with self._turn:
            while not made.done():
                self._write_some()
        made.result()

    def put(self, write: Write, *, later: bool = False) -> Future[None]:
        """Returns at once: done when it is in the database. ``later``: nobody waits for it, and it goes with
        the next, or after a moment."""
        made = self._added(write)
        if not later or self._asleep:
            self._bell.set()
        return made

    def close(self) -> None:
        """After what waits."""
        with self._lock:
            self._closed = True
        self._bell.set()
        self._thread.join()

    def _added(self, write: Write) -> Future[None]:
        made: Future[None] = Future()
        with self._lock:
            if not self._closed:
                self._waiting.append((write, made))
                return made
        made.set_exception(StateError("The gateway is shutting down: its store takes no more writes."))
        return made

    def _work(self) -> None:
        ends = False
        while not ends:
            self._asleep = True
            if self._waiting:
                self._asleep = False
            self._bell.wait(None if self._asleep else _MOMENT)
            self._asleep = False
            self._bell.clear()
            ends = self._closed
            with self._turn:
                while self._waiting:
                    self._write_some()

    def _write_some(self) -> None:
        self._write([self._waiting.popleft() for _ in range(min(len(self._waiting), _MOST))])

    def _write(self, batch: Sequence[tuple[Write, Future[None]]]) -> None:
        """What fails together is tried alone: one bad write spoils no other."""
        try:
            with self.transaction() as connection:
                for write in self._together([write for write, _ in batch]):
                    write(connection)
        except Exception as e:
            if len(batch) == 1:
                batch[0][1].set_exception(e)
            else:
                for one in batch:
                    self._write([one])
        else:
            for _, made in batch:
                made.set_result(None)

    def _together(self, writes: Sequence[Write]) -> Iterator[Write]:
        for statement in self.order:
            rows = [w.rows for w in writes if isinstance(w, Rows) and w.statement is statement]
            if rows:
                yield Rows(statement, tuple(row for some in rows for row in some))
        yield from (w for w in writes if not isinstance(w, Rows))
