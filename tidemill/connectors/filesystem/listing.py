"""Which files below a path are a table's: all but hidden ones, in the order of their paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from operator import attrgetter

from tidemill.errors import ConnectorError
from tidemill.files.file_snapshot import seen_once
from tidemill.files.listing_cache import CachedListing, DirectoryWalk
from tidemill.files.storage import FileEntry, FileList, Storage
from tidemill.last_used import LastUsed

_HIDING = "._"
"""What names of hidden files and directories begin with."""
_LISTINGS = LastUsed[CachedListing](most=64, heaviest=200_000, weight=lambda listing: listing.size)
"""Listings that may still hold, by what is listed."""


def list_files(
    storage: Storage, *, links_lead: bool = True, sees: Callable[[str], None] | None = None
) -> list[FileEntry]:
    """All visible files below the root (or the root itself), sorted by path; ConnectorError when there is
    nothing at the path or, with ``links_lead``, at the end of a visible link. ``sees``: as of
    ``Storage.files``."""
    try:
        single = storage.stat("")
        if single is not None:
            return [single]
        if not storage.exists():
            raise ConnectorError(
                f"File {storage.location} does not exist or the user has insufficient permissions to"
                " access it."
            )
        found = storage.files(enters=_is_visible, misses=_is_visible if links_lead else None, sees=sees)
        return sorted((f for f in found if not _lies_hidden(f.path)), key=attrgetter("path"))
    except OSError as e:
        raise ConnectorError(f"Cannot list {storage.location}: {e}") from None


def seen_files(storage: Storage) -> FileList:
    """``list_files`` as of a statement's first look at the path."""
    return seen_once(lambda: _files(storage), storage)


def _files(storage: Storage) -> FileList:
    """``list_files``; a look at the directories of a known listing tells whether it still holds."""
    place = storage.root, storage.settings, storage.fence  # a relative path may mean another one by now
    cached = _LISTINGS.get(place)
    now = None if cached is None else cached.now()
    if cached is not None and now is not None:
        if now is not cached.files:
            _LISTINGS.keep(place, replace(cached, files=now))
        return now
    walk = DirectoryWalk(storage)
    found = FileList(list_files(storage, sees=walk.enters))
    listing = walk.listing(found)
    if listing is not None:
        _LISTINGS.keep(place, listing)
    return found


@dataclass(slots=True)
class FirstListing:
    """Of a table that is not watched: what comes while it is read is not part of it. A job that writes into
    the table it reads would else read its own rows, and never end."""

    _paths: frozenset[str] | None = None

    def of(self, entries: Iterable[FileEntry]) -> list[FileEntry]:
        """Those of ``entries`` that were among the first that were asked for."""
        found = list(entries)
        if self._paths is None:
            self._paths = frozenset(entry.path for entry in found)
        return [entry for entry in found if entry.path in self._paths]


def list_files_or_none(storage: Storage) -> list[FileEntry]:
    """``list_files`` for who writes: empty where there is nothing yet, whatever is no file left aside."""
    return list_files(storage, links_lead=False) if storage.exists() else []


def _is_visible(name: str) -> bool:
    return not is_hidden(name)


def _lies_hidden(path: str) -> bool:
    return (path[0] in _HIDING or "/." in path or "/_" in path) and any(map(is_hidden, path.split("/")))


def is_hidden(name: str) -> bool:
    """Of a file or directory: it starts with '.' or '_' (but is no partition directory)."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)
