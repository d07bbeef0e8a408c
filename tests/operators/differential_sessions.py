"""Which rows make a session, against the definition: row by row, a list of open sessions per key."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from tidemill.operators.window.assigners.session import Sessions, merge
from tidemill.operators.window.assigners.spans import LATE, Spans

_GAP = 5
Row = tuple[int, int, int]
"""Key, time, and the watermark before it."""


@st.composite
def arrivals(draw: st.DrawFn) -> list[Row]:
    """Rows whose watermark only rises; many are behind it."""
    delay = draw(st.sampled_from([0, 1, 3, 8, 30]))
    rows, mark, now = [], -100, 0
    for _ in range(draw(st.integers(0, 25))):
        now += draw(st.integers(-3, 6))
        time = now - draw(st.sampled_from([0, 0, 0, 1, 4, 5, 6, 12]))
        rows.append((draw(st.integers(0, 1)), time, mark))
        mark = max(mark, time - delay)
    return rows


def naive(rows: list[Row]) -> dict[tuple[int, int, int], list[int]]:
    """(key, start, end) of every session -> the rows in it."""
    open_: dict[int, list[tuple[int, int, list[int]]]] = {}
    done: dict[tuple[int, int, int], list[int]] = {}
    for number, (key, time, mark) in enumerate(rows):
        sessions = open_.setdefault(key, [])
        for session in [s for s in sessions if s[1] - 1 <= mark]:
            sessions.remove(session)
            done[key, session[0], session[1]] = session[2]
        met = [s for s in sessions if s[0] <= time + _GAP and s[1] >= time]
        start = min([time, *(s[0] for s in met)])
        end = max([time + _GAP, *(s[1] for s in met)])
        if end - 1 <= mark:
            continue
        for session in met:
            sessions.remove(session)
        sessions.append((start, end, sorted([number, *(i for s in met for i in s[2])])))
    done.update({(key, s, e): rows for key, sessions in open_.items() for s, e, rows in sessions})
    return done


def merged(rows: list[Row], open_: list[tuple[int, int, int]]) -> Sessions:
    columns = [np.array(c, np.int64) for c in zip(*rows, strict=True)] or [np.zeros(0, np.int64)] * 3
    keys, times, marks = columns
    stored = [np.array(c, np.int64) for c in zip(*open_, strict=True)] or [np.zeros(0, np.int64)] * 3
    return merge(
        Spans(
            keys=np.concatenate([stored[0], keys]),
            starts=np.concatenate([stored[1], times]),
            ends=np.concatenate([stored[2], times + _GAP]),
            marks=np.concatenate([np.full(len(open_), -(10**6)), marks]),
            stored=len(open_),
        )
    )


@settings(max_examples=examples(500), deadline=None)
@given(rows=arrivals())
def test_rows_in_one_go_make_the_sessions_of_the_definition(rows: list[Row]) -> None:
    found = merged(rows, [])
    shown: dict[tuple[int, int, int], list[int]] = {}
    for number, session in enumerate(found.of.tolist()):
        if session != LATE:
            bounds = found.keys[session], found.starts[session], found.ends[session]
            shown.setdefault((int(bounds[0]), int(bounds[1]), int(bounds[2])), []).append(number)
    assert shown == naive(rows)


@settings(max_examples=examples(500), deadline=None)
@given(rows=arrivals(), cuts=st.lists(st.integers(0, 25), max_size=4))
def test_sessions_are_the_same_wherever_the_rows_are_cut(rows: list[Row], cuts: list[int]) -> None:
    open_: dict[tuple[int, int, int], int] = {}
    done: dict[tuple[int, int, int], int] = {}
    bounds = [0, *sorted(c for c in cuts if c <= len(rows)), len(rows)]
    for first, last in pairwise(bounds):
        reached = rows[last][2] if last < len(rows) else 10**9
        part = rows[first:last]
        found = merged(part, list(open_))
        counts = dict(enumerate(open_.values()))
        seen: dict[tuple[int, int, int], int] = {}
        for item, session in enumerate(found.of.tolist()):
            if session == LATE:
                continue
            key = int(found.keys[session]), int(found.starts[session]), int(found.ends[session])
            seen[key] = seen.get(key, 0) + counts.get(item, 1)
        open_ = {s: c for s, c in seen.items() if s[2] - 1 > reached}
        done.update({s: c for s, c in seen.items() if s[2] - 1 <= reached})
    assert done == {session: len(members) for session, members in naive(rows).items()}


@pytest.mark.parametrize(
    ("rows", "sessions"),
    [
        ([(0, 0, -9), (0, 5, -9)], {(0, 0, 10): [0, 1]}),
        ([(0, 0, -9), (0, 6, -9)], {(0, 0, 5): [0], (0, 6, 11): [1]}),
        ([(0, 0, -9), (0, 10, -9), (0, 5, -9)], {(0, 0, 15): [0, 1, 2]}),
        ([(0, 0, -9), (0, 5, 4)], {(0, 0, 5): [0], (0, 5, 10): [1]}),
        ([(0, 4, -9), (0, 1, 6)], {(0, 1, 9): [0, 1]}),
        ([(0, 9, 6), (0, 1, 6)], {(0, 9, 14): [0]}),
    ],
    ids=["one gap apart", "more than a gap", "bridged", "gone before", "late but met", "late"],
)
def test_the_definition_says(rows: list[Row], sessions: dict[tuple[int, int, int], list[int]]) -> None:
    assert naive(rows) == sessions
