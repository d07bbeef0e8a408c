"""Checks that files have not changed since they were read: by size, modification time, and first and last
bytes.

The first and last bytes tell appended lines from a rewritten file, even if size and time are equal. Object
stores only replace whole objects and report the time, so no bytes are read there. Cost: two small reads per
file that the source takes.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from tidemill.connectors.filesystem.offsets import TakenFile
from tidemill.errors import ConnectorError, StateError
from tidemill.files.entries import FileEntry, FileList
from tidemill.files.storage import Storage

_END = 1024
_WHOLE = "Files must appear in a source's path at once and complete, for example by a rename."
_APPENDED = (
    "A watched file may get new lines at its end; the part that was read must stay as it is. To read the file"
    " again, give it another name."
)


def ends_of(storage: Storage, path: str, size: int) -> str:
    """A hash of the first and the last bytes among the first ``size`` of a file."""
    if not storage.has_appends:
        return ""
    with opened(storage, path) as file:
        head = file.read(min(_END, size))
        file.seek(max(size - _END, 0))
        tail = file.read(min(_END, size))
    return hashlib.blake2b(head + tail, digest_size=8).hexdigest()


@contextmanager
def opened(storage: Storage, path: str) -> Iterator[pa.NativeFile]:
    """Opens a file to read. ConnectorError if the file is gone or unreadable."""
    try:
        with storage.open(path) as file:
            yield file
    except FileNotFoundError:
        raise ConnectorError(vanished(storage.full_path(path))) from None
    except OSError as e:
        raise ConnectorError(f"Cannot read file {storage.full_path(path)}: {e}") from None


def vanished(path: str) -> str:
    return f"File {path} no longer exists, but not all of it was read."


def check_unchanged(storage: Storage, file: TakenFile, entry: FileEntry | None, *, appends: bool) -> None:
    """ConnectorError if the file is gone or has changed; with ``appends`` it may have grown. ``entry``: the
    file now, None if it is gone."""
    path = storage.full_path(file.path)
    if entry is None:
        raise ConnectorError(vanished(path))
    has_grown = appends and not file.compressed and entry.size > file.size
    if entry.size != file.size and not has_grown:
        raise ConnectorError(
            f"File {path} has changed since it was read: it had {file.size} bytes, now it has {entry.size}.",
            hint=_APPENDED if appends else _WHOLE,
        )
    same_time = entry.size != file.size or entry.modified == file.modified
    if not same_time or (file.ends and ends_of(storage, file.path, file.size) != file.ends):
        raise ConnectorError(
            f"File {path} has changed since it was read: it was rewritten.",
            hint=_APPENDED if appends else _WHOLE,
        )


def check_kept(storage: Storage, files: Sequence[TakenFile], *, appends: bool) -> None:
    """StateError if one of ``files`` is gone or has changed, so that it cannot be read again."""
    for file, entry in zip(files, storage.stats([f.path for f in files]), strict=True):
        if entry is None:
            time_read = dt.datetime.fromtimestamp(file.modified // 10**9, dt.UTC).isoformat(" ")
            raise StateError(f"file {storage.full_path(file.path)}, of {time_read}, was removed")
        try:
            check_unchanged(storage, file, entry, appends=appends)
        except ConnectorError as e:
            raise StateError(e.message.removesuffix(".")) from e


def check_replaced(storage: Storage, files: FileList) -> None:
    """ConnectorError if a file of a listing was replaced. Call it after reading: if no file has changed by
    then, the rows are those of the listed files. A file that is gone is no error: its reader has read it, or
    has failed."""
    if storage.are(files):
        return
    for file, entry in zip(files, storage.stats([f.path for f in files]), strict=True):
        if entry is not None and entry != file:
            raise replaced(storage, file.path)


def replaced(storage: Storage, path: str) -> ConnectorError:
    """The error for a file that was replaced while it was read."""
    return ConnectorError(f"File {storage.full_path(path)} has changed while it was read.", hint=_WHOLE)


def is_unchanged(file: TakenFile, entry: FileEntry) -> bool:
    """Whether size and time of a listing entry are those of ``file``."""
    return (entry.size, entry.modified) == (file.size, file.modified)


def continuation(storage: Storage, file: TakenFile) -> int:
    """The offset of the lines appended to ``file``: behind the newline of its last line. ConnectorError if
    bytes were appended to the last line itself."""
    if file.length == 0:
        return 0
    with opened(storage, file.path) as opened_file:
        opened_file.seek(file.length - 1)
        border_bytes = opened_file.read(3)
    if border_bytes[:1] == b"\n":
        return file.length
    for ending in (b"\n", b"\r\n"):
        if border_bytes[1:].startswith(ending):
            return file.length + len(ending)
    raise ConnectorError(
        f"File {storage.full_path(file.path)}: its last line was read before the line was complete.",
        hint="Append whole lines: write each line and its end together.",
    )


def whole_lines(storage: Storage, path: str, begin: int, size: int) -> int:
    """The offset behind the last newline of the bytes ``begin``..``size``; ``begin`` if there is none."""
    upper, block_size = size, 1 << 16
    with opened(storage, path) as file:
        while upper > begin:
            start = max(upper - block_size, begin)
            file.seek(start)
            newline = file.read(upper - start).rfind(b"\n")
            if newline >= 0:
                return int(start + newline + 1)
            upper = start
    return begin
