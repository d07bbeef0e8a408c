"""All access to files: paths relative to a root on any file system there is (see ``systems``).

Pickled as texts alone; each process opens its own. Local files are memory-mapped, so reading them copies
nothing. A file is durable when ``publish`` or ``force`` returns, its name when ``force_directory`` does: on
local disks by fsync, on object stores at once. Failures of a file system are OSError; who calls says what it
means.
"""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self, TypeVar

import pyarrow as pa
from pyarrow import fs

from tidemill.files.entries import FileEntry, FileList
from tidemill.files.fence import OPEN, Fence
from tidemill.files.local_disk import file_entry, local_files, make_directories, missing_directories, sync
from tidemill.files.systems import GCS_SCHEME, HDFS_SCHEMES, S3_SCHEMES, SETTINGS, is_local, resolve

TEMPORARY = ".tmp-"
AT_ONCE = 32
"""How many requests wait for an object store beside each other."""

_MANY = 500
"""Files that two threads look at in half the time; to start one takes as long as to look at fifty."""

_PIECE = 8 << 20
_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS)
"""Another disk, or one that has no hard links."""

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Storage:
    """``location``: a plain path, or a URI such as file:///x, s3://bucket/x, gs://bucket/x, hdfs://host/x.
    ``settings``: how to reach it, by Flink's keys; they may hold secrets and are never shown.
    ``durable`` False: files that nobody looks for once their job has ended, however it did; nothing is forced
    to disk then. ``fence``: where links that a listing comes upon may lead."""

    location: str
    settings: tuple[tuple[str, str], ...] = ()
    durable: bool = True
    fence: Fence = OPEN

    @classmethod
    def configured(cls, location: str, config: Mapping[str, str], *, durable: bool = True) -> Self:
        """With those of the settings that ``config`` has."""
        settings = tuple((key, config[key]) for key in SETTINGS if key in config)
        return cls(location, settings, durable=durable)

    @cached_property
    def _resolved(self) -> tuple[fs.FileSystem, str]:
        return resolve(self.location, dict(self.settings))

    def __getstate__(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in ("location", "settings", "durable", "fence")}

    def __repr__(self) -> str:
        return f"Storage({self.location!r})"

    @property
    def is_local(self) -> bool:
        return is_local(self.location)

    @property
    def scheme(self) -> str:
        """In small letters; 'file' for a plain path."""
        return "file" if self.is_local else self.location.partition("://")[0].lower()

    @property
    def has_appends(self) -> bool:
        """Whether a file can grow, and be given another name as it is; objects of a store are replaced whole,
        and copied."""
        return self.is_local or self.scheme in HDFS_SCHEMES

    @property
    def system(self) -> fs.FileSystem:
        return self._resolved[0]

    @property
    def root(self) -> str:
        return self._resolved[1]

    def below(self, relative: str) -> Storage:
        return replace(self, location=f"{self.location.rstrip('/')}/{relative}")

    def absolute(self, relative: str) -> str:
        """'' is the root itself."""
        return f"{self.root.rstrip('/')}/{relative}" if relative else self.root

    def full_path(self, relative: str) -> str:
        """As users name it: a local path, or the URI."""
        if self.is_local:
            return self.absolute(relative)
        return f"{self.location.rstrip('/')}/{relative}" if relative else self.location

    def each(self, action: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """``action`` of each item, in their order; beside each other where each waits for a network."""
        if self.is_local:
            return [action(item) for item in items]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(action, items))

    # -- reading ----------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Whether there is anything at the root."""
        return bool(self.system.get_file_info(self.root).type != fs.FileType.NotFound)

    def stat(self, relative: str) -> FileEntry | None:
        """None when there is no such file."""
        info = self.system.get_file_info(self.absolute(relative))
        return _entry(info, relative) if info.type == fs.FileType.File else None

    def stats(self, relatives: Sequence[str]) -> list[FileEntry | None]:
        """``stat`` of each."""
        if not self.is_local:
            return self.each(self.stat, relatives)
        return [file_entry(self.absolute(relative), relative) for relative in relatives]

    def are(self, files: FileList) -> bool:
        """Whether all ``files``, of this machine, are there as they were listed."""
        root = self.root.rstrip("/")
        paths = [f"{root}/{file.path}" if file.path else root for file in files]
        half = len(paths) // 2 if len(paths) > _MANY else 0
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(self.system.get_file_info, paths[:half]) if half else None
            rest = self.system.get_file_info(paths[half:])
            found = rest if first is None else first.result() + rest
        times, sizes = [now.mtime_ns for now in found], [now.size for now in found]
        return times == [file.modified for file in files] and sizes == [file.size for file in files]

    def open(self, relative: str) -> pa.NativeFile:
        return self.system.open_input_file(self.absolute(relative))

    def read_bytes(self, relative: str) -> bytes:
        # Of a file in Google's store Arrow asks for the length first, and no other thread runs meanwhile.
        streamed = self.scheme == GCS_SCHEME
        opened = self.system.open_input_stream(self.absolute(relative)) if streamed else self.open(relative)
        with opened as file:
            data: bytes = file.read()
        return data

    def directories(self, relative: str) -> list[str]:
        """Names of the directories right below; none when it is not there."""
        if self.scheme == GCS_SCHEME:
            # Arrow lists only folders that are objects of their own there.
            skip = len(relative) + 1 if relative else 0
            below = (entry.path[skip:].partition("/") for entry in self.files(relative))
            return sorted({name for name, separator, _ in below if separator})
        selector = fs.FileSelector(self.absolute(relative), allow_not_found=True)
        found = self.system.get_file_info(selector)
        return sorted(i.base_name for i in found if i.type == fs.FileType.Directory)

    def files(
        self,
        relative: str = "",
        *,
        recursive: bool = True,
        enters: Callable[[str], bool] | None = None,
        misses: Callable[[str], bool] | None = None,
        sees: Callable[[str], None] | None = None,
    ) -> Iterator[FileEntry]:
        """All files below, in no order; none when it is not there. Paths are relative to the root.
        Directories whose name ``enters`` refuses are not looked into (object stores have none). OSError
        where a link leads nowhere whose name ``misses`` takes: listings leave it out. ``sees`` is called
        with each local directory before it is looked into, and with what is neither that nor a file.

        What comes or goes meanwhile may be among them or not. Directories are listed one by one for that: a
        listing of a whole tree fails when a directory of it goes. OSError where a link leads back to a
        directory that it lies in: its files would be there without end.
        """
        if self.is_local:
            yield from local_files(
                self.absolute,
                self.fence,
                relative,
                recursive=recursive,
                enters=enters,
                misses=misses,
                sees=sees,
            )
            return
        skip = len(self.root.rstrip("/")) + 1
        by_directory = recursive and self.scheme in HDFS_SCHEMES
        left = [self.absolute(relative)]
        while left:
            path = left.pop()
            for info in self._below(path, recursive and not by_directory):
                if info.type == fs.FileType.File:
                    yield _entry(info, info.path[skip:])
                elif not by_directory or info.type != fs.FileType.Directory:
                    continue
                elif enters is None or enters(info.base_name):
                    left.append(info.path)

    def _below(self, path: str, recursive: bool) -> list[fs.FileInfo]:
        """What a directory has, nothing when it is not there."""
        selector = fs.FileSelector(path, recursive=recursive, allow_not_found=True)
        try:
            return list(self.system.get_file_info(selector))
        except FileNotFoundError:
            return []  # it went between the look whether it is there and its listing
        except OSError:
            # HDFS gives no reason.
            if self.scheme in HDFS_SCHEMES and self.system.get_file_info(path).type == fs.FileType.NotFound:
                return []
            raise

    # -- writing ----------------------------------------------------------------------------------

    def create(self, relative: str) -> pa.NativeFile:
        """A new file for writing, an old one of the name being replaced."""
        return self.system.open_output_stream(self.absolute(relative), compression=None)

    def publish(self, relative: str, write: Callable[[pa.NativeFile], object]) -> int:
        """A whole file appears under its name, durably, or not at all; returns its size in bytes.

        1. write it under a name of its own; 2. force it to disk; 3. rename it; 4. force the directory. An
        object store shows an object when its stream is closed, however that comes: there all of it is made
        in memory first.
        """
        if not self.has_appends:
            made = pa.BufferOutputStream()
            write(made)
            data = made.getvalue()
            with self.create(relative) as stream:
                stream.write(data)
            return int(data.size)
        self._make_parent(relative)
        temporary = f"{relative}{TEMPORARY}{uuid.uuid4().hex}"
        try:
            with self.create(temporary) as stream:
                write(stream)
                size = int(stream.tell())
            self.force(temporary)
            self.move(temporary, relative)
        except BaseException:
            self.remove(temporary)
            raise
        self.force_directory(relative.rpartition("/")[0])
        return size

    def take_in(self, other: Storage, relative: str) -> None:
        """An immutable file of ``other`` is here, too, under the same name: a hard link on one disk, a copy
        that a store makes by itself, else a copy through this process. Its name is durable when
        ``force_directory`` returns. FileExistsError, on a local disk, where there is one."""
        self._make_parent(relative)
        if self.is_local and other.is_local:
            try:
                return os.link(other.absolute(relative), self.absolute(relative))
            except OSError as e:
                if e.errno not in _NO_LINKS:
                    raise
        if (
            self.scheme == other.scheme
            and self.scheme in (GCS_SCHEME, *S3_SCHEMES)
            and self.settings == other.settings
        ):
            self.system.copy_file(other.absolute(relative), self.absolute(relative))
            return
        with other.open(relative) as reading:
            self.publish(relative, lambda into: _pour(reading, into))

    def move(self, old: str, new: str) -> None:
        """Replaces what is at ``new``; atomic where the file system's rename is (in HDFS what is there is
        removed first)."""
        self.system.move(self.absolute(old), self.absolute(new))

    def force(self, relative: str) -> None:
        """A file's bytes are on the disk when this returns."""
        if self.is_local and self.durable:
            sync(self.absolute(relative))

    def force_directory(self, relative: str) -> None:
        """The names in a directory are on the disk when this returns."""
        if self.is_local and self.durable:
            sync(self.absolute(relative))

    def make_directory(self, relative: str) -> None:
        """With its parents; each new one is durable in its parent."""
        if not self.is_local:
            if self.scheme != GCS_SCHEME:  # which has none, and would only get an object of that name
                self.system.create_dir(self.absolute(relative), recursive=True)
            return
        made = list(missing_directories(self.absolute(relative)))
        make_directories(self.absolute(relative))
        for path in made if self.durable else ():
            sync(os.path.dirname(path))

    def remove(self, relative: str) -> None:
        """One that is gone already is fine."""
        try:
            self.system.delete_file(self.absolute(relative))
        except FileNotFoundError:
            return
        except OSError:
            # HDFS gives no reason.
            if self.scheme not in HDFS_SCHEMES or self.stat(relative) is not None:
                raise

    def remove_directory(self, relative: str) -> None:
        """With all that is in it; nothing happens when it is not there. What another process puts into it
        meanwhile may stay."""
        path = self.absolute(relative)
        if self.is_local:
            shutil.rmtree(path, ignore_errors=True)
        elif self.scheme == GCS_SCHEME:
            self.each(self.remove, [entry.path for entry in self.files(relative)])
        elif self.system.get_file_info(path).type == fs.FileType.Directory:
            self.system.delete_dir(path)

    def prune(self, relative: str) -> None:
        """Removes a directory that is empty, and its parents up to the root that are empty then. Object
        stores have no empty ones."""
        while self.is_local and relative:
            try:
                os.rmdir(self.absolute(relative))
            except OSError:
                return
            relative = relative.rpartition("/")[0]

    def _make_parent(self, relative: str) -> None:
        parent = relative.rpartition("/")[0]
        if not (self.is_local and os.path.isdir(self.absolute(parent))):
            self.make_directory(parent)


def _pour(source: pa.NativeFile, into: pa.NativeFile) -> None:
    while piece := source.read(_PIECE):
        into.write(piece)


def _entry(info: fs.FileInfo, relative: str) -> FileEntry:
    return FileEntry(relative, info.size, info.mtime_ns or 0)
