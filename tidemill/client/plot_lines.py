"""Lines in Braille: a character has two by four dots. Each line has a colour, which a legend names."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from tidemill.session.rows.tableau import cut

Points = dict[str, list[tuple[float, float]]]
"""By line, ``(x, y)`` by growing x."""
_COLOURS = (36, 33, 32, 35, 34, 31, 37, 96)
_BLANK = 0x2800
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(slots=True)
class _Canvas:
    """``width`` by ``height`` characters; of lines that cross in one of them the last gives its colour."""

    width: int
    height: int
    _cells: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    def dot(self, x: int, y: int, colour: int) -> None:
        place = (x // 2, y // 4)
        dots, _ = self._cells.get(place, (0, colour))
        self._cells[place] = (dots | _DOTS[x % 2][y % 4], colour)

    def row(self, y: int) -> str:
        cells = (self._cells.get((x, y), (0, -1)) for x in range(self.width))
        pieces = (
            _coloured(colour, "".join(chr(_BLANK + dots) for dots, _ in run))
            for colour, run in groupby(cells, key=lambda cell: cell[1])
        )
        return "".join(pieces).rstrip()


def _coloured(colour: int, text: str) -> str:
    return " " * len(text) if colour < 0 else f"\x1b[{_COLOURS[colour % len(_COLOURS)]}m{text}\x1b[0m"


def line_plot(lines: Points, width: int, height: int, *, moments: bool) -> list[str]:
    """``moments``: x are seconds since 1970 in UTC."""
    points = [point for line in lines.values() for point in line]
    if not points:
        return ["(nothing yet)"]
    legend = _legend(lines, width)
    rows = max(3, height - 1 - len(legend) - 1) // 2 * 2 + 1  # the middle one has a mark
    low, high = _range(y for _, y in points)
    first, last = _range((x for x, _ in points), least=0.0)
    marks = {0: short(high), rows // 2: short((low + high) / 2), rows - 1: short(low)}
    beside = max(map(len, marks.values()))
    canvas = _Canvas(max(8, width - beside - 2), rows)
    for colour, line in enumerate(lines.values()):
        _draw(canvas, [(_place(x, first, last, canvas.width * 2), y) for x, y in line], low, high, colour)
    drawn = [f"{marks.get(y, ''):>{beside}} ┤{canvas.row(y)}" for y in range(rows)]
    return [*drawn, " " * (beside + 2) + _axis(first, last, canvas.width, moments), *legend]


def _draw(canvas: _Canvas, line: list[tuple[int, float]], low: float, high: float, colour: int) -> None:
    tall = canvas.height * 4
    placed = [(x, tall - 1 - _place(y, low, high, tall)) for x, y in line]
    for start, end in zip(placed, placed[1:] or placed, strict=False):
        steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
        for n in range(steps + 1):
            x = start[0] + round((end[0] - start[0]) * n / steps)
            y = start[1] + round((end[1] - start[1]) * n / steps)
            canvas.dot(x, y, colour)


def _place(value: float, low: float, high: float, room: int) -> int:
    return round((value - low) / (high - low) * (room - 1)) if high > low else 0


def _range(values: Iterator[float], least: float = 1.0) -> tuple[float, float]:
    """From zero on, where ``least`` asks for a width and all values are above."""
    found = list(values)
    low, high = min(found), max(found)
    if not least:
        return low, high
    low, high = min(low, 0.0), max(high, 0.0)
    return (low, high) if high > low else (low, low + least)


def _axis(first: float, last: float, width: int, moments: bool) -> str:
    left, right = (_moment(x, last - first) if moments else short(x) for x in (first, last))
    return left if first == last or len(left) + len(right) >= width else left + right.rjust(width - len(left))


def _moment(seconds: float, span: float) -> str:
    at = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)
    return f"{at:%Y-%m-%d}" if span >= 86_400 else f"{at:%H:%M:%S}"


def _legend(lines: Mapping[str, object], width: int) -> list[str]:
    if len(lines) < 2:
        return []
    room = max(4, width // len(lines) - 4)
    names = (f"{_coloured(n, '━━')} {cut(name, room)}" for n, name in enumerate(lines))
    return ["  ".join(names)]


def short(value: float) -> str:
    """A number beside an axis."""
    far = abs(value)
    for unit, letter in _UNITS:
        if far >= unit:
            return f"{value / unit:.4g}{letter}"
    return f"{value:.4g}" if math.isfinite(value) else "?"
