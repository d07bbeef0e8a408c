"""``\\plot SELECT ...``: a result that updates, as bars or lines of characters.

Bars where rows have names, lines over a column of time, else over the moments at which changes came. Values
are drawn as floats; a bar says its value with all its digits. Bounded in rows, and in moments.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from tidemill.changelog.rowkind import RowKind
from tidemill.client.folding import Folding, Row
from tidemill.client.plot_lines import Points, line_plot
from tidemill.errors import ValidationError
from tidemill.session.rows.tableau import NULL, cut, visible
from tidemill.types import logical as t
from tidemill.types.logical import Field

_MOST_ROWS = 1_000
_SAMPLES = 300
_FOLLOWED = 8
"""Lines at a time; rows of a table that is followed over time."""
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_TIMES = (*t.TIMESTAMP_TYPES, t.DateType)
Text = Callable[[int, object], str]


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which columns are drawn: places, None where there is none."""

    value: int
    name: int | None
    time: int | None


def chosen(fields: Sequence[Field]) -> Chosen:
    """The last number over the first time, or by the first column that is neither, or by the first number.
    ValidationError where there is no number."""
    numbers = [i for i, f in enumerate(fields) if isinstance(f.type, t.NUMERIC_TYPES)]
    if not numbers:
        raise ValidationError("There is nothing to plot: the query gives no column of numbers.")
    times = [i for i, f in enumerate(fields) if isinstance(f.type, _TIMES)]
    others = [i for i in range(len(fields)) if i not in numbers and i not in times]
    names = others or ([] if times else numbers[:-1])
    return Chosen(numbers[-1], names[0] if names else None, times[0] if times else None)


@dataclass(slots=True)
class Plot:
    """``text``: a value of a column as people read it. ``clock`` gives seconds of the day's clock."""

    fields: Sequence[Field]
    text: Text
    clock: Callable[[], float] = time.time
    _chosen: Chosen = field(init=False)
    _rows: Folding = field(default_factory=lambda: Folding(_MOST_ROWS))
    _samples: deque[tuple[float, list[Row]]] = field(default_factory=lambda: deque(maxlen=_SAMPLES))

    def __post_init__(self) -> None:
        self._chosen = chosen(self.fields)

    def change(self, kind: RowKind, row: Row) -> None:
        self._rows.change(kind, row)

    def lines(self, width: int, height: int) -> list[str]:
        title = cut(visible(self._title()), width)
        if self._chosen.time is None and self._chosen.name is not None:
            return [title, *self._bars(width, height - 1)]
        return [title, *line_plot(self._points(), width, height - 1, moments=True)]

    def _title(self) -> str:
        name = self.fields[self._chosen.value].name
        by = self._chosen.name if self._chosen.time is None else self._chosen.time
        return f"{name} by {self.fields[by].name}" if by is not None else name

    def _bars(self, width: int, height: int) -> list[str]:
        place = self._chosen.name
        assert place is not None
        rows = self._rows.rows
        fit = rows if len(rows) <= height else rows[: height - 1]
        bars = [
            (self._said(row, place), self._value(row), self._said(row, self._chosen.value)) for row in fit
        ]
        lines = bar_lines(bars, width) if bars else ["(nothing yet)"]
        return lines if len(fit) == len(rows) else [*lines, f"and {len(rows) - len(fit):,} more"]

    def _points(self) -> Points:
        over = self._chosen.time
        if over is not None:
            return self._by_name((self._moment(row[over]), row) for row in self._rows.rows)
        if len(self._rows) <= _FOLLOWED:
            self._samples.append((self.clock(), self._rows.rows))
        return self._by_name((at, row) for at, rows in self._samples for row in rows)

    def _by_name(self, placed: Iterable[tuple[float, Row]]) -> Points:
        found: Points = {}
        name = self._chosen.name
        for at, row in placed:
            label = self.fields[self._chosen.value].name if name is None else self._said(row, name)
            value = self._value(row)
            if (label in found or len(found) < _FOLLOWED) and not math.isnan(value) and not math.isnan(at):
                found.setdefault(label, []).append((at, value))
        return {label: sorted(points) for label, points in found.items()}

    def _said(self, row: Row, place: int) -> str:
        value = row[place]
        return NULL if value is None else visible(self.text(place, value))

    def _value(self, row: Row) -> float:
        return _number(row[self._chosen.value], self.text, self._chosen.value)

    def _moment(self, value: object) -> float:
        """Seconds of a clock without a time zone."""
        place = self._chosen.time
        if value is None or place is None:
            return math.nan
        try:
            return datetime.fromisoformat(f"{self.text(place, value).rstrip('Z')}+00:00").timestamp()
        except ValueError:
            return _day(self.text(place, value))


def _day(text: str) -> float:
    try:
        return datetime.fromisoformat(f"{text}T00:00:00+00:00").timestamp()
    except ValueError:
        return math.nan


def _number(value: object, text: Text, place: int) -> float:
    if value is None:
        return math.nan
    try:
        found = float(text(place, value))
    except ValueError:
        return math.nan
    return found if math.isfinite(found) else math.nan


def bar_lines(bars: Sequence[tuple[str, float, str]], width: int) -> list[str]:
    """A line for each ``(name, value, text)``; those below zero go to the left of the others."""
    names = min(max(len(name) for name, _, _ in bars), max(8, width // 3))
    texts = max(len(text) for _, _, text in bars)
    room = max(8, width - names - texts - 3)
    known = [value for _, value, _ in bars if not math.isnan(value)]
    low, high = min([0.0, *known]), max([0.0, *known])
    left = round(room * -low / (high - low)) if high > low else 0
    scale = (room - left) / high if high > 0 else left / -low if low < 0 else 0.0
    return [
        f"{cut(name, names):>{names}} {_bar(value, scale, left)} {text}".rstrip()
        for name, value, text in bars
    ]


def _bar(value: float, scale: float, left: int) -> str:
    if math.isnan(value):
        return " " * left + "·"
    if value < 0:
        return f"{'█' * max(1, min(left, round(-value * scale))):>{left}}▏"
    eighths = round(value * scale * 8)
    whole, part = divmod(eighths, 8)
    return " " * left + ("█" * whole + _EIGHTHS[part] * bool(part) or "▏")
