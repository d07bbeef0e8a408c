"""Data files of a table, and the pieces of them that tasks read.

A table format's log says which files a version has. Pieces are ranges of rows, so that an epoch can end in
the middle of a file, and several tasks can share one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tidemill.changelog.rowkind import INSERT_ONLY, RowKind
from tidemill.connectors.lakehouse.bounds import Bounds

_TASK_ROWS = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """``path``: below the table's root; ``logged``: as the table's log has it, '' where nobody asks;
    ``rows``: how many it has; ``partition``: the values of the partition columns; ``bounds``: what the log
    says of other columns; ``kinds``: those of its rows. A file of changes (``changes``) says the kind of each
    row, and may have rows of other kinds, which are not read."""

    path: str
    size: int
    rows: int
    partition: dict[str, object] = field(default_factory=dict, hash=False)
    bounds: dict[str, Bounds] = field(default_factory=dict, hash=False, compare=False)
    kinds: frozenset[RowKind] = INSERT_ONLY
    changes: bool = False
    logged: str = ""


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


def whole(files: Iterable[DataFile]) -> Iterator[Piece]:
    """All rows of ``files``."""
    first = 0
    for file in files:
        yield Piece(file=file, start=0, end=file.rows, first=first)
        first += file.rows


def enough(pieces: Iterable[Piece], rows: int | None) -> Iterator[Piece]:
    """The first pieces that have so many rows together; all of them for None."""
    for piece in pieces:
        if rows is not None and rows <= 0:
            return
        yield piece
        rows = None if rows is None else rows - piece.rows


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
