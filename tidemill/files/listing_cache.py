"""Whether the listing of a local tree still holds, at a fifth of what it costs to list it again.

A directory's times change with the names in it, on file systems of this machine. So a tree of the same
directories, none of which was changed since, has the same files; what these are now is looked at each time.
Of a file system that others write to, or that is none of ``_OWN``, nothing is known: it is listed again.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from tidemill.files.storage import FileList, Storage

_OWN = frozenset({"ext2", "ext3", "ext4", "xfs", "f2fs", "tmpfs", "overlay"})
"""File systems that this machine alone writes to, and which give a changed directory a new time."""
_MOUNTS = Path("/proc/self/mountinfo")
_MOUNT = re.compile(r"\d+ \d+ (\d+):(\d+) .* - (\S+) ")
"""A line there: the device and the kind of file system."""
_SETTLED = 2_000_000_000
"""Nanoseconds after which a change surely has another time: clocks of file systems tick a second at the
most."""

_State = tuple[int, int, int, int]
"""Of a directory: its device and number, when its names and when it itself was changed."""
_UNKNOWN: _State = (0, 0, sys.maxsize, sys.maxsize)


@dataclass(frozen=True, slots=True)
class CachedListing:
    """``files``: a listing of ``storage``; ``directories``: the state of each before it was listed."""

    storage: Storage
    files: FileList
    directories: dict[str, _State]

    @property
    def size(self) -> int:
        return len(self.files) + len(self.directories)

    def now(self) -> FileList | None:
        """What a listing would give; None where it has to be made. The same list where nothing changed."""
        try:
            if any(_state(path) != state for path, state in self.directories.items()):
                return None
            if self.storage.are(self.files):
                return self.files
            files = self.storage.stats([file.path for file in self.files])
        except OSError:  # who lists says what is wrong
            return None
        return None if None in files else FileList(filter(None, files))


@dataclass(slots=True)
class DirectoryWalk:
    """A listing under way: what it says of each directory before it looks into it, and of what is neither a
    directory nor a file, of which nobody knows what it is next time."""

    storage: Storage
    begun: int = field(default_factory=time.time_ns)
    _directories: dict[str, _State] = field(default_factory=dict)

    def enters(self, directory: str) -> None:
        path = self.storage.absolute(directory)
        try:
            self._directories[path] = _state(path)
        except OSError:  # it is gone again, or who looks into it says what is wrong
            self._directories[path] = _UNKNOWN

    def listing(self, files: FileList) -> CachedListing | None:
        """``files``: what was found; None where they may be others without a sign."""
        states = self._directories.values()
        if not states or max(max(state[2:]) for state in states) >= self.begun - _SETTLED:
            return None
        if not {device for device, *_ in states} <= _own_devices():
            return None
        return CachedListing(self.storage, files, self._directories)


def _state(path: str) -> _State:
    found = os.stat(path)
    if not stat.S_ISDIR(found.st_mode):
        return _UNKNOWN
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns


def _own_devices() -> frozenset[int]:
    """Of ``_OWN``, as far as the system says what is mounted."""
    try:
        lines = _MOUNTS.read_text(errors="replace").split("\n")
    except OSError:
        return frozenset()
    kinds: dict[int, set[str]] = {}
    for found in map(_MOUNT.match, lines):
        if found is not None:
            major, minor, system = found.groups()
            kinds.setdefault(os.makedev(int(major), int(minor)), set()).add(system)
    return frozenset(device for device, found in kinds.items() if found <= _OWN)
