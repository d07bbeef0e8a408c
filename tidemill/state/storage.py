"""The one door to files: local directories by memory map, anything else through ``pyarrow.fs``.

Paths are relative to a root (a directory or a URI such as ``hdfs://nn/ckpt`` or ``s3://bucket/x``).
``publish`` makes a whole file appear under its name or not at all.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from tidemill.errors import StateError

_TEMPORARY = ".tmp-"


@dataclass(frozen=True, slots=True)
class Storage:
    """``root`` as given; ``base`` is the path inside ``filesystem``."""

    root: str
    filesystem: Any
    base: str
    local: bool

    @classmethod
    def open(cls, root: str) -> Storage:
        if "://" not in root:
            return cls(root, pafs.LocalFileSystem(), os.path.abspath(root), True)
        filesystem, base = pafs.FileSystem.from_uri(root)
        return cls(root, filesystem, base, isinstance(filesystem, pafs.LocalFileSystem))

    def path(self, name: str) -> str:
        return f"{self.base}/{name}"

    def open_input(self, name: str) -> Any:
        """A random-access file; local ones are memory-mapped, so reading them copies nothing."""
        try:
            if self.local:
                return pa.memory_map(self.path(name))
            return self.filesystem.open_input_file(self.path(name))
        except OSError as e:
            raise StateError(f"Cannot read state file '{self.path(name)}': {e}") from e

    def read_bytes(self, name: str) -> bytes:
        with self.open_input(name) as source:
            data: bytes = source.read()
        return data

    def publish(self, name: str, write: Callable[[Any], None]) -> int:
        """Writes a file by ``write(sink)`` and returns its size in bytes.

        1. write to a temporary name; 2. force it to disk; 3. rename over ``name``. Two tasks that
        publish the same name do no harm: both write the same bytes.
        """
        temporary = f"{name}{_TEMPORARY}{uuid.uuid4().hex}"
        try:
            self._ensure_folder(name)
            with self.filesystem.open_output_stream(self.path(temporary)) as sink:
                write(sink)
                size = int(sink.tell())
            if self.local:
                _force(self.path(temporary))
            self.filesystem.move(self.path(temporary), self.path(name))
        except OSError as e:
            raise StateError(
                f"Cannot write state file '{self.path(name)}': {e}",
                hint="Check that the checkpoint directory is writable and has space left.",
            ) from e
        return size

    def files(self, folder: str = "") -> Iterator[str]:
        """Names, relative to the root, of all files below ``folder``."""
        top = self.path(folder) if folder else self.base
        for info in self.filesystem.get_file_info(
            pafs.FileSelector(top, recursive=True, allow_not_found=True)
        ):
            if info.type == pafs.FileType.File:
                yield info.path[len(self.base) :].lstrip("/")

    def remove(self, name: str) -> None:
        """Removes a file; one that is gone already is fine."""
        try:
            self.filesystem.delete_file(self.path(name))
        except FileNotFoundError:
            return
        except OSError as e:
            raise StateError(f"Cannot remove state file '{self.path(name)}': {e}") from e

    def _ensure_folder(self, name: str) -> None:
        folder = self.path(name).rpartition("/")[0]
        if not self.local or not os.path.isdir(folder):
            self.filesystem.create_dir(folder, recursive=True)


def _force(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
