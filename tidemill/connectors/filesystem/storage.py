"""Where files are: a pyarrow file system and a path in it, from a table's 'path' option.

Pickled as the path's text alone; workers open their own. Local files are memory-mapped.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyarrow import fs

from tidemill.errors import ConnectorError


@dataclass(frozen=True, slots=True, order=True)
class FileEntry:
    """``modified`` in milliseconds since 1970."""

    path: str
    size: int
    modified: int


@dataclass(frozen=True)
class Storage:
    """``location``: a plain path, or a URI such as file:///x, hdfs://host/x, s3://bucket/x."""

    location: str

    @cached_property
    def _resolved(self) -> tuple[fs.FileSystem, str]:
        if "://" not in self.location and not self.location.startswith("file:"):
            return fs.LocalFileSystem(use_mmap=True), os.path.abspath(self.location)
        if self.location.startswith("file:"):
            return fs.LocalFileSystem(use_mmap=True), "/" + self.location.removeprefix("file:").lstrip("/")
        try:
            system, path = fs.FileSystem.from_uri(self.location)
        except (pa.ArrowInvalid, OSError, ImportError) as e:
            raise ConnectorError(f"Cannot open the file system of '{self.location}': {e}") from None
        return system, path

    def __getstate__(self) -> dict[str, str]:
        return {"location": self.location}

    @property
    def system(self) -> fs.FileSystem:
        return self._resolved[0]

    @property
    def root(self) -> str:
        return self._resolved[1]

    def absolute(self, relative: str) -> str:
        """'' is the root itself."""
        return f"{self.root.rstrip('/')}/{relative}" if relative else self.root

    def stat(self, relative: str) -> FileEntry | None:
        """None when there is no such file."""
        info = self.system.get_file_info(self.absolute(relative))
        return _entry(info, relative) if info.type == fs.FileType.File else None

    def open(self, relative: str) -> pa.NativeFile:
        return self.system.open_input_file(self.absolute(relative))

    def create(self, relative: str) -> pa.NativeFile:
        """A new file for writing, an old one of the name being replaced."""
        return self.system.open_output_stream(self.absolute(relative), compression=None)

    def make_directory(self, relative: str) -> None:
        self.system.create_dir(self.absolute(relative), recursive=True)

    def move(self, old: str, new: str) -> None:
        """Replaces what is at ``new``; atomic where the file system's rename is."""
        self.system.move(self.absolute(old), self.absolute(new))

    def remove(self, relative: str) -> None:
        self.system.delete_file(self.absolute(relative))

    def remove_directory(self, relative: str) -> None:
        """With all that is in it; nothing happens when it is not there."""
        path = self.absolute(relative)
        if self.system.get_file_info(path).type == fs.FileType.Directory:
            self.system.delete_dir(path)

    def directories(self, relative: str) -> list[str]:
        """Names of the directories right below; none when it is not there."""
        selector = fs.FileSelector(self.absolute(relative), allow_not_found=True)
        found = self.system.get_file_info(selector)
        return sorted(i.base_name for i in found if i.type == fs.FileType.Directory)

    def list_files_or_none(self) -> list[FileEntry]:
        """``list_files``, empty where there is nothing yet."""
        missing = self.system.get_file_info(self.root).type == fs.FileType.NotFound
        return [] if missing else self.list_files()

    def list_files(self) -> list[FileEntry]:
        """All visible files below the root (or the root itself), sorted by path; ConnectorError when
        there is nothing at the path."""
        info = self.system.get_file_info(self.root)
        if info.type == fs.FileType.File:
            return [_entry(info, "")]
        if info.type == fs.FileType.NotFound:
            raise ConnectorError(
                f"File {self.location} does not exist or the user has insufficient permissions to access it."
            )
        try:
            found = self.system.get_file_info(fs.FileSelector(self.root, recursive=True))
        except OSError as e:
            raise ConnectorError(f"Cannot list {self.location}: {e}") from None
        skip = len(self.root.rstrip("/")) + 1
        files = [_entry(i, i.path[skip:]) for i in found if i.type == fs.FileType.File]
        return sorted(f for f in files if not _hidden(f.path))


def _entry(info: fs.FileInfo, relative: str) -> FileEntry:
    return FileEntry(relative, info.size, (info.mtime_ns or 0) // 1_000_000)


def _hidden(relative: str) -> bool:
    """Names that start with '.' or '_', directories too (but not partition directories)."""
    return any(p.startswith(".") or (p.startswith("_") and "=" not in p) for p in relative.split("/"))
