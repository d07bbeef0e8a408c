"""Windows by months and years: another assigner's windows, counted in months."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidemill.changelog.columns import Ints
from tidemill.operators.window.assigners.assigner import Assigner


@dataclass(frozen=True, kw_only=True)
class Calendar:
    """``inner`` counts in months since January 1970. All ends are ``offset`` milliseconds later."""

    inner: Assigner
    offset: int = 0

    @property
    def whole(self) -> bool:
        return self.inner.whole

    @property
    def cumulates(self) -> bool:
        return self.inner.cumulates

    @property
    def on_disk(self) -> str:
        return f"CalendarWindows(inner={self.inner.on_disk}, offset={self.offset})"

    def slice_ends(self, times: Ints) -> Ints:
        return self.times(self.inner.slice_ends(self.months(times)))

    def first_ends(self, slices: Ints) -> Ints:
        return self.times(self.inner.first_ends(self.months(slices)))

    def last_ends(self, slices: Ints) -> Ints:
        return self.times(self.inner.last_ends(self.months(slices)))

    def starts(self, ends: Ints) -> Ints:
        return self.times(self.inner.starts(self.months(ends)))

    def expired(self, upto: int) -> int:
        (month,) = self.months(np.array([upto])).tolist()
        return int(self.times(np.array([self.inner.expired(month)]))[0])

    def fired(self, upto: Ints) -> Ints:
        return self.times(self.inner.fired(self.months(upto)))

    def parts(self, ends: Ints) -> tuple[Ints, Ints]:
        owners, slices = self.inner.parts(self.months(ends))
        return owners, self.times(slices)

    def containing(self, slices: Ints, after: Ints, upto: Ints) -> tuple[Ints, Ints]:
        # The bounds NONE and FOREVER are no months.
        months = self.months(slices)
        after = np.maximum(after, self.times(self.inner.first_ends(months) - 1))
        upto = np.minimum(upto, self.times(self.inner.last_ends(months) + 1))
        rows, ends = self.inner.containing(months, self.months(after), self.months(upto))
        return rows, self.times(ends)

    def text(self, time: str) -> str:
        windows = self.inner.text(month_text(time, self.offset))
        start, end = (time_text(f"w.{bound}", self.offset) for bound in "se")
        return f"transform({windows}, w -> struct({start} AS s, {end} AS e))"

    def months(self, times: Ints) -> Ints:
        """The month that each time is in."""
        return (times - self.offset).view("datetime64[ms]").astype("datetime64[M]").astype(np.int64)

    def times(self, months: Ints) -> Ints:
        """The first millisecond of each month."""
        first: Ints = months.view("datetime64[M]").astype("datetime64[ms]").astype(np.int64)
        return first + self.offset


def month_text(time: str, offset: int) -> str:
    """The month, since January 1970, that a time in milliseconds is in; months begin ``offset`` later."""
    date = f"date_from_unix_date(CAST(floor(({time} - {offset}L) / 86400000D) AS INT))"
    return f"CAST((year({date}) - 1970) * 12 + month({date}) - 1 AS BIGINT)"


def time_text(month: str, offset: int) -> str:
    """The first millisecond of a month."""
    date = f"add_months(DATE'1970-01-01', CAST({month} AS INT))"
    return f"(unix_date({date}) * 86400000L + {offset}L)"
