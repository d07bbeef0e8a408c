"""What changes while it is looked at: lines on a terminal, drawn anew in place.

Rows are taken as they come; a thread draws what they make twice a second, never wider or taller than the
screen. Elsewhere than on a terminal only the end is written.
"""

from __future__ import annotations

import datetime as dt
import shutil
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TextIO

from tidemill.changelog.rowkind import RowKind
from tidemill.client.folding import Folding, Row
from tidemill.client.progress import Ticker
from tidemill.session.rows import tableau
from tidemill.session.rows.decoder import ChangelogRow
from tidemill.session.rows.tableau import Show, cut
from tidemill.types.logical import Field

_BELOW = 2
"""Lines that stay free: for the cursor, and for what a job prints."""
_FRAME = 5
"""Lines of a table that are no rows, and the line that says how many are left out."""


class Picture(Protocol):
    """What rows make."""

    def change(self, kind: RowKind, row: Row) -> None: ...

    def lines(self, width: int, height: int) -> list[str]:
        """At most ``height`` lines of ``width`` columns."""
        ...


def _screen() -> tuple[int, int]:
    found = shutil.get_terminal_size()
    return found.columns, found.lines


@dataclass(slots=True)
class Live:
    """``size`` gives the screen's columns and lines."""

    out: TextIO
    picture: Picture
    size: Callable[[], tuple[int, int]] = _screen
    _shown: int = 0
    _changed: bool = True
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def show(self, changes: Iterable[ChangelogRow]) -> None:
        """Returns at the end of ``changes``, with the last picture on the screen, as it is after Ctrl-C."""
        ticker = Ticker(self.tick)
        if self.out.isatty():
            ticker.start()
        try:
            for kind, row in changes:
                with self._lock:
                    self.picture.change(kind, row)
                    self._changed = True
        finally:
            ticker.close()
            self.tick()

    def tick(self) -> None:
        with self._lock:
            if not self._changed:
                return
            self._changed = False
            columns, height = self.size()
            lines = self.picture.lines(columns, max(1, height - _BELOW))
            back = f"\x1b[{self._shown}F\x1b[J" if self._shown else ""
            self.out.write(back + "".join(f"{line}\n" for line in lines))
            self.out.flush()
            self._shown = len(lines) if self.out.isatty() else 0

    def clear(self) -> None:
        """Takes the picture off the screen: something else stands for it."""
        if self._shown:
            self.out.write(f"\x1b[{self._shown}F\x1b[J")
            self._shown = 0


@dataclass(slots=True)
class LiveTable:
    """The table that a changelog makes, as far as the screen shows it."""

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
