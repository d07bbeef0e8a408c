"""The table that a changelog makes, as far as the screen shows it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TextIO

from tidemill.changelog.rowkind import RowKind
from tidemill.client.folding import Folding, Row
from tidemill.client.live import Live
from tidemill.session.rows import tableau
from tidemill.session.rows.decoder import ChangelogRow
from tidemill.session.rows.tableau import Show, cut
from tidemill.types.logical import Field

_FRAME = 5
"""Lines of a table that are no rows, and the line that says how many are left out."""


@dataclass(slots=True)
class LiveTable:
    fields: Sequence[Field]
    rows: Folding
    max_width: int
    zone: dt.tzinfo
    show: Show

    def change(self, kind: RowKind, row: Row) -> None:
        self.rows.change(kind, row)

    def lines(self, width: int, height: int) -> list[str]:
        rows = self.rows.rows
        fit = rows if len(rows) + _FRAME <= height else rows[: max(1, height - _FRAME - 1)]
        lines = self._lay_out(fit)
        if len(fit) < len(rows):
            lines[-1] = f"{len(fit):,} of {len(rows):,} rows"
        return [cut(line, width) for line in lines]

    def follow(self, changes: Iterable[ChangelogRow], out: TextIO) -> None:
        """Takes them all, on a terminal shown while they come: at the end the screen is as it was before."""
        if not out.isatty():
            for kind, row in changes:
                self.change(kind, row)
            return
        live = Live(out, self)
        live.show(changes)
        live.clear()

    def all_lines(self) -> list[str]:
        return self._lay_out(self.rows.rows)

    def _lay_out(self, rows: Sequence[Row]) -> list[str]:
        changes = [(RowKind.INSERT, row) for row in rows]
        lines = tableau.batch_lines(
            self.fields, changes, max_width=self.max_width, zone=self.zone, show=self.show
        )
        return list(lines)
