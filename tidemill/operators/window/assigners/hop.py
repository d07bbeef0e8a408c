"""HOP: windows of one size, of which one begins at every slide. Slices have the greatest common divisor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from tidemill.changelog.columns import Ints
from tidemill.operators.window.assigners.assigner import (
    ends_by_step,
    floor,
    floor_one,
    floor_text,
    slices_between,
)
from tidemill.operators.window.assigners.kind import WindowKind


@dataclass(frozen=True, kw_only=True)
class Hop:
    size: int
    slide: int
    offset: int = 0

    @staticmethod
    def of(size: int, slide: int, offset: int) -> Hop:
        return Hop(size=size, slide=slide, offset=offset)

    @property
    def whole(self) -> bool:
        return False

    @property
    def cumulates(self) -> bool:
        return False

    @property
    def on_disk(self) -> str:
        sizes = f"size={self.size}, slide={self.slide}, offset={self.offset}"
        return f"Windows(kind=<Kind.HOP: 'HOP'>, {sizes})"

    @cached_property
    def slice_width(self) -> int:
        return math.gcd(self.size, self.slide)

    def slice_ends(self, times: Ints) -> Ints:
        return floor(times, self.slice_width, self.offset) + self.slice_width

    def first_ends(self, slices: Ints) -> Ints:
        return floor(slices - self.size + self.slide - 1, self.slide, self.offset) + self.size

    def last_ends(self, slices: Ints) -> Ints:
        return floor(slices - self.slice_width, self.slide, self.offset) + self.size

    def starts(self, ends: Ints) -> Ints:
        return ends - self.size

    def expired(self, upto: int) -> int:
        return floor_one(upto - self.size, self.slide, self.offset) + self.slide

    def fired(self, upto: Ints) -> Ints:
        return floor(upto, self.slide, self.offset + self.size)

    def parts(self, ends: Ints) -> tuple[Ints, Ints]:
        return slices_between(self.starts(ends), ends, self.slice_width)

    def containing(self, slices: Ints, after: Ints, upto: Ints) -> tuple[Ints, Ints]:
        return ends_by_step(self.first_ends(slices), self.last_ends(slices), self.slide, after, upto)

    def text(self, time: str) -> str:
        last, count = floor_text(time, self.slide, self.offset), -(-self.size // self.slide)
        starts = f"transform(sequence(0L, {count - 1}L), i -> {last} - i * {self.slide}L)"
        open_starts = f"filter({starts}, s -> s > {time} - {self.size}L)"
        return f"transform({open_starts}, s -> struct(s AS s, s + {self.size}L AS e))"


KIND = WindowKind(
    name="HOP",
    parameters=("SLIDE", "SIZE", "OFFSET"),
    required=2,
    slide="SLIDE",
    grouped=("slide", "size", "offset"),
    explained=(("size", "size"), ("slide", "slide")),
    cut=Hop.of,
)
