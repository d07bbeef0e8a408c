"""Validates the cached listing of a local directory tree, at a fifth of the cost of a new listing.

On local file systems a directory's times change with the names in it. So if no directory of a tree has
changed, the tree has the same files; the size and time of each file is checked every time. On file systems
that are not in ``_OWN``, such as shared ones, this does not hold: their trees are listed again.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from tidemill.files.entries import FileList
from tidemill.files.storage import Storage

_OWN = frozenset({"ext2", "ext3", "ext4", "xfs", "f2fs", "tmpfs", "overlay"})
"""File systems that only this machine writes to, and that give a changed directory a new time."""
_MOUNTS = Path("/proc/self/mountinfo")
_MOUNT = re.compile(r"\d+ \d+ (\d+):(\d+) .* - (\S+) ")
"""A line of ``_MOUNTS``: the device and the type of the file system."""
_SETTLED = 2_000_000_000
"""Nanoseconds after which a change surely has another time: clocks of file systems tick a second at the
most."""

_State = tuple[int, int, int, int]
"""State of a directory: device, inode, modification time, and change time."""
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
        """The files of a new listing, or None if one is necessary. Returns ``files`` itself if nothing
        changed."""
        try:
            if any(_state(path) != state for path, state in self.directories.items()):
                return None
            if self.storage.are(self.files):
                return self.files
            files = self.storage.stats([file.path for file in self.files])
        except OSError:  # the new listing reports the error
            return None
        return None if None in files else FileList(filter(None, files))


@dataclass(slots=True)
class DirectoryWalk:
    """Records the state of each directory before a listing reads it. An entry that is neither a directory nor
    a file gets the state ``_UNKNOWN``, so that the listing is not cached."""

    storage: Storage
    begun: int = field(default_factory=time.time_ns)
    _directories: dict[str, _State] = field(default_factory=dict)

    def enters(self, directory: str) -> None:
        path = self.storage.absolute(directory)
        try:
            self._directories[path] = _state(path)
        except OSError:  # it is gone, or the listing reports the error
            self._directories[path] = _UNKNOWN

    def listing(self, files: FileList) -> CachedListing | None:
        """The cached listing of ``files``; None if a change could go unnoticed."""
        states = self._directories.values()
        if not states or max(max(state[2:]) for state in states) >= self.begun - _SETTLED:
            return None
        if not {device for device, *_ in states} <= _own_devices():
            return None
        return CachedListing(self.storage, files, self._directories)


def _state(path: str) -> _State:
    status = os.stat(path)
    if not stat.S_ISDIR(status.st_mode):
        return _UNKNOWN
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def _own_devices() -> frozenset[int]:
    """The devices with file systems of ``_OWN``, as far as the mount table lists them."""
    try:
        lines = _MOUNTS.read_text(errors="replace").split("\n")
    except OSError:
        return frozenset()
    kinds: dict[int, set[str]] = {}
    for match in map(_MOUNT.match, lines):
        if match is not None:
            major, minor, system = match.groups()
            kinds.setdefault(os.makedev(int(major), int(minor)), set()).add(system)
    return frozenset(device for device, systems in kinds.items() if systems <= _OWN)
