"""Whether a file is still what was read of it: its size, when it was changed, and its ends.

The ends (the first and the last bytes) tell lines that were appended from a file that was written anew, and
find the latter where neither size nor time does. Object stores replace whole objects and say when: there
nothing is read for it. Cost: two small reads per file that is taken.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from tidemill.connectors.filesystem.offsets import TakenFile
from tidemill.errors import ConnectorError, StateError
from tidemill.files.storage import FileEntry, FileList, Storage

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
    """A file to read; ConnectorError where it cannot be."""
    try:
        with storage.open(path) as file:
            yield file
    except FileNotFoundError:
        raise ConnectorError(vanished(storage.shown(path))) from None
    except OSError as e:
        raise ConnectorError(f"Cannot read file {storage.shown(path)}: {e}") from None


def vanished(path: str) -> str:
    return f"File {path} no longer exists, but not all of it was read."


def check_unchanged(storage: Storage, file: TakenFile, now: FileEntry | None, *, appends: bool) -> None:
    """ConnectorError where the file is gone or is not what it was; with ``appends`` it may have grown."""
    path = storage.shown(file.path)
    if now is None:
        raise ConnectorError(vanished(path))
    grown = appends and not file.compressed and now.size > file.size
    if now.size != file.size and not grown:
        raise ConnectorError(
            f"File {path} has changed since it was read: it had {file.size} bytes, now it has {now.size}.",
            hint=_APPENDED if appends else _WHOLE,
        )
    same_time = now.size != file.size or now.modified == file.modified
    if not same_time or (file.ends and ends_of(storage, file.path, file.size) != file.ends):
        raise ConnectorError(
            f"File {path} has changed since it was read: it was rewritten.",
            hint=_APPENDED if appends else _WHOLE,
        )


def check_kept(storage: Storage, files: Sequence[TakenFile], *, appends: bool) -> None:
    """StateError where what was read of one of ``files`` cannot be read again."""
    for file, now in zip(files, storage.stats([f.path for f in files]), strict=True):
        if now is None:
            read = dt.datetime.fromtimestamp(file.modified // 10**9, dt.UTC).isoformat(" ")
            raise StateError(f"file {storage.shown(file.path)}, of {read}, was removed")
        try:
            check_unchanged(storage, file, now, appends=appends)
        except ConnectorError as e:
            raise StateError(e.message.removesuffix(".")) from e


def check_replaced(storage: Storage, files: FileList) -> None:
    """ConnectorError where one of the files of a listing is another one now. Who looks when it has read them
    has read what was listed; a file that is gone by then was there, or its reader has said so."""
    if storage.are(files):
        return
    for file, now in zip(files, storage.stats([f.path for f in files]), strict=True):
        if now is not None and now != file:
            raise replaced(storage, file.path)


def replaced(storage: Storage, path: str) -> ConnectorError:
    """What to raise of a file that is another one now."""
    return ConnectorError(f"File {storage.shown(path)} has changed while it was read.", hint=_WHOLE)


def is_unchanged(file: TakenFile, now: FileEntry) -> bool:
    """By what a listing says alone."""
    return (now.size, now.modified) == (file.size, file.modified)


def continuation(storage: Storage, file: TakenFile) -> int:
    """Where lines start that were appended to ``file``: behind its end of line. ConnectorError where its
    last line went on."""
    if file.length == 0:
        return 0
    with opened(storage, file.path) as found:
        found.seek(file.length - 1)
        border = found.read(3)
    if border[:1] == b"\n":
        return file.length
    for ending in (b"\n", b"\r\n"):
        if border[1:].startswith(ending):
            return file.length + len(ending)
    raise ConnectorError(
        f"File {storage.shown(file.path)}: its last line was read before the line was complete.",
        hint="Append whole lines: write each line and its end together.",
    )


def whole_lines(storage: Storage, path: str, begin: int, size: int) -> int:
    """Behind the last end of line among the bytes ``begin``..``size``; ``begin`` where there is none."""
    at, step = size, 1 << 16
    with opened(storage, path) as file:
        while at > begin:
            start = max(at - step, begin)
            file.seek(start)
            found = file.read(at - start).rfind(b"\n")
            if found >= 0:
                return int(start + found + 1)
            at = start
    return begin
