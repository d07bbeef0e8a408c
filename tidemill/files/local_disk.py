"""Directories and files of a local disk."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress

from tidemill.files.entries import FileEntry
from tidemill.files.fence import Fence, Look

_TRIES = 20
Links = tuple[str, ...]
"""Where the links lead that a listing went through on its way."""


def local_files(
    absolute: Callable[[str], str],
    fence: Fence,
    relative: str,
    *,
    recursive: bool,
    enters: Callable[[str], bool] | None,
    misses: Callable[[str], bool] | None,
    sees: Callable[[str], None] | None,
) -> Iterator[FileEntry]:
    """As ``Storage.files``; a directory and its entries are asked for what is needed alone. ``absolute``: the
    path of a relative one."""
    left: list[tuple[str, Links]] = [(relative, ())]
    look = Look(fence)
    while left:
        directory, links = left.pop()
        if sees is not None:
            sees(directory)
        prefix = f"{directory}/" if directory else ""
        for entry in _entries(absolute(directory)):
            path = prefix + entry.name
            if entry.is_file():
                yield from _existing_entry(entry, path, look)
            elif entry.is_dir():
                if recursive and (enters is None or enters(entry.name)):
                    _check(entry, look, leads=entry.is_symlink())
                    left.append((path, _followed(entry, links)))
            else:
                if sees is not None:
                    sees(path)
                if misses is not None and misses(entry.name):
                    check_link(entry.path)


def _followed(entry: os.DirEntry[str], links: Links) -> Links:
    """``links`` and where the directory ``entry`` leads to, where that is one."""
    if not entry.is_symlink():
        return links
    target, lies_in = os.path.realpath(entry.path), os.path.realpath(os.path.dirname(entry.path))
    if target in links or f"{lies_in}/".startswith(f"{target.rstrip('/')}/"):
        raise OSError(errno.ELOOP, "A link leads back to a directory that it lies in", entry.path)
    return (*links, target)


def _entries(path: str) -> list[os.DirEntry[str]]:
    """What a local directory has, nothing when it is not there. OSError where a name is not UTF-8."""
    try:
        with os.scandir(path) as found:
            entries = list(found)
    except FileNotFoundError:
        return []
    except NotADirectoryError:
        if os.path.exists(path):
            raise
        return []  # it would lie below a file
    odd = next((entry for entry in entries if not entry.name.isascii() and not _is_utf8(entry.name)), None)
    if odd is not None:
        raise OSError(errno.EILSEQ, "A file's name is not UTF-8", ascii(odd.path))
    return entries


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _existing_entry(entry: os.DirEntry[str], path: str, look: Look) -> Iterator[FileEntry]:
    """Nothing where the file has gone since its directory was listed."""
    try:
        found = entry.stat()
    except FileNotFoundError:
        return
    _check(entry, look, leads=found.st_nlink > 1 or entry.is_symlink())
    yield FileEntry(path, found.st_size, found.st_mtime_ns)


def _check(entry: os.DirEntry[str], look: Look, *, leads: bool) -> None:
    """OSError where ``entry``, if it ``leads`` elsewhere, does so beyond the fence."""
    if leads and not look.permits(entry.path):
        raise OSError(errno.EACCES, "A link leads to a path that this session may not use", entry.path)


def file_entry(path: str, relative: str) -> FileEntry | None:
    """None where a local path is no file."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return FileEntry(relative, found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None


def check_link(path: str) -> None:
    """OSError where a local path is a link that leads nowhere."""
    if not os.path.exists(path) and os.path.islink(path):
        raise OSError(errno.ENOENT, "A link leads nowhere", path)


def missing_directories(path: str) -> Iterator[str]:
    """``path`` and its parents that are not there, the deepest first."""
    while not os.path.isdir(path) and path != os.path.dirname(path):
        yield path
        path = os.path.dirname(path)


def make_directories(path: str) -> None:
    """A directory with its parents, also where somebody removes some that were empty meanwhile."""
    for _ in range(_TRIES):
        with suppress(FileNotFoundError):
            return os.makedirs(path, exist_ok=True)
    os.makedirs(path, exist_ok=True)


def sync(path: str) -> None:
    """Forces a local file, or the names in a directory, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
