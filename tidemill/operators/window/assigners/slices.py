"""How time is cut: every row lies in one slice, every window is a run of slices.

TUMBLE has one slice a window, HOP slices of the greatest common divisor of slide and size, CUMULATE
slices of a step. A slice is named by its end; times are milliseconds, ends exclusive, before 1970 too.
What is kept of a slice serves all windows that contain it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np

from tidemill.changelog.columns import Ints


class Kind(Enum):
    """The windows of fixed size."""

    TUMBLE = "TUMBLE"
    HOP = "HOP"
    CUMULATE = "CUMULATE"


@dataclass(frozen=True, kw_only=True)
class Windows:
    """``size``, ``slide`` (the slide of HOP, the step of CUMULATE) and ``offset`` in milliseconds."""

    kind: Kind
    size: int
    slide: int = 0
    offset: int = 0

    @cached_property
    def slice_width(self) -> int:
        """Of a slice, but for the last of a CUMULATE whose step does not divide its size."""
        if self.kind is Kind.TUMBLE:
            return self.size
        return math.gcd(self.size, self.slide) if self.kind is Kind.HOP else self.slide

    def slice_ends(self, times: Ints) -> Ints:
        """The end of the slice that each time lies in."""
        if self.kind is not Kind.CUMULATE:
            return _floor(times, self.slice_width, self.offset) + self.slice_width
        starts = _floor(times, self.size, self.offset)
        steps = (times - starts) // self.slide + 1
        return np.minimum(starts + steps * self.slide, starts + self.size)

    def first_ends(self, slices: Ints) -> Ints:
        """The end of the first window that contains the slice."""
        if self.kind is not Kind.HOP:
            return slices
        starts = _floor(slices - self.size + self.slide - 1, self.slide, self.offset)
        return starts + self.size

    def last_ends(self, slices: Ints) -> Ints:
        """The end of the last window that contains the slice."""
        if self.kind is Kind.TUMBLE:
            return slices
        if self.kind is Kind.CUMULATE:
            return _floor(slices - 1, self.size, self.offset) + self.size
        return _floor(slices - self.slice_width, self.slide, self.offset) + self.size

    def starts(self, ends: Ints) -> Ints:
        """The start of the window that ends there."""
        if self.kind is Kind.CUMULATE:
            return _floor(ends - 1, self.size, self.offset)
        return ends - self.size

    def expired(self, upto: int) -> int:
        """No window that ends after ``upto`` has a slice that ends at or before this."""
        if self.kind is Kind.TUMBLE:
            return upto
        if self.kind is Kind.CUMULATE:
            return _at_most(upto, self.size, self.offset)
        return _at_most(upto - self.size, self.slide, self.offset) + self.slide

    def fired(self, upto: Ints) -> Ints:
        """The end of the last window that ends at or before each time."""
        if self.kind is not Kind.CUMULATE:
            return _floor(upto, self.slide or self.size, self.offset + self.size)
        starts = _floor(upto, self.size, self.offset)
        return starts + (upto - starts) // self.slide * self.slide

    def parts(self, ends: Ints) -> tuple[Ints, Ints]:
        """The slices of the windows that end there: the place of the window, and the end of the slice."""
        starts, width = self.starts(ends), self.slice_width
        counts = -(-(ends - starts) // width)
        owners = np.repeat(np.arange(len(ends)), counts)
        steps = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
        return owners, np.minimum(starts[owners] + steps * width, ends[owners])

    def containing(self, slices: Ints, after: Ints, upto: Ints) -> tuple[Ints, Ints]:
        """All windows of each slice whose end lies in (``after``, ``upto``]: row numbers, and ends."""
        first, last = self.first_ends(slices), self.last_ends(slices)
        step = 1 if self.kind is Kind.TUMBLE else self.slide
        # The ends of a slice's windows: first, first + step, ...; a CUMULATE's last may come early.
        skipped = np.maximum(0, -((first - np.maximum(after, first - 1) - 1) // step))
        first = first + skipped * step
        # Also ``upto`` may be before all time, from which nothing can be taken off.
        regular = np.maximum(np.minimum(upto, last), first - step)
        counts = (regular - first) // step + 1
        short = np.zeros(len(slices), np.bool_)
        if self.kind is Kind.CUMULATE:
            short = (first + (counts - 1) * step < last) & (first + counts * step > last)
            short &= (last <= upto) & (last > after)
        rows = np.repeat(np.arange(len(slices)), counts)
        place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        ends = first[rows] + place * step
        extra = np.flatnonzero(short)
        return np.concatenate([rows, extra]), np.concatenate([ends, last[extra]])


@dataclass(frozen=True, kw_only=True)
class CalendarWindows:
    """``inner`` counts in months; ``offset``: by how many milliseconds all ends are later."""

    inner: Windows
    offset: int = 0

    @property
    def kind(self) -> Kind:
        return self.inner.kind

    def slice_ends(self, times: Ints) -> Ints:
        return self._times(self.inner.slice_ends(self._months(times)))

    def first_ends(self, slices: Ints) -> Ints:
        return self._times(self.inner.first_ends(self._months(slices)))

    def last_ends(self, slices: Ints) -> Ints:
        return self._times(self.inner.last_ends(self._months(slices)))

    def starts(self, ends: Ints) -> Ints:
        return self._times(self.inner.starts(self._months(ends)))

    def expired(self, upto: int) -> int:
        return self._time(self.inner.expired(self._month(upto)))

    def fired(self, upto: Ints) -> Ints:
        return self._times(self.inner.fired(self._months(upto)))

    def parts(self, ends: Ints) -> tuple[Ints, Ints]:
        owners, slices = self.inner.parts(self._months(ends))
        return owners, self._times(slices)

    def containing(self, slices: Ints, after: Ints, upto: Ints) -> tuple[Ints, Ints]:
        # The beginning and the end of all time are no months.
        months = self._months(slices)
        after = np.maximum(after, self._times(self.inner.first_ends(months) - 1))
        upto = np.minimum(upto, self._times(self.inner.last_ends(months) + 1))
        rows, ends = self.inner.containing(months, self._months(after), self._months(upto))
        return rows, self._times(ends)

    def _months(self, times: Ints) -> Ints:
        """The month that each time is in, since January 1970."""
        return (times - self.offset).view("datetime64[ms]").astype("datetime64[M]").astype(np.int64)

    def _times(self, months: Ints) -> Ints:
        first: Ints = months.view("datetime64[M]").astype("datetime64[ms]").astype(np.int64)
        return first + self.offset

    def _month(self, time: int) -> int:
        return int(self._months(np.array([time]))[0])

    def _time(self, month: int) -> int:
        return int(self._times(np.array([month]))[0])


@dataclass(frozen=True, kw_only=True)
class StepsOfMonths(Windows):
    """CUMULATE whose windows grow to ``months`` by steps of milliseconds (``slide``)."""

    months: int

    @cached_property
    def _whole(self) -> CalendarWindows:
        return CalendarWindows(inner=Windows(kind=Kind.TUMBLE, size=self.months), offset=self.offset)

    def slice_ends(self, times: Ints) -> Ints:
        ends = self._whole.slice_ends(times)
        starts = self._whole.starts(ends)
        return np.minimum(starts + ((times - starts) // self.slide + 1) * self.slide, ends)

    def last_ends(self, slices: Ints) -> Ints:
        return self._whole.slice_ends(slices - 1)

    def starts(self, ends: Ints) -> Ints:
        return self._whole.starts(self._whole.slice_ends(ends - 1))

    def expired(self, upto: int) -> int:
        ends = self._whole.slice_ends(np.array([upto]))
        return int(self._whole.starts(ends)[0])

    def fired(self, upto: Ints) -> Ints:
        starts = self._whole.starts(self._whole.slice_ends(upto))
        return starts + (upto - starts) // self.slide * self.slide


def _at_most(time: int, width: int, offset: int) -> int:
    return (time - offset) // width * width + offset


def _floor(times: Ints, width: int, offset: int) -> Ints:
    floored: Ints = (times - offset) // width * width + offset
    return floored
