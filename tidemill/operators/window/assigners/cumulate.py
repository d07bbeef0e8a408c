"""CUMULATE: windows that grow by steps (``slide``) up to a size, then begin anew. A slice is a step; the last
of a size is shorter if the steps do not divide it. A size of months has as many steps as its days make."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidemill.changelog.columns import Ints
from tidemill.errors import ValidationError
from tidemill.operators.window.assigners.assigner import (
    comes_early,
    ends_by_step,
    floor,
    floor_one,
    floor_text,
    slices_between,
)
from tidemill.operators.window.assigners.calendar import Calendar, month_text, time_text
from tidemill.operators.window.assigners.kind import WindowKind
from tidemill.operators.window.assigners.tumble import Tumble


@dataclass(frozen=True, kw_only=True)
class Cumulate:
    size: int
    slide: int
    offset: int = 0

    @staticmethod
    def of(size: int, slide: int, offset: int) -> Cumulate:
        if slide > size:
            raise ValidationError(
                "CUMULATE requires a step that is not longer than its size,"
                f" but got step {slide} and size {size}."
            )
        return Cumulate(size=size, slide=slide, offset=offset)

    @property
    def whole(self) -> bool:
        return False

    @property
    def cumulates(self) -> bool:
        return True

    @property
    def on_disk(self) -> str:
        sizes = f"size={self.size}, slide={self.slide}, offset={self.offset}"
        return f"Windows(kind=<Kind.CUMULATE: 'CUMULATE'>, {sizes})"

    def slice_ends(self, times: Ints) -> Ints:
        starts = floor(times, self.size, self.offset)
        steps = (times - starts) // self.slide + 1
        return np.minimum(starts + steps * self.slide, starts + self.size)

    def first_ends(self, slices: Ints) -> Ints:
        return slices

    def last_ends(self, slices: Ints) -> Ints:
        return floor(slices - 1, self.size, self.offset) + self.size

    def starts(self, ends: Ints) -> Ints:
        return floor(ends - 1, self.size, self.offset)

    def expired(self, upto: int) -> int:
        return floor_one(upto, self.size, self.offset)

    def fired(self, upto: Ints) -> Ints:
        starts = floor(upto, self.size, self.offset)
        return starts + (upto - starts) // self.slide * self.slide

    def parts(self, ends: Ints) -> tuple[Ints, Ints]:
        return slices_between(self.starts(ends), ends, self.slide)

    def containing(self, slices: Ints, after: Ints, upto: Ints) -> tuple[Ints, Ints]:
        return growing(slices, self.last_ends(slices), self.slide, after, upto)

    def text(self, time: str) -> str:
        start, count = floor_text(time, self.size, self.offset), -(-self.size // self.slide)
        ends = f"{start} + least(i * {self.slide}L, {self.size}L)"
        open_ends = f"filter(transform(sequence(1L, {count}L), i -> {ends}), e -> e > {time})"
        return f"transform({open_ends}, e -> struct({start} AS s, e AS e))"


@dataclass(frozen=True, kw_only=True)
class CumulateOverMonths:
    """CUMULATE whose windows grow to ``months`` by steps of ``slide``."""

    months: int
    slide: int
    offset: int = 0

    @staticmethod
    def of(size: int, slide: int, offset: int) -> CumulateOverMonths:
        """``size`` in months, the rest in milliseconds."""
        return CumulateOverMonths(months=size, slide=slide, offset=offset)

    @property
    def _sizes(self) -> Calendar:
        return Calendar(inner=Tumble(size=self.months), offset=self.offset)

    @property
    def whole(self) -> bool:
        return False

    @property
    def cumulates(self) -> bool:
        return True

    @property
    def on_disk(self) -> str:
        sizes = f"size=0, slide={self.slide}, offset={self.offset}, months={self.months}"
        return f"StepsOfMonths(kind=<Kind.CUMULATE: 'CUMULATE'>, {sizes})"

    def slice_ends(self, times: Ints) -> Ints:
        ends = self._sizes.slice_ends(times)
        starts = self._sizes.starts(ends)
        return np.minimum(starts + ((times - starts) // self.slide + 1) * self.slide, ends)

    def first_ends(self, slices: Ints) -> Ints:
        return slices

    def last_ends(self, slices: Ints) -> Ints:
        return self._sizes.slice_ends(slices - 1)

    def starts(self, ends: Ints) -> Ints:
        return self._sizes.starts(self._sizes.slice_ends(ends - 1))

    def expired(self, upto: int) -> int:
        return int(self.starts(np.array([upto + 1]))[0])

    def fired(self, upto: Ints) -> Ints:
        starts = self.starts(upto + 1)
        return starts + (upto - starts) // self.slide * self.slide

    def parts(self, ends: Ints) -> tuple[Ints, Ints]:
        return slices_between(self.starts(ends), ends, self.slide)

    def containing(self, slices: Ints, after: Ints, upto: Ints) -> tuple[Ints, Ints]:
        return growing(slices, self.last_ends(slices), self.slide, after, upto)

    def text(self, time: str) -> str:
        start = floor_text(month_text(time, self.offset), self.months, 0)
        first, last = (time_text(month, self.offset) for month in (start, f"{start} + {self.months}L"))
        count = f"CAST(ceil(({last} - {first}) / {self.slide}D) AS BIGINT)"
        ends = f"{first} + least(i * {self.slide}L, {last} - {first})"
        open_ends = f"filter(transform(sequence(1L, {count}), i -> {ends}), e -> e > {time})"
        return f"transform({open_ends}, e -> struct({first} AS s, e AS e))"


def growing(slices: Ints, last: Ints, step: int, after: Ints, upto: Ints) -> tuple[Ints, Ints]:
    """The windows of ``slices`` that end in (``after``, ``upto``]: every step, and the ``last`` end."""
    rows, ends = ends_by_step(slices, last, step, after, upto)
    extra = np.flatnonzero(comes_early(slices, last, step, after, upto))
    return np.concatenate([rows, extra]), np.concatenate([ends, last[extra]])


KIND = WindowKind(
    name="CUMULATE",
    parameters=("STEP", "SIZE", "OFFSET"),
    required=2,
    slide="STEP",
    grouped=("slide", "size", "offset"),
    explained=(("max_size", "size"), ("step", "slide")),
    cumulates=True,
    cut=Cumulate.of,
    cut_months=CumulateOverMonths.of,
)
