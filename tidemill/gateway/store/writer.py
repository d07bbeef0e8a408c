"""Who writes to the store: one thread, which takes all that waits into one transaction.

SQLite has one writer at a time, and a transaction costs more than what it writes: under load each carries the
writes of many. Who must not go on before a write is there waits for its future.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from tidemill.errors import StateError

Write = Callable[[sa.Connection], None]
Transaction = Callable[[], AbstractContextManager[sa.Connection]]
_MOST = 256


@dataclass(frozen=True, slots=True)
class Rows:
    """A statement for each of some rows: those of one statement that wait together are executed as one."""

    statement: sa.Executable
    rows: tuple[dict[str, Any], ...]

    def __call__(self, connection: sa.Connection) -> None:
        connection.execute(self.statement, list(self.rows))


@dataclass(slots=True)
class Writer:
    """Any thread may put. Writes are done in the order in which they were put, but for ``Rows``: all of a
    transaction's go before its others, those of the first statement in ``order`` first."""

    transaction: Transaction
    order: tuple[sa.Executable, ...] = ()
    _waiting: queue.SimpleQueue[tuple[Write, Future[None]] | None] = field(default_factory=queue.SimpleQueue)
    _thread: threading.Thread | None = None
    _closed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, write: Write) -> Future[None]:
        """Done when it is in the database; StateError where it cannot be."""
        made: Future[None] = Future()
        with self._lock:
            if self._closed:
                made.set_exception(StateError("The gateway ends: nothing is taken down any more."))
                return made
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="tidemill-gateway-store", daemon=True)
                self._thread.start()
            self._waiting.put((write, made))
        return made

    def close(self) -> None:
        """After what waits."""
        with self._lock:
            self._closed = True
            self._waiting.put(None)
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        ends = False
        while not ends:
            batch = [self._waiting.get()]
            while len(batch) < _MOST and not self._waiting.empty():
                batch.append(self._waiting.get())
            ends = batch[-1] is None
            self._write([one for one in batch if one is not None])

    def _write(self, batch: Sequence[tuple[Write, Future[None]]]) -> None:
        """What fails together is tried alone: one bad write spoils no other."""
        try:
            if batch:
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
