"""The interface of assigners by the clock, which cut time into slices and windows.

Every row is in one slice, and every window is a run of slices. The content of a slice serves all windows that
contain it. Slices and windows are named by their ends. Times are milliseconds and may be before 1970; ends
are exclusive. For TUMBLE(10) and HOP(5, 10) the time 12 gives::

    slice_ends   20            15
    windows      [10, 20)      [5, 15), [10, 20)
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tidemill.changelog.columns import Ints, Mask


class Assigner(Protocol):
    """The windows of one window function."""

    @property
    def whole(self) -> bool:
        """Whether every slice is a window."""
        ...

    @property
    def cumulates(self) -> bool:
        """Whether several windows have one start: each holds what the one before it does."""
        ...

    @property
    def on_disk(self) -> str:
        """How the fingerprints of state name it: the class and all fields. It never changes, because
        savepoints have it. So older assigners keep the names of classes that are gone."""
        ...

    def slice_ends(self, times: Ints) -> Ints:
        """The end of the slice that each time lies in."""
        ...

    def first_ends(self, slices: Ints) -> Ints:
        """The end of the first window that contains the slice."""
        ...

    def last_ends(self, slices: Ints) -> Ints:
        """The end of the last window that contains the slice."""
        ...

    def starts(self, ends: Ints) -> Ints:
        """The start of the window that ends there."""
        ...

    def expired(self, upto: int) -> int:
        """No window that ends after ``upto`` has a slice that ends at or before this."""
        ...

    def fired(self, upto: Ints) -> Ints:
        """The end of the last window that ends at or before each time."""
        ...

    def parts(self, ends: Ints) -> tuple[Ints, Ints]:
        """The slices of the windows that end there: the place of the window, and the end of the slice."""
        ...

    def containing(self, slices: Ints, after: Ints, upto: Ints) -> tuple[Ints, Ints]:
        """All windows of each slice whose end lies in (``after``, ``upto``]: row numbers, and ends."""
        ...

    def text(self, time: str) -> str:
        """Spark SQL: an array with the start and the end, as ``s`` and ``e``, of every window that ``time``
        lies in. ``time`` is an expression; all times are milliseconds."""
        ...


def floor(times: Ints, width: int, offset: int) -> Ints:
    floored: Ints = (times - offset) // width * width + offset
    return floored


def floor_one(time: int, width: int, offset: int) -> int:
    return (time - offset) // width * width + offset


def floor_text(time: str, width: int, offset: int) -> str:
    return f"({time} - pmod({time} - {offset}L, {width}L))"


def slices_between(starts: Ints, ends: Ints, width: int) -> tuple[Ints, Ints]:
    """The slices of windows, all of ``width``, but the last slice of a window may be shorter. Gives for each
    slice the place of its window, and the end of the slice."""
    counts = -(-(ends - starts) // width)
    owners = np.repeat(np.arange(len(ends)), counts)
    steps = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
    return owners, np.minimum(starts[owners] + steps * width, ends[owners])


def ends_by_step(first: Ints, last: Ints, step: int, after: Ints, upto: Ints) -> tuple[Ints, Ints]:
    """For each row the ends ``first``, ``first + step``, ... up to ``last`` that lie in (``after``,
    ``upto``]. Gives row numbers and ends."""
    first = _skipped(first, step, after)
    counts = _counts(first, last, step, upto)
    rows = np.repeat(np.arange(len(first)), counts)
    step_number = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rows, first[rows] + step_number * step


def comes_early(first: Ints, last: Ints, step: int, after: Ints, upto: Ints) -> Mask:
    """For which rows ``last`` lies in (``after``, ``upto``] but is not an end that ``ends_by_step`` gives."""
    first = _skipped(first, step, after)
    counts = _counts(first, last, step, upto)
    between = (first + (counts - 1) * step < last) & (first + counts * step > last)
    early: Mask = between & (last <= upto) & (last > after)
    return early


def _skipped(first: Ints, step: int, after: Ints) -> Ints:
    skipped: Ints = np.maximum(0, -((first - np.maximum(after, first - 1) - 1) // step))
    return first + skipped * step


def _counts(first: Ints, last: Ints, step: int, upto: Ints) -> Ints:
    # ``upto`` may be before all time, from which nothing can be taken off.
    regular = np.maximum(np.minimum(upto, last), first - step)
    counts: Ints = (regular - first) // step + 1
    return counts
