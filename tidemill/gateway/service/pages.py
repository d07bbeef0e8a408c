"""The rows of one result between the statement that makes them and the client that reads them.

Segments of rows in order: the first of them in memory, the others as Arrow files. A page is cut where it is
read, and is read again by the same token until its successor was asked for. What was read of an endless
result is forgotten; of one that ends all is kept until the operation is closed, so that a client may begin
again. Cost: a page of a segment on disk is a look into a mapped file.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from tidemill.errors import TidemillError
from tidemill.gateway.api import GatewayError, TokenError

PAGE_ROWS = 5_000
PAGE_BYTES = 4 << 20
_SEGMENT_BYTES = 16 << 20


@dataclass(slots=True, kw_only=True)
class _Segment:
    """Rows ``start`` to ``end`` of the result; ``file`` holds them where ``table`` is None."""

    start: int
    end: int
    bytes: int
    table: pa.Table | None
    file: str = ""

    def rows(self, start: int, end: int) -> pa.Table:
        table = self.table
        if table is None:
            with pa.memory_map(self.file) as source:
                table = pa.ipc.open_file(source).read_all()
        return table.slice(start - self.start, end - start)


@dataclass(frozen=True, slots=True)
class Page:
    """``rows`` is None at the end of the result."""

    rows: pa.Table | None
    next_token: int | None


@dataclass(slots=True, kw_only=True)
class Pages:
    """One thread puts, any may read. ``folder`` is made when memory is full. ``ahead``: how many unread bytes
    there may be before ``put`` waits. ``keep``: all rows stay until ``close``."""

    schema: pa.Schema
    folder: str
    memory: int
    ahead: int
    keep: bool = True
    ended: Callable[[], None] = lambda: None
    _segments: list[_Segment] = field(default_factory=list)
    _rows: int = 0
    _in_memory: int = 0
    _files: int = 0
    _token: int = 0
    _previous: tuple[int, int] = (0, 0)
    """The rows of the page before ``_token``."""
    _read: int = 0
    _done: bool = False
    _ended_once: bool = False
    _error: TidemillError | None = None
    _closed: bool = False
    _lock: threading.Condition = field(default_factory=threading.Condition)

    def put(self, rows: pa.Table) -> bool:
        """Adds rows; waits while the reader is far behind. False when nobody will read them."""
        for start in range(0, max(rows.num_rows, 0), _segment_rows(rows)):
            if not self._put(rows.slice(start, _segment_rows(rows))):
                return False
        return not self._closed

    def finish(self) -> None:
        """There are no more rows."""
        with self._lock:
            self._done = True
            self._lock.notify_all()
        self.ended()

    def fail(self, error: TidemillError) -> None:
        """There are no more rows, because of ``error``: who reads on gets it after those there are."""
        with self._lock:
            self._error, self._done = error, True
            self._lock.notify_all()

    def close(self) -> None:
        """Frees all; who puts is told so."""
        with self._lock:
            self._closed = True
            self._segments.clear()
            self._lock.notify_all()
            if self._files:
                shutil.rmtree(self.folder, ignore_errors=True)

    def wait_rows(self, timeout: float) -> None:
        """Returns when there is something new to read, or after ``timeout`` seconds."""
        with self._lock:
            self._lock.wait_for(lambda: self._rows > self._read or self._done or self._closed, timeout)

    def fetch(self, token: int, most: int = PAGE_ROWS) -> Page:
        """The page of ``token``: the next one, or the one before again. TokenError for any other."""
        with self._lock:
            if self._closed:
                raise GatewayError("The result has been closed.")
            if token == self._token:
                return self._next(most)
            if token == self._token - 1 and token >= 0:
                return Page(self._cut(*self._previous), self._token)
            raise TokenError(self._token, token)

    def rewind(self) -> None:
        """The next page is the first again, with its token 0. GatewayError where rows have been forgotten."""
        with self._lock:
            if not self.keep and self._read:
                raise GatewayError("The first rows of a result that does not end are not kept.")
            self._token, self._read, self._previous, self._ended_once = 0, 0, (0, 0), False

    @property
    def token(self) -> int:
        """Of the page that comes next."""
        return self._token

    def _next(self, most: int) -> Page:
        """Forgets the page before: its successor is asked for."""
        if self._read == self._rows and self._done:
            if self._error is not None:
                raise self._error
            self._previous = (self._read, self._read)
            self._ended_once = True
            return Page(None, None)
        start, end = self._read, self._page_end(most)
        self._forget_before(start)
        self._previous, self._read = (start, end), end
        self._token += 1
        self._lock.notify_all()
        return Page(self._cut(start, end), self._token)

    def _page_end(self, most: int) -> int:
        held = next((s for s in self._segments if s.end > self._read), None)
        if held is None:
            return self._read
        fit = max(1, PAGE_BYTES * (held.end - held.start) // max(held.bytes, 1))
        return min(self._rows, self._read + min(most, fit))

    def _cut(self, start: int, end: int) -> pa.Table:
        parts = [
            s.rows(max(start, s.start), min(end, s.end))
            for s in self._segments
            if s.start < end and s.end > start
        ]
        return pa.concat_tables(parts) if parts else self.schema.empty_table()

    def _put(self, rows: pa.Table) -> bool:
        with self._lock:
            self._lock.wait_for(lambda: self._closed or self._unread() < self.ahead)
            if self._closed:
                return False
            segment = _Segment(
                start=self._rows, end=self._rows + rows.num_rows, bytes=rows.nbytes, table=rows
            )
            if self._in_memory + segment.bytes > self.memory:
                self._spill(segment)
            else:
                self._in_memory += segment.bytes
            self._segments.append(segment)
            self._rows = segment.end
            self._lock.notify_all()
            return True

    def _unread(self) -> int:
        return sum(s.bytes for s in self._segments if s.end > self._read)

    def _spill(self, segment: _Segment) -> None:
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        segment.file = os.path.join(self.folder, f"{segment.start}.arrow")
        with pa.OSFile(segment.file, "wb") as sink, pa.ipc.new_file(sink, self.schema) as writer:
            writer.write_table(segment.table, max_chunksize=PAGE_ROWS)
        segment.table = None
        self._files += 1

    def _forget_before(self, row: int) -> None:
        if self.keep:
            return
        while self._segments and self._segments[0].end <= row:
            gone = self._segments.pop(0)
            if gone.table is None:
                os.unlink(gone.file)
            else:
                self._in_memory -= gone.bytes


def _segment_rows(rows: pa.Table) -> int:
    fitting: int = _SEGMENT_BYTES * rows.num_rows // max(rows.nbytes, 1)
    return max(1, fitting)
