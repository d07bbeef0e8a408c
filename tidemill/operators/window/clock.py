"""Conversion between local wall time, which cuts windows, and instants, which are watermarks.

A time column without zone is its own clock. For TIMESTAMP_LTZ the wall clock is the session's zone, so a day
may have 23 or 25 hours. As in Flink, a local time in the repeated hour is reached the second time; a local
time in the skipped hour is reached when the clock is put forward."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import numpy as np

from tidemill.changelog.columns import Ints
from tidemill.changelog.watermarks import END, NONE

_EPOCH = dt.datetime(1970, 1, 1)
_MILLISECOND = dt.timedelta(milliseconds=1)
_DAY = 86_400_000
_QUARTER = 900_000
_LAST = int((dt.datetime(9999, 12, 30) - _EPOCH) / _MILLISECOND)
_FIRST = int((dt.datetime(1, 1, 3) - _EPOCH) / _MILLISECOND)


@dataclass(frozen=True, slots=True)
class Clock:
    """``zone``: the name of a time zone; '' if local times are the instants."""

    zone: str = ""

    def instants(self, times: Ints) -> Ints:
        """The instant at which each local time has come, in ms. Cost: one conversion per distinct time."""
        if not self.zone:
            return times
        distinct, places = np.unique(times, return_inverse=True)
        zone = ZoneInfo(self.zone)
        return np.array([_instant(t, zone) for t in distinct.tolist()], np.int64)[places.reshape(-1)]

    def local(self, instant: int) -> int:
        """What the clock shows at ``instant``."""
        if not self.zone or not _FIRST <= instant <= _LAST:
            return instant
        moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + instant * _MILLISECOND
        shift = moment.astimezone(ZoneInfo(self.zone)).utcoffset()
        return instant + (shift or dt.timedelta()) // _MILLISECOND

    def all_local(self, instants: Ints) -> Ints:
        """``local`` of each. Cost: two conversions per quarter of an hour that has any."""
        if not self.zone or len(instants) == 0:
            return instants
        starts, places = np.unique(instants // _QUARTER * _QUARTER, return_inverse=True)
        first, last = (
            np.array([self.local(t) - t for t in (starts + shift).tolist()], np.int64)
            for shift in (0, _QUARTER - 1)
        )
        places = places.reshape(-1)
        result: Ints = instants + first[places]
        changing = (first != last)[places]
        result[changing] = [self.local(t) for t in instants[changing].tolist()]
        return result

    def reached(self, watermark: int) -> int:
        """The last local time that is reached at ``watermark``."""
        if not self.zone or not _FIRST <= watermark <= _LAST:
            return min(max(watermark, NONE), END)
        zone = ZoneInfo(self.zone)
        low, high = watermark - _DAY, watermark + _DAY
        while low < high:
            middle = (low + high + 1) // 2
            if _instant(middle, zone) <= watermark:
                low = middle
            else:
                high = middle - 1
        return low

    def all_reached(self, watermarks: Ints) -> Ints:
        """``reached`` of each. Cost: two conversions per quarter of an hour that has any."""
        if not self.zone or len(watermarks) == 0:
            return watermarks
        result = watermarks.copy()
        quarters = watermarks // _QUARTER * _QUARTER
        starts, places = np.unique(quarters, return_inverse=True)
        shifts = [self._shift(start) for start in starts.tolist()]
        steady = np.array([shift is not None for shift in shifts])[places.reshape(-1)]
        result[steady] += np.array([shift or 0 for shift in shifts], np.int64)[places.reshape(-1)][steady]
        result[~steady] = [self.reached(mark) for mark in watermarks[~steady].tolist()]
        return result

    def ended(self, watermark: int) -> int:
        """Windows that end at or before this have fired: their last millisecond has come."""
        reached = self.reached(watermark)
        return reached if reached in (NONE, END) else reached + 1

    def _shift(self, quarter: int) -> int | None:
        """The offset of the wall clock from ``quarter`` to the next; None if it changes in between."""
        if not _FIRST <= quarter <= _LAST:
            return None
        last = quarter + _QUARTER - 1
        first = self.reached(quarter) - quarter
        return first if self.reached(last) - last == first else None


INSTANTS = Clock()
"""Times that are instants themselves."""


def _instant(time: int, zone: ZoneInfo) -> int:
    if not _FIRST <= time <= _LAST:
        return time
    local = _EPOCH + time * _MILLISECOND
    offsets = (local.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
    return max(time - (offset or dt.timedelta()) // _MILLISECOND for offset in offsets)
