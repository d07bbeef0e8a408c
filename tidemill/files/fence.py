"""Which places in file systems a session may name, and which are closed to all of them.

A place is a local path, or a URI. A local path stands for what it leads to, through links, ``..`` and
``file:``. A file is also closed if it is a closed file under another name (a hard link). A closed folder
closes the folders that it lies in, too: a reader of these would read all that is in them.

    Fence(closed=("/var/gateway",), allowed=("/data",)).permits("/data/../var/gateway/users")  ->  False
"""

from __future__ import annotations

import os
import posixpath
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
        if self.is_open or "\0" in location:  # which no file system takes
            return self.is_open
        closed = [place for text in self.closed for place in _places(text)]
        allowed = [place for text in self.allowed if text != ANY for place in _places(text)]
        return all(
            not any(_is_below(place, own) or _is_below(own, place) for own in closed)
            and (ANY in self.allowed or any(_is_below(place, one) for one in allowed))
            and not _is_linked(place, closed)
            for place in _places(location)
        )


OPEN = Fence()


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


def _is_linked(place: str, closed: list[str]) -> bool:
    """Whether a local file of several names has one in a closed place."""
    try:
        found = os.stat(place)
    except (OSError, ValueError):
        return False
    if found.st_nlink < 2 or os.path.isdir(place):
        return False
    return any((s.st_dev, s.st_ino) == (found.st_dev, found.st_ino) for s in _stats(closed))


def _stats(places: list[str]) -> Iterator[os.stat_result]:
    for place in places:
        below = (os.path.join(folder, name) for folder, _, names in os.walk(place) for name in names)
        for file in (place, *below):
            try:
                yield os.stat(file)
            except OSError:
                continue
