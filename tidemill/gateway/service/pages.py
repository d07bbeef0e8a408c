"""The buffer of one result's rows between the statement that produces them and the client that reads them.

The rows are segments, in order: the first in memory, the others in Arrow files. A page is cut when the client
reads it, and can be read again by the same token until the client reads the next page. A finite result is
kept until the operation is closed, so that a client can start again. Of a streaming result, read rows are
dropped once it exceeds its memory. Cost: a page of a segment on disk is a read of a mapped file.
"""

from __future__ import annotations

import base64
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow as pa

from tidemill.errors import TidemillError
from tidemill.gateway.api import GatewayError, TokenError

PAGE_ROWS = 5_000
PAGE_BYTES = 4 << 20
SMALL_ROWS, SMALL_BYTES = 500, 16 << 10
_SEGMENT_BYTES = 16 << 20
_ROWS, _END, _NOTES = ".arrow", "end", "tokens"


@dataclass(slots=True, kw_only=True)
class _Segment:
    """Rows ``start`` to ``end`` of the result; if ``table`` is None, ``file`` holds them."""

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
    """One thread puts, any thread may read. ``folder`` is created when memory is full. ``ahead``: the limit
    of unread bytes at which ``put`` waits. ``keep``: all rows stay until ``close``. ``durable``: a complete
    result is on disk, where another process finds it (``restored``); a small result is stored with its
    operation (``small_rows``) instead."""

    schema: pa.Schema
    folder: str
    memory: int
    ahead: int
    keep: bool = True
    durable: bool = False
    _segments: list[_Segment] = field(default_factory=list)
    _rows: int = 0
    _in_memory: int = 0
    _files: int = 0
    _token: int = 0
    _previous: tuple[int, int] = (0, 0)
    """The rows of the page before ``_token``."""
    _read: int = 0
    _done: bool = False
    _error: TidemillError | None = None
    _closed: bool = False
    _forgot: bool = False
    _restored: bool = False
    _lock: threading.Condition = field(default_factory=threading.Condition)

    def put(self, rows: pa.Table) -> bool:
        """Adds rows; waits while the reader is far behind. Returns False if the result was closed."""
        for start in range(0, max(rows.num_rows, 0), _segment_rows(rows)):
            if not self._put(rows.slice(start, _segment_rows(rows))):
                return False
        return not self._closed

    def finish(self) -> None:
        """Marks the result as complete."""
        with self._lock:
            if self.durable and not self._closed and not self._forgot and not self._is_small():
                for segment in self._segments:
                    if not segment.file:
                        self._write(segment)
                self._write_end()
            self._done = True
            self._lock.notify_all()

    def fail(self, error: TidemillError) -> None:
        """Ends the result with ``error``, which is raised behind the last row."""
        with self._lock:
            self._error, self._done = error, True
            self._lock.notify_all()

    def close(self) -> None:
        """Frees all rows; ``put`` then returns False."""
        with self._lock:
            self._closed = True
            self._segments.clear()
            self._lock.notify_all()
            if self._files or (self.durable and not (self._done and self._is_small())):
                shutil.rmtree(self.folder, ignore_errors=True)

    def wait_rows(self, timeout: float) -> None:
        """Returns once there are unread rows or the result has ended, or after ``timeout`` seconds."""
        with self._lock:
            self._lock.wait_for(lambda: self._rows > self._read or self._done or self._closed, timeout)

    def fetch(self, token: int, most: int = PAGE_ROWS) -> Page:
        """The page of ``token``: the next page, or the previous page again. TokenError for other tokens."""
        with self._lock:
            if self._closed:
                raise GatewayError("The result has been closed.")
            if self._restored:
                self._seek(token, most)
            if token == self._token:
                return self._next(most)
            if token == self._token - 1 and token >= 0:
                return Page(self._cut(*self._previous), self._token)
            raise TokenError(self._token, token)

    def rewind(self) -> None:
        """Restarts with the first page and token 0. GatewayError if rows have been dropped."""
        with self._lock:
            if self._forgot:
                raise GatewayError("The first rows of a result that does not end are not kept.")
            self._token, self._read, self._previous = 0, 0, (0, 0)

    @property
    def is_light(self) -> bool:
        """Whether reading or closing the result takes no time: it is complete and small."""
        return self._done and self._is_small()

    def small_rows(self) -> str:
        """The rows as base64 of an Arrow stream, if the result is small and complete; otherwise ''."""
        with self._lock:
            if not self.durable or not self._done or not self._is_small() or self._error is not None:
                return ""
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, self.schema) as writer:
                for segment in self._segments:
                    writer.write_table(segment.table)
            return base64.b64encode(sink.getvalue()).decode("ascii")

    def _is_small(self) -> bool:
        """Whether no part of the result is, or will be, on disk."""
        return self.keep and not self._files and self._rows <= SMALL_ROWS and self._in_memory <= SMALL_BYTES

    @property
    def bytes(self) -> int:
        """Bytes of the held rows, in memory or on disk."""
        with self._lock:
            return sum(s.bytes for s in self._segments)

    @property
    def token(self) -> int:
        """The token of the next page."""
        return self._token

    def _next(self, most: int) -> Page:
        """Cuts the next page. The page before the current one may now be dropped."""
        if self._read == self._rows and self._done:
            if self._error is not None:
                raise self._error
            self._previous = (self._read, self._read)
            return Page(None, None)
        start, end = self._read, self._page_end(most)
        self._forget_before(start)
        if self.durable and not self.keep and not self._forgot:
            self._note(end)
        self._previous, self._read = (start, end), end
        self._token += 1
        self._lock.notify_all()
        return Page(self._cut(start, end), self._token)

    def _page_end(self, most: int) -> int:
        segment = next((s for s in self._segments if s.end > self._read), None)
        if segment is None:
            return self._read
        fitting_rows = max(1, PAGE_BYTES * (segment.end - segment.start) // max(segment.bytes, 1))
        return min(self._rows, self._read + min(most, fitting_rows))

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
            self._rows = segment.end
            if self._in_memory + segment.bytes > self.memory:
                self._write(segment)
                segment.table = None
                self._segments.append(segment)
            else:
                self._in_memory += segment.bytes
                self._hold(segment)
            self._lock.notify_all()
            return True

    def _hold(self, segment: _Segment) -> None:
        """Adds a segment in memory. Merges small segments: a streaming query may have thousands of epochs."""
        last = self._segments[-1] if self._segments and not self.keep else None
        if last is None or last.table is None or last.end - last.start >= PAGE_ROWS:
            self._segments.append(segment)
            return
        last.table = pa.concat_tables([last.table, segment.table]).combine_chunks()
        last.end, last.bytes = segment.end, last.bytes + segment.bytes

    def _unread(self) -> int:
        return sum(s.bytes for s in self._segments if s.end > self._read)

    def _write(self, segment: _Segment) -> None:
        self._make_folder()
        segment.file = os.path.join(self.folder, f"{segment.start}-{segment.bytes}{_ROWS}")
        with pa.OSFile(segment.file, "wb") as sink, pa.ipc.new_file(sink, self.schema) as writer:
            writer.write_table(segment.table, max_chunksize=PAGE_ROWS)
        self._files += 1

    def _make_folder(self) -> None:
        if not self._files:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)

    def _write_end(self) -> None:
        """Writes the marker file of a complete result."""
        self._make_folder()
        with open(os.path.join(self.folder, _END), "w", encoding="ascii") as file:
            file.write(str(self._rows))

    def _note(self, end: int) -> None:
        """Stores where a page of a streaming result ended, since its token does not imply the rows."""
        self._make_folder()
        with open(os.path.join(self.folder, _NOTES), "ab") as file:
            file.write(end.to_bytes(8, "big"))

    def _seek(self, token: int, most: int) -> None:
        """Moves to ``token`` after a restart: a client may continue with any token of the previous
        process."""
        self._restored = False
        ends = _page_ends(self.folder)
        if not self.keep:
            if token <= len(ends):
                self._token, self._read = token, ends[token - 1] if token else 0
                _truncate_page_ends(self.folder, token)
            return
        while self._token < token and self._read < self._rows:
            self._read = self._page_end(most)
            self._token += 1

    def _forget_before(self, row: int) -> None:
        if self.keep or sum(s.bytes for s in self._segments) <= self.memory:
            return
        while self._segments and self._segments[0].end <= row:
            dropped = self._segments.pop(0)
            self._forgot = True
            if dropped.file:
                os.unlink(dropped.file)
            if dropped.table is not None:
                self._in_memory -= dropped.bytes


def restored(pages: Pages, small: str) -> bool:
    """Fills empty ``pages`` with ``small`` rows, or with the files of an earlier process. Returns False if
    rows are missing."""
    if small:
        with pa.ipc.open_stream(base64.b64decode(small)) as stream:
            pages.put(stream.read_all())
        pages._done = pages._restored = True
        return True
    if not os.path.exists(os.path.join(pages.folder, _END)):
        return False
    for start, size, file in sorted(_segment_files(pages.folder)):
        with pa.memory_map(file) as source:
            rows = pa.ipc.open_file(source).read_all().num_rows
        if start != pages._rows:
            return False
        pages._segments.append(_Segment(start=start, end=start + rows, bytes=size, table=None, file=file))
        pages._rows = start + rows
        pages._files += 1
    pages._done = pages._restored = True
    return True


def _segment_files(folder: str) -> Iterator[tuple[int, int, str]]:
    for name in os.listdir(folder):
        if name.endswith(_ROWS):
            start, _, size = name.removesuffix(_ROWS).partition("-")
            yield int(start), int(size), os.path.join(folder, name)


def _page_ends(folder: str) -> list[int]:
    try:
        with open(os.path.join(folder, _NOTES), "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return []
    return [int.from_bytes(data[place : place + 8], "big") for place in range(0, len(data) - 7, 8)]


def _truncate_page_ends(folder: str, count: int) -> None:
    """Drops the stored page ends behind the first ``count``; those pages are cut again."""
    with suppress(FileNotFoundError):
        os.truncate(os.path.join(folder, _NOTES), count * 8)


def _segment_rows(rows: pa.Table) -> int:
    fitting: int = _SEGMENT_BYTES * rows.num_rows // max(rows.nbytes, 1)
    return max(1, fitting)
