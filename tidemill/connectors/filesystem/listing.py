"""Which files below a path are a table's: all but hidden ones, in the order of their paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from operator import attrgetter

from tidemill.connectors.filesystem.replacing import settled
from tidemill.errors import ConnectorError
from tidemill.files.entries import FileEntry, FileList
from tidemill.files.file_snapshot import seen_once
from tidemill.files.listing_cache import CachedListing, DirectoryWalk
from tidemill.files.storage import Storage
from tidemill.last_used import LastUsed

_HIDING = "._"
"""First characters of the names of hidden files and directories."""
_LISTINGS = LastUsed[CachedListing](most=64, heaviest=200_000, weight=lambda listing: listing.size)
"""Cached listings, by root, settings and fence. A listing is validated before each use."""


def list_files(storage: Storage, *, links_lead: bool = True) -> list[FileEntry]:
    """All visible files below the root (or the root itself), sorted by path. ConnectorError if nothing is at
    the path or, with ``links_lead``, at the end of a visible link."""
    return settled(storage, lambda: _listed(storage, links_lead=links_lead))


def _listed(
    storage: Storage, *, links_lead: bool = True, sees: Callable[[str], None] | None = None
) -> list[FileEntry]:
    """``list_files``, while a statement may be replacing files. ``sees``: as in ``Storage.files``."""
    try:
        entry = storage.stat("")
        if entry is not None:
            return [entry]
        if not storage.exists():
            raise ConnectorError(
                f"File {storage.location} does not exist or the user has insufficient permissions to"
                " access it."
            )
        entries = storage.files(enters=_is_visible, misses=_is_visible if links_lead else None, sees=sees)
        return sorted((f for f in entries if not _lies_hidden(f.path)), key=attrgetter("path"))
    except OSError as e:
        raise ConnectorError(f"Cannot list {storage.location}: {e}") from None


def seen_files(storage: Storage) -> FileList:
    """``list_files``, once per statement: later calls of the statement get the same files."""
    return seen_once(lambda: settled(storage, lambda: _files(storage)), storage)


def _files(storage: Storage) -> FileList:
    """``_listed``, from the cache if the directories of the cached listing have not changed."""
    key = storage.root, storage.settings, storage.fence  # the root is absolute
    cached = _LISTINGS.get(key)
    current = None if cached is None else cached.now()
    if cached is not None and current is not None:
        if current is not cached.files:
            _LISTINGS.keep(key, replace(cached, files=current))
        return current
    walk = DirectoryWalk(storage)
    files = FileList(_listed(storage, sees=walk.enters))
    listing = walk.listing(files)
    if listing is not None:
        _LISTINGS.keep(key, listing)
    return files


@dataclass(slots=True)
class FirstListing:
    """The files of an unwatched table: later files are not part of it. Otherwise a job that writes into the
    table it reads would read its own rows, and never end."""

    times: dict[str, int] | None = None
    """The modification time of each file at the first call, by path; None before."""

    def of(self, entries: Iterable[FileEntry]) -> list[FileEntry]:
        """The files of ``entries`` that the first call had."""
        current = list(entries)
        if self.times is None:
            self.times = {entry.path: entry.modified for entry in current}
        return [entry for entry in current if entry.path in self.times]


def list_files_or_none(storage: Storage) -> list[FileEntry]:
    """``list_files`` for writers: empty if nothing is at the path yet; dead links are skipped."""
    return list_files(storage, links_lead=False) if storage.exists() else []


def _is_visible(name: str) -> bool:
    return not is_hidden(name)


def _lies_hidden(path: str) -> bool:
    return (path[0] in _HIDING or "/." in path or "/_" in path) and any(map(is_hidden, path.split("/")))


def is_hidden(name: str) -> bool:
    """Whether a file or directory is hidden: ``.x`` and ``_x`` are, the partition directory ``_x=1`` is
    not."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)
