"""Data files of a table, and the pieces of them that tasks read.

A table format's log says which files a version has. Pieces are ranges of rows, so that an epoch can end in
the middle of a file, and several tasks can share one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tidemill.changelog.rowkind import INSERT_ONLY, RowKind
from tidemill.connectors.lakehouse.bounds import Bounds
from tidemill.files.storage import Storage

RowNumbers = npt.NDArray[np.int64]
_TASK_ROWS = 50_000
_WORN = 0.25
"""From this share of deleted rows on a file is written anew: readers decode the deleted rows, too."""


class RowSet(Protocol):
    """Some rows of a file, by their numbers in it, which the table has stored."""

    @property
    def rows(self) -> int:
        """How many they are."""
        ...

    @property
    def name(self) -> str:
        """Tells it from other sets of the same file."""
        ...

    def numbers(self, storage: Storage) -> RowNumbers:
        """From 0 on, ascending. ConnectorError where they cannot be read."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """``path``: below the table's root; ``logged``: as the table's log has it, '' where nobody asks;
    ``rows``: how many it has; ``partition``: the values of the partition columns; ``bounds``: what the log
    says of other columns; ``kinds``: those of its rows. A file of changes (``changes``) says the kind of each
    row, and may have rows of other kinds, which are not read.

    ``deleted``: rows that the table does not have any more, though the file has them; ``among``: other rows
    than these are not wanted. ``rows`` counts all rows of the file."""

    path: str
    size: int
    rows: int
    partition: dict[str, object] = field(default_factory=dict, hash=False)
    bounds: dict[str, Bounds] = field(default_factory=dict, hash=False, compare=False)
    kinds: frozenset[RowKind] = INSERT_ONLY
    changes: bool = False
    logged: str = ""
    deleted: RowSet | None = None
    among: RowSet | None = None

    @property
    def state(self) -> str:
        """Which rows are deleted; '' for none."""
        return "" if self.deleted is None else self.deleted.name

    @property
    def live_rows(self) -> int:
        """Without the deleted ones."""
        return self.rows - (0 if self.deleted is None else self.deleted.rows)

    def is_wanted(self, storage: Storage, start: int, end: int) -> npt.NDArray[np.bool_] | None:
        """Which of the rows from ``start`` to ``end`` are to be read; None for all of them."""
        if self.deleted is None and self.among is None:
            return None
        if self.among is None:
            wanted = np.ones(end - start, np.bool_)
        else:
            wanted = np.zeros(end - start, np.bool_)
            wanted[_within(self.among.numbers(storage), start, end)] = True
        if self.deleted is not None:
            wanted[_within(self.deleted.numbers(storage), start, end)] = False
        return wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Rows ``start`` to ``end`` of a file; ``first``: the ``$seq`` of the first of them."""

    file: DataFile
    start: int
    end: int
    first: int

    @property
    def rows(self) -> int:
        return self.end - self.start


def is_worn(deleted: int, rows: int) -> bool:
    """Whether files are to be written anew that would have so many deleted rows among all their rows."""
    return deleted == rows or deleted > _WORN * rows


def whole(files: Iterable[DataFile]) -> Iterator[Piece]:
    """All rows of ``files``."""
    first = 0
    for file in files:
        yield Piece(file=file, start=0, end=file.rows, first=first)
        first += file.rows


def _within(numbers: RowNumbers, start: int, end: int) -> RowNumbers:
    """Those from ``start`` to ``end``, counted from ``start``."""
    low, high = np.searchsorted(numbers, (start, end))
    return numbers[low:high] - start


def enough(pieces: Iterable[Piece], rows: int | None) -> Iterator[Piece]:
    """The first of these pieces, which are whole files, that have so many rows together; all of them for
    None."""
    for piece in pieces:
        if rows is not None and rows <= 0:
            return
        yield piece
        rows = None if rows is None else rows - piece.file.live_rows


def tasks(pieces: Sequence[Piece], parallelism: int) -> list[list[Piece]]:
    """Consecutive pieces by task: about as many rows for each, and not too few to be worth its start."""
    total = sum(piece.rows for piece in pieces)
    goal = max(_TASK_ROWS, -(-total // max(parallelism, 1)))
    made: list[list[Piece]] = []
    left = 0
    for piece in pieces:
        while piece.rows:
            if not left:
                made.append([])
                left = goal
            taken = min(left, piece.rows)
            made[-1].append(replace(piece, end=piece.start + taken))
            piece = replace(piece, start=piece.start + taken, first=piece.first + taken)
            left -= taken
    return made
