"""Finds the new files of a watched directory, at a cost that grows with the number of new files.

The modification time of a local directory changes if a name comes or goes. So an unchanged directory is not
read again, and taken files are not looked up for their presence. To notice changed files, each call checks
``CHECKED`` of the taken files, in turn. Other file systems are listed whole.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tidemill.connectors.filesystem.listing import is_hidden, list_files
from tidemill.connectors.filesystem.replacing import settled
from tidemill.errors import ConnectorError
from tidemill.files.entries import FileEntry
from tidemill.files.local_disk import check_link
from tidemill.files.storage import Storage

CHECKED = 256
_SETTLED = 2_000_000_000
"""A directory may change again within the same tick of its clock (in ns, with a lot to spare)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Directory:
    """A directory at the time ``scanned``; names are relative to the root."""

    modified: int
    scanned: int
    files: frozenset[str]
    directories: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class DirectoryWatch:
    """Watches the root of ``storage``. A file is returned by each call until it is taken."""

    storage: Storage
    _directories: dict[str, _Directory] = field(default_factory=dict)
    _waiting: set[str] = field(default_factory=set)
    _checked: list[str] = field(default_factory=list)

    def entries(self, is_taken: Callable[[str], bool]) -> Iterator[FileEntry]:
        """The untaken files by path, then some taken ones; each is looked up when the caller reads it.
        ConnectorError if nothing is at the path or at the end of a link, or a directory cannot be listed."""
        if not (self.storage.is_local and os.path.isdir(self.storage.root)):
            yield from list_files(self.storage)
            return
        settled(self.storage, lambda: self._waiting.update(self._appeared()))
        taken = sorted(filter(is_taken, self._waiting))
        self._waiting.difference_update(taken)
        self._checked += taken
        checked = self._next_checked()
        for path in sorted(self._waiting):
            entry = self.storage.stat(path)
            if entry is not None:
                yield entry
            else:
                self._gone(path)
        yield from checked

    def _gone(self, path: str) -> None:
        try:
            check_link(self.storage.absolute(path))
        except OSError as e:
            raise ConnectorError(f"Cannot list {self.storage.location}: {e}") from None
        self._waiting.discard(path)

    def _next_checked(self) -> list[FileEntry]:
        """The next taken files to check. They move to the end of the queue, unless they are gone."""
        turn = self._checked[:CHECKED]
        entries = [entry for entry in map(self.storage.stat, turn) if entry is not None]
        self._checked = self._checked[len(turn) :] + [entry.path for entry in entries]
        return entries

    def _appeared(self) -> set[str]:
        """Visible files that came since the last call. Forgets directories that are gone."""
        new_files: set[str] = set()
        scanned: dict[str, _Directory] = {}
        pending = [""]
        while pending:
            relative = pending.pop()
            before = self._directories.get(relative)
            try:
                now = self._directory(relative, before)
            except (FileNotFoundError, NotADirectoryError):
                continue  # it went away meanwhile
            except OSError as e:
                raise ConnectorError(f"Cannot list {self.storage.absolute(relative)}: {e}") from None
            scanned[relative] = now
            new_files |= now.files - before.files if before is not None else now.files
            pending += now.directories
        self._directories = scanned
        return new_files

    def _directory(self, relative: str, before: _Directory | None) -> _Directory:
        path, scanned = self.storage.absolute(relative), time.time_ns()
        modified = os.stat(path).st_mtime_ns
        if before is not None and before.modified == modified and before.scanned - modified > _SETTLED:
            return before
        files: set[str] = set()
        directories: list[str] = []
        prefix = f"{relative}/" if relative else ""
        with os.scandir(path) as entries:
            for entry in entries:
                if is_hidden(entry.name):
                    continue
                if entry.is_dir():
                    directories.append(prefix + entry.name)
                else:
                    files.add(prefix + entry.name)
        return _Directory(
            modified=modified, scanned=scanned, files=frozenset(files), directories=tuple(directories)
        )
