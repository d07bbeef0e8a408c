"""Immutable, checked files below a state root, which is a directory or a URI (``tidemill.files``).

``publish`` writes a file under a new name. ``read`` returns exactly what was published, or raises
StateError. Names are relative to the root. Cost of a check: one pass over the file (xxh3, more than 10
GB/s) when a process first reads it. The file's length is checked before it is mapped. Files of an
object store are mapped from a copy on the machine's own disk (see ``files.cache``).
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import xxhash

from tidemill.errors import NOTHING_COMMITTED, StateError
from tidemill.files.cache import executor_cache
from tidemill.files.storage import Storage
from tidemill.state.record import START_AGAIN

_REMEMBERED = 1 << 16
_SETTLED_NS = 50_000_000
"""A file younger than this may change without a change of its time: it is checked each time."""

_sound: dict[tuple[int, ...], None] = {}
"""Local files that this process has read to the end and found as they were written, oldest first."""


@dataclass(frozen=True, slots=True)
class Published:
    """The length and the xxh3 checksum that a reader must find."""

    size: int
    checksum: int


@dataclass(frozen=True, slots=True)
class StateFiles:
    """``owner`` says in errors whose files these are, and which epoch is safe."""

    storage: Storage
    owner: str = ""

    @classmethod
    def open(cls, root: Storage | str, owner: str = "") -> StateFiles:
        return cls(root if isinstance(root, Storage) else Storage(root), owner)

    def path(self, name: str) -> str:
        """The file's path, as errors name it."""
        return self.storage.full_path(name)

    def read(self, name: str, expected: Published) -> pa.Buffer:
        """The bytes of the file, mapped from a local disk. StateError if they are not what was published."""
        if self.storage.is_local:
            return self._mapped(name, self.storage.absolute(name), expected)
        cache = executor_cache()
        cached_path = cache.find(self.storage, name, expected.size)
        if cached_path is not None:
            with contextlib.suppress(StateError):
                return self._mapped(name, cached_path, expected)
        try:
            return self._mapped(name, cache.fetch(self.storage, name), expected)
        except OSError as e:
            raise self._unreadable(name, e) from e

    def _mapped(self, name: str, path: str, expected: Published) -> pa.Buffer:
        """``path``: the file itself, or this machine's copy."""
        try:
            status = os.stat(path)
            if status.st_size != expected.size:
                raise self._wrong_length(name, status.st_size, expected)
            mark = (status.st_dev, status.st_ino, status.st_ctime_ns, expected.size, expected.checksum)
            with pa.memory_map(path) as source:
                buffer = source.read_buffer()
        except OSError as e:
            raise self._unreadable(name, e) from e
        if mark not in _sound:
            self._checked(name, buffer, expected)
            if time.time_ns() - status.st_ctime_ns > _SETTLED_NS:
                _remember(mark)
        return buffer

    def read_bytes(self, name: str) -> bytes:
        """A whole small file, unchecked: it must contain its own checksum."""
        try:
            return self.storage.read_bytes(name)
        except OSError as e:
            raise self._unreadable(name, e) from e

    def publish(self, name: str, write: Callable[[Any], None]) -> Published:
        """Writes a new file with ``write(sink)``, and forces it to disk. StateError if the name exists.

        If the process dies, a half-written file keeps its name, but no manifest names it. ``settle``
        forces the folder to disk, once for all files of an epoch.
        """
        try:
            if self.storage.is_local:
                self.storage.make_directory(name.rpartition("/")[0])
                return _written(self.storage.absolute(name), write, durable=self.storage.durable)
            # Written to the local cache first, where the next epoch's task may find it.
            with executor_cache().adding(self.storage, name) as copy:
                published = _written(copy, write, durable=False)
                with pa.memory_map(copy) as mapped, self.storage.create(name) as stream:
                    stream.write(mapped.read_buffer())
            return published
        except OSError as e:
            raise self._unwritable(name, e) from e

    def settle(self, folder: str) -> None:
        """Forces the names of the files published in ``folder`` to disk."""
        try:
            self.storage.force_directory(folder)
        except OSError as e:
            raise self._unwritable(folder, e) from e

    def names(self, folder: str = "") -> Iterator[str]:
        """All files below ``folder``."""
        try:
            yield from (entry.path for entry in self.storage.files(folder))
        except OSError as e:
            raise self._unreadable(folder, e) from e

    def remove(self, name: str) -> None:
        """Removes a file. A file that is gone already is no error."""
        try:
            self.storage.remove(name)
        except OSError as e:
            raise StateError(f"Cannot remove state file '{self.path(name)}': {e}") from e

    def damaged(self, name: str, why: str) -> StateError:
        return StateError(f"State file '{self.path(name)}'{self._whose} is damaged: {why}", hint=START_AGAIN)

    @property
    def _whose(self) -> str:
        return f" of {self.owner}" if self.owner else ""

    def _checked(self, name: str, buffer: pa.Buffer, expected: Published) -> pa.Buffer:
        if buffer.size != expected.size:
            raise self._wrong_length(name, buffer.size, expected)
        if xxhash.xxh3_64_intdigest(buffer) != expected.checksum:
            raise self.damaged(name, "its checksum is not the one in its manifest")
        return buffer

    def _wrong_length(self, name: str, size: int, expected: Published) -> StateError:
        return self.damaged(name, f"it has {size} bytes, its manifest says {expected.size}")

    def _unreadable(self, name: str, error: OSError) -> StateError:
        return StateError(
            f"Cannot read state file '{self.path(name)}'{self._whose}: {error}",
            hint=START_AGAIN if isinstance(error, FileNotFoundError) else "",
        )

    def _unwritable(self, name: str, error: OSError) -> StateError:
        return StateError(
            f"Cannot write state file '{self.path(name)}'{self._whose}: {error}",
            hint=f"Check that the checkpoint directory is writable and has space left. {NOTHING_COMMITTED}",
        )


def _written(path: str, write: Callable[[Any], None], *, durable: bool) -> Published:
    with open(path, "xb") as file:
        sink = _Summing(file)
        with pa.PythonFile(sink, mode="w") as stream:
            write(stream)
        file.flush()
        if durable:
            os.fsync(file.fileno())
    return sink.published


class _Summing:
    """A file that computes the checksum of everything written to it. Buffers are not copied."""

    closed = False

    def __init__(self, file: Any) -> None:
        self._file = file
        self._size = 0
        self._sum = xxhash.xxh3_64()

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self._file.write(data)
        self._sum.update(data)
        self._size += size
        return size

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        """Does nothing: the opener closes the file, after forcing it to disk."""

    @property
    def published(self) -> Published:
        return Published(self._size, self._sum.intdigest())


def _remember(mark: tuple[int, ...]) -> None:
    if len(_sound) >= _REMEMBERED:
        _sound.pop(next(iter(_sound)), None)
    _sound[mark] = None
