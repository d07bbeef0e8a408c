"""What an operator that keeps rows should have of them when its query has changed: a list, row by row."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
GONE = (1, 3)
"""Kinds of rows that are taken back."""


@dataclass
class Images:
    """``rows``: what is stored, in order of arrival; ``since``: of the columns that are carried the first
    epoch whose rows have them."""

    since: dict[str, int] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)

    def carry(self, columns: list[str], epoch: int) -> None:
        """From ``epoch`` on these columns."""
        self.since = {name: self.since.get(name, epoch if self.since else 0) for name in columns}
        self.rows = [{name: row.get(name) for name in columns} for row in self.rows]

    def take(self, row: Row, *, newest: bool = False) -> None:
        own = {name: row[name] for name in self.since}
        if row.get("kind", 0) not in GONE:
            self.rows.append(own)
            return
        for epoch in [None, *sorted({e for e in self.since.values() if e}, reverse=True)]:
            lacking = {n for n, e in self.since.items() if epoch is not None and e >= epoch}
            asked = {n: None if n in lacking else value for n, value in own.items()}
            if asked in self.rows:
                self.rows.remove(asked)
                return
        raise AssertionError(f"{own} is not there")


def changelog(chance: random.Random, made: list[Row], live: list[Row] | None) -> list[Row]:
    """Rows of an epoch: those ``made``, and some of the ``live`` ones taken back, if rows may be; ``live``
    are those that are there."""
    if live is None:
        return made
    gone = [live.pop(chance.randrange(len(live))) for _ in range(chance.randrange(4)) if live]
    # What is there at first may be taken back and come again.
    again = [row for row in gone if chance.random() < 0.2]
    live += [*made, *again]
    events = [{**row, "kind": chance.choice(GONE)} for row in gone] + [{**row, "kind": 0} for row in again]
    return events + [{**row, "kind": 0} for row in made]
