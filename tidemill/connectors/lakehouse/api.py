"""What a table format answers: which files its versions have, and how the next version is made.

A version is a number that the format gives: Delta's versions, Iceberg's snapshots. Which rows are read and
written, and when an epoch counts, is the same for all formats (``source``, ``sink``, ``upserts``,
``commits``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tidemill.connectors.lakehouse.files import DataFile, RowNumbers
from tidemill.errors import ConnectorError
from tidemill.files.storage import Storage


class History(Protocol):
    """The versions of a table, for a reader."""

    @property
    def begins_whole(self) -> bool:
        """Whether reading begins with all files of a version, not with those that it has added."""
        ...

    def identity(self) -> str:
        """Which table it is: another one that takes its place has another."""
        ...

    def begin(self) -> int:
        """The version that reading begins with. ConnectorError, NotSupportedError or ValidationError where
        the table cannot be read."""
        ...

    def files(self, version: int, *, whole: bool) -> Sequence[DataFile]:
        """All files of the version, or those whose rows it has added; always in the same order.
        ConnectorError where a version has removed rows, or is not kept any more."""
        ...

    def following(self, version: int) -> int | None:
        """The next version; None while there is none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A file of the version that loses rows, and is not written anew. ``vector``: all of its deleted rows, as
    VectorWriter names them; ``columns``: statistics of its columns, as tokens have them."""

    file: DataFile
    vector: dict[str, Any]
    columns: dict[str, list[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What an epoch changes in a table. ``added``: files as tokens have them; ``removed``, ``marked``: of the
    version; ``changes``: files as tokens have them that say what has changed, row by row. ``what``: the
    statement's first words, '' if it only writes rows."""

    added: Sequence[dict[str, Any]]
    removed: Sequence[DataFile] = ()
    marked: Sequence[Marked] = ()
    changes: Sequence[dict[str, Any]] = ()
    what: str = ""


class ConflictError(Exception):
    """Somebody else has made the next version: nothing was committed."""


class UnclearError(Exception):
    """It is not known whether the next version was made."""


class VectorWriter(Protocol):
    """Stores which rows of files are deleted; works in Spark's Python workers."""

    def write(self, storage: Storage, sets: Sequence[RowNumbers]) -> list[dict[str, Any]]:
        """How the table's log names each of the sets, which are ascending. OSError where it fails."""
        ...


class Version(Protocol):
    """The newest version of a table, for a writer."""

    def recorded(self, sink: str) -> int:
        """The last epoch of ``sink`` that the table has; 0 for none."""
        ...

    def check(self, *, removes: bool) -> None:
        """ValidationError or NotSupportedError where the table does not take the sink's rows; ``removes``:
        files go, too."""
        ...

    def files(self, columns: Collection[str]) -> Sequence[DataFile]:
        """All of them, with bounds of ``columns``."""
        ...

    def vectors(self) -> VectorWriter | None:
        """For a table whose files can lose rows without being written anew; None for other tables."""
        ...

    def commit(self, sink: str, epoch: int, change: Change) -> None:
        """Makes the next version: the change, and the epoch. Raises ConflictError or UnclearError."""
        ...


class Target(Protocol):
    """A table that is written."""

    def newest(self) -> Version:
        """ConnectorError where it cannot be opened."""
        ...

    def failure(self, error: Exception) -> ConnectorError:
        """What is said of an error of the format's library."""
        ...
