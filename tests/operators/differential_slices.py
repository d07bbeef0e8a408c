"""Slices and windows against their definition, written out one time at a time."""

from __future__ import annotations

import datetime as dt
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tidemill.changelog.watermarks import END, NONE
from tidemill.operators.window.assigners.attached import AttachedWindows
from tidemill.operators.window.assigners.calendar import Calendar
from tidemill.operators.window.assigners.cumulate import Cumulate, CumulateOverMonths
from tidemill.operators.window.assigners.hop import Hop
from tidemill.operators.window.assigners.tumble import Tumble

Sliced = Tumble | Hop | Cumulate
_SHAPES: list[Sliced] = [
    Tumble(size=10),
    Tumble(size=10, offset=-3),
    Hop(size=10, slide=5),
    Hop(size=10, slide=7, offset=2),
    Hop(size=5, slide=8),
    Cumulate(size=12, slide=4, offset=1),
    Cumulate(size=10, slide=4),
]


def windows_of(shape: Sliced, time: int) -> list[tuple[int, int]]:
    """All windows (start, end) that contain ``time``."""
    if isinstance(shape, Cumulate):
        start = (time - shape.offset) // shape.size * shape.size + shape.offset
        steps = -(-shape.size // shape.slide)
        ends = [min(start + k * shape.slide, start + shape.size) for k in range(1, steps + 1)]
        return [(start, end) for end in ends if time < end]
    slide = shape.slide if isinstance(shape, Hop) else shape.size
    first = (time - shape.offset) // slide * slide + shape.offset
    starts = range(first, time - shape.size, -slide)
    return sorted((s, s + shape.size) for s in starts)


@pytest.mark.parametrize("shape", _SHAPES, ids=repr)
@given(time=st.integers(-100, 100), after=st.integers(-60, 60), span=st.integers(0, 60))
def test_a_slice_has_the_windows_of_its_rows(shape: Sliced, time: int, after: int, span: int) -> None:
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
def test_rows_of_a_slice_are_in_the_same_windows(shape: Sliced, time: int) -> None:
    """The slice's end less one is in the slice, and in the same windows."""
    (end,) = shape.slice_ends(np.array([time], np.int64)).tolist()
    assert time < end
    assert windows_of(shape, end - 1) == windows_of(shape, time)
    assert shape.slice_ends(np.array([end - 1])).tolist() == [end]


@pytest.mark.parametrize("shape", _SHAPES, ids=repr)
@given(time=st.integers(-100, 100))
def test_a_window_is_its_slices(shape: Sliced, time: int) -> None:
    """And ``fired`` is the last end up to a time."""
    for start, end in windows_of(shape, time):
        owners, slices = shape.parts(np.array([end]))
        assert slices.tolist() == np.unique(shape.slice_ends(np.arange(start, end))).tolist()
        assert not owners.any()
    ended = [end for t in range(time - 40, time) for _, end in windows_of(shape, t) if end <= time]
    assert shape.fired(np.array([time])).tolist() == [max(ended)]


@pytest.mark.parametrize("shape", _SHAPES, ids=repr)
@given(upto=st.integers(-100, 100))
def test_slices_expire_with_their_last_window(shape: Sliced, upto: int) -> None:
    gone = shape.expired(upto)
    for time in range(gone - 3 * shape.size, gone):
        (end,) = shape.slice_ends(np.array([time])).tolist()
        assert end > gone or all(e <= upto for _, e in windows_of(shape, time))


@pytest.mark.parametrize("shape", _SHAPES, ids=repr)
def test_properties_are_true_of_all_windows(shape: Sliced) -> None:
    windows = {window for time in range(-60, 60) for window in windows_of(shape, time)}
    starts = [start for start, _ in windows]
    assert shape.cumulates == (len(set(starts)) < len(starts))
    if shape.whole:
        slices = shape.slice_ends(np.arange(-60, 60))
        assert [windows_of(shape, end - 1)[0][1] for end in slices.tolist()] == slices.tolist()


@pytest.mark.parametrize("shape", _SHAPES, ids=repr)
@given(times=st.lists(st.none() | st.integers(-100_999, 100_999), max_size=8))
def test_rows_get_a_row_for_every_window(shape: Sliced, times: list[int | None]) -> None:
    """Times are in microseconds, and may be missing."""
    stamp = pa.timestamp("us")
    batch = pa.record_batch({"v": pa.array(range(len(times))), "t": pa.array(times, pa.int64()).cast(stamp)})
    attached = AttachedWindows(windows=shape, rowtime=stamp)
    rows = [
        tuple(column.cast(pa.int64())[place].as_py() for column in part.columns)
        for part in attached.attached([batch], 1)
        for place in range(part.num_rows)
    ]
    wanted = [
        (place, time, start * 1000, end * 1000, (end - 1) * 1000)
        for place, time in enumerate(times)
        if time is not None
        for start, end in windows_of(shape, time // 1000)
    ]
    assert sorted(rows) == sorted(wanted)
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)


_DAY = 86_400_000
Months = Calendar | CumulateOverMonths
_MONTHS: dict[str, Months] = {
    "quarters": Calendar(inner=Tumble(size=3)),
    "months that begin on the fifth": Calendar(inner=Tumble(size=1), offset=4 * _DAY),
    "years by quarters": Calendar(inner=Hop(size=12, slide=3)),
    "fiscal years so far": Calendar(inner=Cumulate(size=12, slide=5, offset=3)),
    "months so far": CumulateOverMonths(months=1, slide=7 * _DAY, offset=_DAY // 2),
}


def months_since_1970(count: int) -> int:
    """The first of a month, in ms."""
    first = dt.datetime(1970 + count // 12, count % 12 + 1, 1)
    return (first - dt.datetime(1970, 1, 1)) // dt.timedelta(milliseconds=1)


@cache
def _every_window(shape: Months) -> list[tuple[int, int]]:
    """The windows of fifteen years, by going through the months."""
    every = range(-90, 90)
    if isinstance(shape, CumulateOverMonths):
        bounds = [tuple(months_since_1970(m) + shape.offset for m in (m, m + 1)) for m in every]
        return [
            (low, end) for low, high in bounds for end in [*range(low + shape.slide, high, shape.slide), high]
        ]
    assert isinstance(shape.inner, Sliced)
    spans = {w for m in every for w in windows_of(shape.inner, m)}
    return [(months_since_1970(a) + shape.offset, months_since_1970(b) + shape.offset) for a, b in spans]


def calendar_windows_of(shape: Months, time: int) -> list[tuple[int, int]]:
    """All windows that contain ``time``."""
    return sorted((s, e) for s, e in _every_window(shape) if s <= time < e)


@pytest.mark.parametrize("name", _MONTHS)
@settings(deadline=None)
@given(
    time=st.integers(-700 * _DAY, 700 * _DAY),
    after=st.integers(-900 * _DAY, 900 * _DAY),
    span=st.integers(0, 500 * _DAY),
)
def test_windows_of_months(name: str, time: int, after: int, span: int) -> None:
    shape = _MONTHS[name]
    slices = shape.slice_ends(np.array([time], np.int64))
    wanted = calendar_windows_of(shape, time)
    (end,) = slices.tolist()
    assert time < end
    assert calendar_windows_of(shape, end - 1) == wanted
    rows, ends = shape.containing(slices, np.array([after]), np.array([after + span]))
    assert sorted(ends.tolist()) == [e for _, e in wanted if after < e <= after + span]
    assert not rows.any()
    assert shape.first_ends(slices).tolist() == [wanted[0][1]]
    assert shape.last_ends(slices).tolist() == [wanted[-1][1]]
    _, every = shape.containing(slices, np.array([NONE]), np.array([END]))
    every = np.sort(every)
    assert sorted(zip(shape.starts(every).tolist(), every.tolist(), strict=True)) == wanted
    shown = [e for _, e in _every_window(shape) if e <= after]
    assert shape.fired(np.array([after])).tolist() == [max(shown)]
    gone = shape.expired(after)
    assert after - 800 * _DAY < gone <= after
    for place in range(gone - 60 * _DAY, gone, 3 * _DAY):
        (end,) = shape.slice_ends(np.array([place])).tolist()
        assert end > gone or all(e <= after for _, e in calendar_windows_of(shape, place))


def test_spark_gives_the_same_windows(spark: SparkSession) -> None:
    texts = [f"{shape.text('id')} AS w{place}" for place, shape in enumerate(_SHAPES)]
    for time, *windows in spark.range(-60, 60, 1, 1).selectExpr("id", *texts).collect():
        assert [sorted(map(tuple, of)) for of in windows] == [windows_of(shape, time) for shape in _SHAPES]
