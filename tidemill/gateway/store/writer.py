"""Writes to the store in batches: one thread at a time writes all waiting rows in one transaction.

SQLite has one writer at a time, and a transaction costs more than its rows, so under load a transaction has
the writes of many callers. A caller that must wait for its write writes the batch itself; for other callers a
background thread writes.
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
    """Runs transactions one after the other. Transactions within a second share a connection, because to take
    one from the pool and return it costs more than to write a row. After a second or a failure the connection
    goes back to the pool, which checks it."""

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
    """One statement for several rows. Waiting rows of the same statement are executed together."""

    statement: sa.Executable
    rows: tuple[dict[str, Any], ...]

    def __call__(self, connection: sa.Connection) -> None:
        connection.execute(self.statement, list(self.rows))


@dataclass(slots=True)
class Writer:
    """Any thread may write. Writes run in the order of their calls, except ``Rows``: in a transaction all
    ``Rows`` come first, in the ``order`` of their statements. Callbacks of the futures run in the same order,
    and must not write."""

    transaction: Transaction
    order: tuple[sa.Executable, ...] = ()
    _waiting: deque[tuple[Write, Future[None]]] = field(default_factory=deque)
    _turn: threading.Lock = field(default_factory=threading.Lock)
    """Held by the thread that writes and completes futures."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _bell: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread = field(init=False)
    _asleep: bool = False
    _closed: bool = False

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._work, name="tidemill-gateway-store", daemon=True)
        self._thread.start()

    def write(self, write: Write) -> None:
        """Writes, together with all waiting writes, and returns once committed. StateError if this fails."""
        done = self._added(write)
        with self._turn:
            while not done.done():
                self._write_some()
        done.result()

    def put(self, write: Write, *, later: bool = False) -> Future[None]:
        """Returns at once; the future is done once the write is committed. ``later``: the write may wait for
        the next one, or for ``_MOMENT`` seconds."""
        done = self._added(write)
        if not later or self._asleep:
            self._bell.set()
        return done

    def close(self) -> None:
        """Writes all waiting writes, then stops the thread."""
        with self._lock:
            self._closed = True
        self._bell.set()
        self._thread.join()

    def _added(self, write: Write) -> Future[None]:
        done: Future[None] = Future()
        with self._lock:
            if not self._closed:
                self._waiting.append((write, done))
                return done
        done.set_exception(StateError("The gateway is shutting down: its store takes no more writes."))
        return done

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
        """Writes a batch in one transaction. If it fails, each write gets a transaction of its own."""
        try:
            with self.transaction() as connection:
                for write in self._together([write for write, _ in batch]):
                    write(connection)
        except Exception as e:
            if len(batch) == 1:
                batch[0][1].set_exception(e)
            else:
                for single in batch:
                    self._write([single])
        else:
            for _, done in batch:
                done.set_result(None)

    def _together(self, writes: Sequence[Write]) -> Iterator[Write]:
        for statement in self.order:
            rows = [w.rows for w in writes if isinstance(w, Rows) and w.statement is statement]
            if rows:
                yield Rows(statement, tuple(row for some in rows for row in some))
        yield from (w for w in writes if not isinstance(w, Rows))
