"""Copies, on a machine's own disk, of files of an object store that never change once they are written.

A file that was read or written here is read again without the network. Whoever reads a copy checks it (it
knows length and checksum) and asks for a new one where it is damaged. Copies lie with the executor's shuffle
files and go with them. They may take half of what the disk has for them; beyond that those that were not read
for the longest time go first, and all of them where the disk is full: who tries again finds room.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from tidemill.files.private import make_private, own_directory
from tidemill.files.storage import Storage

_BLOCK = 8 << 20
_TRIMMED_TO = 0.8
_LOOKED_AT = 0.05
"""The share of the budget that a process writes between two looks at what all have written."""


@dataclass(slots=True, kw_only=True)
class FileCache:
    """Shared by all processes that have the folder; a copy appears whole."""

    folder: str
    budget: int
    _unseen: int = 0

    def find(self, storage: Storage, relative: str, size: int) -> str | None:
        """The path of a copy of ``size`` bytes; None where there is none."""
        path = self._path(storage, relative)
        try:
            if os.stat(path).st_size != size:
                return None
            os.utime(path)
        except OSError:
            return None
        return path

    def fetch(self, storage: Storage, relative: str) -> str:
        """The path of a new copy. OSError: it cannot be read there, or not be written here."""
        with (
            self.adding(storage, relative) as temporary,
            storage.open(relative) as source,
            open(temporary, "wb") as copy,
        ):
            shutil.copyfileobj(source, copy, _BLOCK)
        return self._path(storage, relative)

    @contextlib.contextmanager
    def adding(self, storage: Storage, relative: str) -> Iterator[str]:
        """A path to write a copy to; it is one when the block has ended well."""
        path = self._path(storage, relative)
        temporary = f"{path}.{uuid.uuid4().hex[:8]}.tmp"
        try:
            yield temporary
            size = os.stat(temporary).st_size
            os.replace(temporary, path)
        except BaseException as e:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            if isinstance(e, OSError) and e.errno == errno.ENOSPC:
                self._trim(0)
            raise
        self._unseen += size
        if self._unseen > self.budget * _LOOKED_AT:
            self._trim(self.budget)

    def _path(self, storage: Storage, relative: str) -> str:
        name = hashlib.blake2b(storage.shown(relative).encode(), digest_size=20).hexdigest()
        return os.path.join(self.folder, name)

    def _trim(self, budget: int) -> None:
        self._unseen = 0
        found = sorted(_copies(self.folder))
        left = sum(size for _, size, _ in found)
        if left <= budget:
            return
        for _, size, path in found:
            if left <= budget * _TRIMMED_TO:
                return
            with contextlib.suppress(OSError):
                os.unlink(path)
            left -= size


def executor_cache() -> FileCache:
    """In the first of the folders that Spark gives its workers for files, else in one of this user's."""
    given = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0]
    return _cache_in(os.path.join(given, "tidemill-files") if given else own_directory("files"))


@cache
def _cache_in(folder: str) -> FileCache:
    make_private(folder)
    disk = os.statvfs(folder)
    taken = sum(size for _, size, _ in _copies(folder))
    return FileCache(folder=folder, budget=(disk.f_bavail * disk.f_frsize + taken) // 2)


def _copies(folder: str) -> Iterator[tuple[float, int, str]]:
    """When each was last read, its size and path."""
    for entry in os.scandir(folder):
        with contextlib.suppress(OSError):
            status = entry.stat()
            yield status.st_mtime, status.st_size, entry.path
