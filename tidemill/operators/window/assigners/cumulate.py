"""CUMULATE: windows that grow by steps (``slide``) up to a size, then begin anew. A slice is a step; the last
of a size is shorter if the steps do not divide it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidemill.changelog.columns import Ints
from tidemill.operators.window.assigners.assigner import (
    comes_early,
    every,
    floor,
    floor_one,
    floor_text,
    slices_between,
)


@dataclass(frozen=True, kw_only=True)
class Cumulate:
    size: int
    slide: int
    offset: int = 0

    @staticmethod
    def of(size: int, slide: int, offset: int) -> Cumulate:
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
        found = f"filter(transform(sequence(1L, {count}L), i -> {ends}), e -> e > {time})"
        return f"transform({found}, e -> struct({start} AS s, e AS e))"


def growing(slices: Ints, last: Ints, step: int, after: Ints, upto: Ints) -> tuple[Ints, Ints]:
    """The windows of ``slices`` that end in (``after``, ``upto``]: every step, and the ``last`` end."""
    rows, ends = every(slices, last, step, after, upto)
    extra = np.flatnonzero(comes_early(slices, last, step, after, upto))
    return np.concatenate([rows, extra]), np.concatenate([ends, last[extra]])
