"""Files as listings give them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, slots=True, order=True)
class FileEntry:
    """``modified`` in nanoseconds since 1970 (object stores give whole seconds)."""

    path: str
    size: int
    modified: int


class FileList(tuple[FileEntry, ...]):
    """Files of a listing, by thousands: what is asked of them all is computed once."""

    @cached_property
    def size(self) -> int:
        """Bytes of all."""
        return sum(file.size for file in self)

    @cached_property
    def folders(self) -> frozenset[str]:
        """The directories that they lie in."""
        return frozenset(file.path.rpartition("/")[0] for file in self)

    @cached_property
    def _hash(self) -> int:
        return super().__hash__()

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[FileList], tuple[tuple[FileEntry, ...]]]:
        """Another process computes other hashes."""
        return FileList, (tuple(self),)
