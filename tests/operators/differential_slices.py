"""Slices and windows against their definition, written out one time at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.operators.window.slices import Kind, Windows

_SHAPES = [
    Windows(kind=Kind.TUMBLE, size=10),
    Windows(kind=Kind.TUMBLE, size=10, offset=-3),
    Windows(kind=Kind.HOP, size=10, slide=5),
    Windows(kind=Kind.HOP, size=10, slide=7, offset=2),
    Windows(kind=Kind.HOP, size=5, slide=8),
    Windows(kind=Kind.CUMULATE, size=12, slide=4, offset=1),
    Windows(kind=Kind.CUMULATE, size=10, slide=4),
]


def windows_of(shape: Windows, time: int) -> list[tuple[int, int]]:
    """All windows (start, end) that contain ``time``."""
    if shape.kind is Kind.CUMULATE:
        start = (time - shape.offset) // shape.size * shape.size + shape.offset
        steps = -(-shape.size // shape.slide)
        ends = [min(start + k * shape.slide, start + shape.size) for k in range(1, steps + 1)]
        return [(start, end) for end in ends if time < end]
    slide = shape.slide if shape.kind is Kind.HOP else shape.size
    first = (time - shape.offset) // slide * slide + shape.offset
    starts = range(first, time - shape.size, -slide)
    return sorted((s, s + shape.size) for s in starts)


@pytest.mark.parametrize("shape", _SHAPES, ids=repr)
@given(time=st.integers(-100, 100), after=st.integers(-60, 60), span=st.integers(0, 60))
def test_a_slice_has_the_windows_of_its_rows(shape: Windows, time: int, after: int, span: int) -> None:
    slices = shape.slice_ends(np.array([time], np.int64))
    wanted = windows_of(shape, time)
    bounds = np.array([after]), np.array([after + span])
    rows, ends = shape.containing(slices, *bounds)
    assert sorted(ends.tolist()) == [e for _, e in wanted if after < e <= after + span]
    assert not rows.any()
    if wanted:
        assert shape.first_ends(slices).tolist() == [wanted[0][1]]
        assert shape.last_ends(slices).tolist() == [wanted[-1][1]]
        _, every = shape.containing(slices, np.array([-(10**6)]), np.array([10**6]))
        assert (
            sorted(zip(shape.starts(np.sort(every)).tolist(), np.sort(every).tolist(), strict=True)) == wanted
        )


@pytest.mark.parametrize("shape", _SHAPES, ids=repr)
@given(time=st.integers(-100, 100))
def test_rows_of_a_slice_are_in_the_same_windows(shape: Windows, time: int) -> None:
    """The slice's end less one is in the slice, and in the same windows."""
    (end,) = shape.slice_ends(np.array([time], np.int64)).tolist()
    assert time < end
    assert windows_of(shape, end - 1) == windows_of(shape, time)
    assert shape.slice_ends(np.array([end - 1])).tolist() == [end]
