"""What a watched directory has that is new, at the cost of what is new.

Local directories say when a name came or went, so one that has not changed is not read again, and a file
that was taken is not looked at for being there. Whether taken files have changed is found by looking at so
many of them each time, one after the other. Other file systems are listed whole.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tidemill.connectors.filesystem.listing import is_hidden, list_files
from tidemill.errors import ConnectorError
from tidemill.files.storage import FileEntry, Storage, check_link

CHECKED = 256
_SETTLED = 2_000_000_000
"""A directory may change again within the same tick of its clock (in ns, with a lot to spare)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Directory:
    """As it was at ``scanned``; names are relative to the root."""

    modified: int
    scanned: int
    files: frozenset[str]
    directories: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class DirectoryWatch:
    """Forgets nothing that is not taken: a file is given again each time until it is."""

    storage: Storage
    _directories: dict[str, _Directory] = field(default_factory=dict)
    _waiting: set[str] = field(default_factory=set)
    _checked: list[str] = field(default_factory=list)

    def entries(self, is_taken: Callable[[str], bool]) -> Iterator[FileEntry]:
        """The files that are not taken, by path, each looked at when it is asked for; then some that are.
        ConnectorError where there is nothing at the path or at the end of a link, or a directory cannot be
        listed."""
        if not (self.storage.is_local and os.path.isdir(self.storage.root)):
            yield from list_files(self.storage)
            return
        self._waiting |= self._appeared()
        taken = sorted(filter(is_taken, self._waiting))
        self._waiting.difference_update(taken)
        self._checked += taken
        checked = self._next_checked()
        for path in sorted(self._waiting):
            found = self.storage.stat(path)
            if found is not None:
                yield found
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
        """Those whose turn it is; they go to the end of the line, unless they are gone."""
        turn = self._checked[:CHECKED]
        found = [entry for entry in map(self.storage.stat, turn) if entry is not None]
        self._checked = self._checked[len(turn) :] + [entry.path for entry in found]
        return found

    def _appeared(self) -> set[str]:
        """Visible files that came since the last time; directories that are gone are forgotten."""
        came: set[str] = set()
        seen: dict[str, _Directory] = {}
        left = [""]
        while left:
            relative = left.pop()
            before = self._directories.get(relative)
            try:
                now = self._directory(relative, before)
            except (FileNotFoundError, NotADirectoryError):
                continue  # it went away meanwhile
            except OSError as e:
                raise ConnectorError(f"Cannot list {self.storage.absolute(relative)}: {e}") from None
            seen[relative] = now
            came |= now.files - before.files if before is not None else now.files
            left += now.directories
        self._directories = seen
        return came

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
