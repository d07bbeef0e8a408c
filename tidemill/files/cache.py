"""A cache on the local disk for immutable files of an object store.

A file that this machine has read or written is read again without the network. Readers know length and
checksum, so they check a copy, and fetch a new one if it is damaged. The cache is beside the executor's
shuffle files and is removed with them. It may use half of the free disk space. Beyond that the least recently
read copies are removed, and all copies if the disk is full, so that a retry finds space.
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
"""The share of the budget that a process writes before it checks the size of the whole cache."""


@dataclass(slots=True, kw_only=True)
class FileCache:
    """A cache that all processes with the folder share. A copy appears only once it is complete."""

    folder: str
    budget: int
    _unseen: int = 0

    def find(self, storage: Storage, relative: str, size: int) -> str | None:
        """The path of a copy of ``size`` bytes; None if there is none."""
        path = self._path(storage, relative)
        try:
            if os.stat(path).st_size != size:
                return None
            os.utime(path)
        except OSError:
            return None
        return path

    def fetch(self, storage: Storage, relative: str) -> str:
        """Copies a file and returns the copy's path. OSError if the file is unreadable or the disk not
        writable."""
        with (
            self.adding(storage, relative) as temporary,
            storage.open(relative) as source,
            open(temporary, "wb") as copy,
        ):
            shutil.copyfileobj(source, copy, _BLOCK)
        return self._path(storage, relative)

    @contextlib.contextmanager
    def adding(self, storage: Storage, relative: str) -> Iterator[str]:
        """A temporary path to write a copy to; the copy is added when the block ends without an error."""
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
        name = hashlib.blake2b(storage.full_path(relative).encode(), digest_size=20).hexdigest()
        return os.path.join(self.folder, name)

    def _trim(self, budget: int) -> None:
        self._unseen = 0
        copies = sorted(_copies(self.folder))
        used = sum(size for _, size, _ in copies)
        if used <= budget:
            return
        for _, size, path in copies:
            if used <= budget * _TRIMMED_TO:
                return
            with contextlib.suppress(OSError):
                os.unlink(path)
            used -= size


def executor_cache() -> FileCache:
    """The cache in the first of Spark's local folders, or else in a folder of this user."""
    local_dir = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0]
    return _cache_in(os.path.join(local_dir, "tidemill-files") if local_dir else own_directory("files"))


@cache
def _cache_in(folder: str) -> FileCache:
    make_private(folder)
    disk = os.statvfs(folder)
    cached_bytes = sum(size for _, size, _ in _copies(folder))
    return FileCache(folder=folder, budget=(disk.f_bavail * disk.f_frsize + cached_bytes) // 2)


def _copies(folder: str) -> Iterator[tuple[float, int, str]]:
    """The last read time, size and path of each copy."""
    for entry in os.scandir(folder):
        with contextlib.suppress(OSError):
            status = entry.stat()
            yield status.st_mtime, status.st_size, entry.path
