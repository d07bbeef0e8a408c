"""DYNAMIC_CUMULATE over rows that are taken back, against a dict of lists, wherever epochs are cut.

If no row is late, also against a dict of lists that never had the rows that were taken back."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.operators.differential_dynamic_aggregate import (
    CALLS,
    STEP,
    Naive,
    Row,
    Window,
    arrivals,
    parts_of,
    shown_of,
)
from tests.tiers import examples
from tidemill.changelog.watermarks import NONE, Running
from tidemill.operators.window.retractable_dynamic import RetractableDynamicSpec

RETRACTING = [name for name, (_, _, retracts) in CALLS.items() if retracts]
LONG = 1000


class Remaining(Naive):
    """A row that is taken back leaves its window, which may fall apart."""

    def add(self, row: Row) -> None:
        if row.weight > 0:
            super().add(row)
            return
        windows = self.open.get(row.key, [])
        of = next((w for w in windows if any(r.time == row.time for r in w.rows)), None)
        if of is None:
            self.late += 1
            return
        windows.remove(of)
        left = list(of.rows)
        # If its own window has ended, another row of its time goes in its place: one entry holds both.
        assume(replace(row, weight=1) in left)
        left.remove(replace(row, weight=1))
        windows.extend(Window(part) for part in _parts(sorted(left, key=lambda r: r.time), self.gap))


def _parts(rows: list[Row], gap: int) -> list[list[Row]]:
    cuts = [i for i, (a, b) in enumerate(pairwise(rows), 1) if b.time - a.time > gap]
    return [part for first, behind in pairwise([0, *cuts, len(rows)]) if (part := rows[first:behind])]


def changes_of(rows: list[Row], gone: list[tuple[int, int]], spec: RetractableDynamicSpec) -> list[Row]:
    """``rows``, some taken back: the number of the row, and how many rows later."""
    if not spec.keys:
        rows = [Row(None, r.time, r.value) for r in rows]
    goes = dict(gone)
    came = [(float(i), r) for i, r in enumerate(rows)]
    came += [(i + goes[i] + 0.5, replace(r, weight=-1)) for i, r in enumerate(rows) if i in goes]
    return [r for _, r in sorted(came, key=lambda pair: pair[0])]


GONE = st.lists(st.tuples(st.integers(0, 29), st.integers(0, 12)), max_size=8)
CUTS = st.lists(st.integers(0, 40), max_size=5)


# The bound of the window was that of the row that was taken back.
@example(came=([Row("a", 0, 1), Row("a", 9, 1), Row("a", 1, 2)], LONG), cuts=[1, 3], gone=[(1, 1)])
@pytest.mark.parametrize("calls", RETRACTING)
@pytest.mark.parametrize("gap", [3, 10, 12])
@settings(max_examples=examples(40), deadline=None)
@given(came=arrivals(), cuts=CUTS, gone=GONE)
def test_as_a_dict_of_lists(
    calls: str, gap: int, came: tuple[list[Row], int], cuts: list[int], gone: list[tuple[int, int]]
) -> None:
    came_rows, delay = came
    spec = spec_of(calls, gap)
    rows = changes_of(came_rows, gone, spec)
    marks = Running().before(np.array([r.time - delay for r in rows], np.int64)).tolist()
    naive = Remaining(gap, CALLS[calls][0])
    for row, mark in zip(rows, marks, strict=True):
        if mark != NONE:
            naive.pass_to(mark)
        naive.add(row)
    naive.end_with(rows)
    shown, late = shown_of(rows, marks, delay, cuts, spec)
    assert shown == naive.shown
    assert late == naive.late


@pytest.mark.parametrize("calls", RETRACTING)
@pytest.mark.parametrize("gap", [3, 10, 12])
@settings(max_examples=examples(20), deadline=None)
@given(came=arrivals(), cuts=CUTS, gone=GONE)
def test_rows_taken_back_in_time_leave_no_trace(
    calls: str, gap: int, came: tuple[list[Row], int], cuts: list[int], gone: list[tuple[int, int]]
) -> None:
    """The watermark is behind all rows until the input ends: as in batch."""
    spec = spec_of(calls, gap)
    rows = changes_of(came[0], gone, spec)
    marks = Running().before(np.array([r.time - LONG for r in rows], np.int64)).tolist()
    naive = Remaining(gap, CALLS[calls][0])
    left = Counter(r for r in rows if r.weight > 0) - Counter(
        replace(r, weight=1) for r in rows if r.weight < 0
    )
    for row in sorted(left.elements(), key=lambda r: r.time):
        naive.add(row)
    naive.end_with(rows)
    assert shown_of(rows, marks, LONG, cuts, spec) == (naive.shown, 0)


def spec_of(calls: str, gap: int) -> RetractableDynamicSpec:
    parts = parts_of(calls, gap, 0)
    del parts["delayed"]
    assert parts["slide"] == STEP
    return RetractableDynamicSpec(**parts)
