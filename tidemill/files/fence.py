"""Restricts the locations that a session may name: some are allowed, some are closed to all sessions.

A location is a local path or a URI. Local paths are resolved: links, ``..`` and ``file:``. A hard link to a
closed file is closed, too. A closed folder also closes its parent folders, since a reader of a parent would
read the closed folder.

    Fence(closed=("/var/gateway",), allowed=("/data",)).permits("/data/../var/gateway/users")  ->  False
"""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from tidemill.files.systems import S3_SCHEMES, is_local, local_path

ANY = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """``closed``: locations that nobody may name; ``allowed``: permitted ones, ``ANY`` for all that are not
    closed."""

    closed: tuple[str, ...] = ()
    allowed: tuple[str, ...] = (ANY,)

    @property
    def is_open(self) -> bool:
        """Whether the fence permits everything."""
        return not self.closed and ANY in self.allowed

    def permits(self, location: str) -> bool:
        """Whether ``location`` may be read and written, with all that is below it."""
        return self.is_open or Look(self).permits(location)


OPEN = Fence()


@dataclass(slots=True)
class Look:
    """Checks many locations. It lists the closed locations once, when the first file with several hard links
    comes; this costs as much as listing them."""

    fence: Fence
    _numbers: frozenset[tuple[int, int]] | None = None

    def permits(self, location: str) -> bool:
        """``Fence.permits``."""
        if self.fence.is_open or "\0" in unquote(location):  # no file system has such a name
            return self.fence.is_open
        return all(map(self._permits, _places(location)))

    def _permits(self, path: str) -> bool:
        closed = [closed_path for text in self.fence.closed for closed_path in _places(text)]
        if any(_is_below(path, closed_path) or _is_below(closed_path, path) for closed_path in closed):
            return False
        allowed = (
            allowed_path for text in self.fence.allowed if text != ANY for allowed_path in _places(text)
        )
        if ANY not in self.fence.allowed and not any(
            _is_below(path, allowed_path) for allowed_path in allowed
        ):
            return False
        return not self._is_linked(path, closed)

    def _is_linked(self, place: str, closed: list[str]) -> bool:
        """Whether a local file with several hard links has one in a closed location."""
        try:
            status = os.stat(place)
        except (OSError, ValueError):
            return False
        if status.st_nlink < 2 or stat.S_ISDIR(status.st_mode):
            return False
        if self._numbers is None:
            self._numbers = frozenset(_numbers(closed))
        return (status.st_dev, status.st_ino) in self._numbers


def _places(location: str) -> Iterator[str]:
    """All paths that readers may take ``location`` for: some decode ``%2e`` to a dot, some follow links
    before ``..``, some after."""
    for text in dict.fromkeys((location, unquote(location))):
        if is_local(text):
            yield os.path.realpath(local_path(text))
            yield os.path.realpath(text.removeprefix("file:"))
        else:
            scheme, _, rest = text.partition("://")
            scheme = "s3" if scheme.lower() in S3_SCHEMES else scheme.lower()
            yield f"{scheme}://{posixpath.normpath(rest)}"


def _is_below(place: str, folder: str) -> bool:
    return place == folder or place.startswith(folder.rstrip("/") + "/")


def _numbers(places: list[str]) -> Iterator[tuple[int, int]]:
    """Device and inode of all files in ``places``."""
    for place in places:
        below = (os.path.join(folder, name) for folder, _, names in os.walk(place) for name in names)
        for file in (place, *below):
            try:
                status = os.stat(file)
            except OSError:
                continue
            yield status.st_dev, status.st_ino
