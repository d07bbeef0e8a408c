"""Folds a changelog into its current rows, change by change.

An update takes the position of the row that it updates. Beyond the limit the oldest rows are dropped, and
later changes of them are ignored. Cost: the text of each row, which is its key in a dictionary.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self

from tidemill.changelog.rowkind import RowKind
from tidemill.session.rows.decoder import ChangelogRow

Row = tuple[Any, ...]


@dataclass(slots=True)
class Folding:
    limit: int
    _rows: dict[int, tuple[str, Row]] = field(default_factory=dict)
    """The rows by their positions, which grow."""
    _places: dict[str, list[int]] = field(default_factory=dict)
    _left: deque[int] = field(default_factory=deque)
    """Positions of retracted rows, for the updated rows that follow."""
    _next: int = 0

    @classmethod
    def of(cls, changes: Iterable[ChangelogRow], limit: int) -> Self:
        made = cls(limit)
        for kind, row in changes:
            made.change(kind, row)
        return made

    def change(self, kind: RowKind, row: Row) -> None:
        if kind in (RowKind.INSERT, RowKind.DELETE):
            self._left.clear()
        if kind.weight < 0:
            self._remove(row, updated=kind is RowKind.UPDATE_BEFORE)
            return
        updated = kind is RowKind.UPDATE_AFTER and self._left
        self._add(row, self._left.popleft() if updated else None)

    @property
    def rows(self) -> list[Row]:
        return [row for _, (_, row) in sorted(self._rows.items())]

    def __len__(self) -> int:
        return len(self._rows)

    def _add(self, row: Row, place: int | None) -> None:
        if place is None:
            place, self._next = self._next, self._next + 1
        key = repr(row)
        self._rows[place] = (key, row)
        self._places.setdefault(key, []).append(place)
        if len(self._rows) > self.limit:
            oldest = next(iter(self._rows))
            self._take(self._rows[oldest][0], oldest)

    def _remove(self, row: Row, *, updated: bool) -> None:
        key = repr(row)
        places = self._places.get(key)
        if places:
            place = places[-1]
            self._take(key, place)
            if updated:
                self._left.append(place)

    def _take(self, key: str, place: int) -> None:
        del self._rows[place]
        places = self._places[key]
        places.remove(place)
        if not places:
            del self._places[key]
