"""Which places in file systems a session may name, and which are closed to all of them.

A place is a local path, or a URI. A local path stands for what it leads to, through links, ``..`` and
``file:``. A file is also closed if it is a closed file under another name (a hard link). A closed folder
closes the folders that it lies in, too: a reader of these would read all that is in them.

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
    """``closed``: places that nobody may name; ``allowed``: those that one may, ``ANY`` for all others."""

    closed: tuple[str, ...] = ()
    allowed: tuple[str, ...] = (ANY,)

    @property
    def is_open(self) -> bool:
        """Whether there is nothing to look at."""
        return not self.closed and ANY in self.allowed

    def permits(self, location: str) -> bool:
        """Whether ``location`` may be read and written, with all that is below it."""
        return self.is_open or Look(self).permits(location)


OPEN = Fence()


@dataclass(slots=True)
class Look:
    """A look at many places. What is in closed places is looked up once, when the first file of several names
    comes: that takes as long as to list them."""

    fence: Fence
    _numbers: frozenset[tuple[int, int]] | None = None

    def permits(self, location: str) -> bool:
        """As of the fence."""
        if self.fence.is_open or "\0" in unquote(location):  # which no file system takes
            return self.fence.is_open
        return all(map(self._permits, _places(location)))

    def _permits(self, place: str) -> bool:
        closed = [own for text in self.fence.closed for own in _places(text)]
        if any(_is_below(place, own) or _is_below(own, place) for own in closed):
            return False
        allowed = (one for text in self.fence.allowed if text != ANY for one in _places(text))
        if ANY not in self.fence.allowed and not any(_is_below(place, one) for one in allowed):
            return False
        return not self._is_linked(place, closed)

    def _is_linked(self, place: str, closed: list[str]) -> bool:
        """Whether a local file of several names has one in a closed place."""
        try:
            found = os.stat(place)
        except (OSError, ValueError):
            return False
        if found.st_nlink < 2 or stat.S_ISDIR(found.st_mode):
            return False
        if self._numbers is None:
            self._numbers = frozenset(_numbers(closed))
        return (found.st_dev, found.st_ino) in self._numbers


def _places(location: str) -> Iterator[str]:
    """What ``location`` may mean to those who read it: some take ``%2e`` for a dot, some follow a link before
    they go up by ``..``, and some after."""
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
    """Devices and numbers of all files in ``places``."""
    for place in places:
        below = (os.path.join(folder, name) for folder, _, names in os.walk(place) for name in names)
        for file in (place, *below):
            try:
                found = os.stat(file)
            except OSError:
                continue
            yield found.st_dev, found.st_ino
