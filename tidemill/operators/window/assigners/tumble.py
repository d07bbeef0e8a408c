"""TUMBLE: windows of one size, one after the other. Every window is one slice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidemill.changelog.columns import Ints
from tidemill.operators.window.assigners.assigner import ends_by_step, floor, floor_text
from tidemill.operators.window.assigners.kind import WindowKind


@dataclass(frozen=True, kw_only=True)
class Tumble:
    size: int
    offset: int = 0

    @staticmethod
    def of(size: int, slide: int, offset: int) -> Tumble:
        return Tumble(size=size, offset=offset)

    @property
    def whole(self) -> bool:
        return True

    @property
    def cumulates(self) -> bool:
        return False

    @property
    def on_disk(self) -> str:
        return f"Windows(kind=<Kind.TUMBLE: 'TUMBLE'>, size={self.size}, slide=0, offset={self.offset})"

    def slice_ends(self, times: Ints) -> Ints:
        return floor(times, self.size, self.offset) + self.size

    def first_ends(self, slices: Ints) -> Ints:
        return slices

    def last_ends(self, slices: Ints) -> Ints:
        return slices

    def starts(self, ends: Ints) -> Ints:
        return ends - self.size

    def expired(self, upto: int) -> int:
        return upto

    def fired(self, upto: Ints) -> Ints:
        return floor(upto, self.size, self.offset)

    def parts(self, ends: Ints) -> tuple[Ints, Ints]:
        return np.arange(len(ends)), ends

    def containing(self, slices: Ints, after: Ints, upto: Ints) -> tuple[Ints, Ints]:
        return ends_by_step(slices, slices, 1, after, upto)

    def text(self, time: str) -> str:
        start = floor_text(time, self.size, self.offset)
        return f"transform(array({start}), s -> struct(s AS s, s + {self.size}L AS e))"


KIND = WindowKind(
    name="TUMBLE",
    parameters=("SIZE", "OFFSET"),
    required=1,
    grouped=("size", "offset"),
    explained=(("size", "size"),),
    cut=Tumble.of,
)
