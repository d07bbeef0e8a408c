"""Local times and instants over the nights in which clocks are changed."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.changelog.watermarks import END, NONE
from tidemill.operators.window.clock import Clock

BERLIN = Clock("Europe/Berlin")


def millis(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("local", "instant"),
    [
        ("2024-01-15T12:00:00", "2024-01-15T11:00:00"),
        ("2024-07-15T12:00:00", "2024-07-15T10:00:00"),
        ("2024-03-31T01:59:59.999", "2024-03-31T00:59:59.999"),
        ("2024-03-31T02:30:00", "2024-03-31T01:30:00"),
        ("2024-10-27T01:59:59", "2024-10-26T23:59:59"),
        ("2024-10-27T02:30:00", "2024-10-27T01:30:00"),
        ("2024-10-27T03:00:00", "2024-10-27T02:00:00"),
    ],
)
def test_instants(local: str, instant: str) -> None:
    assert BERLIN.instants(np.array([millis(local)])).tolist() == [millis(instant)]


@pytest.mark.parametrize(
    ("watermark", "local"),
    [
        ("2024-01-15T11:00:00", "2024-01-15T12:00:00"),
        ("2024-10-26T23:59:59", "2024-10-27T01:59:59"),
        ("2024-10-27T00:30:00", "2024-10-27T01:59:59.999"),  # 2:30 comes a second time
        ("2024-10-27T01:30:00", "2024-10-27T02:30:00"),
    ],
)
def test_what_has_come(watermark: str, local: str) -> None:
    assert BERLIN.reached(millis(watermark)) == millis(local)


@pytest.mark.parametrize("watermark", [NONE, END])
def test_the_ends_of_time_have_no_zone(watermark: int) -> None:
    assert BERLIN.reached(watermark) == watermark == Clock().reached(watermark)


@given(
    night=st.sampled_from(["2024-03-31T01:00:00", "2024-10-27T01:00:00", "2024-07-01T00:00:00"]),
    offsets=st.lists(st.integers(-5_400_000, 5_400_000), max_size=8),
)
def test_many_watermarks_reach_what_each_does(night: str, offsets: list[int]) -> None:
    marks = [millis(night) + offset for offset in offsets] + [NONE, END, millis(night)]
    assert BERLIN.all_reached(np.array(marks)).tolist() == [BERLIN.reached(mark) for mark in marks]


@given(
    night=st.sampled_from(["2024-03-31T01:00:00", "2024-10-27T01:00:00", "1893-04-01T00:00:00"]),
    offsets=st.lists(st.integers(-5_400_000, 5_400_000), max_size=8),
)
def test_many_instants_are_shown_as_each_is(night: str, offsets: list[int]) -> None:
    instants = np.array([millis(night) + offset for offset in offsets], np.int64)
    assert BERLIN.all_local(instants).tolist() == [BERLIN.local(t) for t in instants.tolist()]
