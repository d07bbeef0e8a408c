"""Windows that grow and show more than the ends of steps, against a dict of lists: right at every epoch."""

from __future__ import annotations

import tempfile
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.differential_dynamic_aggregate import (
    CALLS,
    SHAPES,
    STEP,
    Naive,
    Row,
    arrivals,
    changes_of,
    parts_of,
    table_of,
)
from tests.operators.epochs import fold
from tests.operators.timed_epochs import TimedEpochs
from tests.tiers import examples
from tidemill.changelog.rowkind import KIND_COLUMN
from tidemill.changelog.watermarks import END, NONE, Running, held_back
from tidemill.operators.window.dynamic import DynamicAggregateSpec
from tidemill.operators.window.triggers.trigger import Trigger

EMISSIONS = {
    "early": Trigger(early=0),
    "early, late": Trigger(early=0, lateness=6),
    "late": Trigger(lateness=7),
    "early after a while, late after another": Trigger(early=10, late=7, lateness=9),
}
I64 = pa.int64()


class Twin(Naive):
    """What can change no more is ``shown``; the rest is told by the windows that are open."""

    def visible(self, reached: int, early: bool) -> Counter[tuple[Any, ...]]:
        """What is shown when time has come to ``reached``; early the steps that rows count in first."""
        found = Naive(self.gap, self.calls, shown=self.shown.copy())
        for key, windows in self.open.items():
            for window in windows:
                end = self.end(window)
                first = max(window.start, window.start if self.passed is None else self.passed)
                ends: set[float] = set(range(first // STEP * STEP + STEP, reached + 2, STEP))
                ends = {b for b in ends if b < end} | ({end} if end <= reached + 1 else set())
                if early:
                    ahead = {min(s, end) for s in window.steps}
                    ends |= {b for b in ahead if b > reached + 1}
                for b in ends:
                    found._show(key, window, int(b))
        return found.shown


def cut(rows: list[Row], trigger: Trigger, delay: int, gap: int, calls: str) -> Twin:
    twin = Twin(gap, CALLS[calls][0])
    for row, mark in zip(rows, marks_of(rows, delay), strict=True):
        if mark != NONE:
            twin.pass_to(held_back(mark, trigger.lateness))
        twin.add(row)
    return twin


def marks_of(rows: list[Row], delay: int) -> list[int]:
    return [int(m) for m in Running().before(np.array([r.time - delay for r in rows], np.int64))]


@pytest.mark.parametrize("trigger", EMISSIONS)
@pytest.mark.parametrize(("calls", "gap"), [s for s in SHAPES if s[1] != 10])
@settings(max_examples=examples(6), deadline=None, derandomize=True)
@given(
    came=arrivals(),
    cuts=st.lists(st.integers(0, 30), max_size=5),
    waits=st.lists(st.integers(0, 8), min_size=8, max_size=8),
    patient=st.lists(st.booleans(), min_size=8, max_size=8),
    gone=st.lists(st.integers(0, 29), max_size=4),
)
def test_right_at_every_epoch(
    trigger: str,
    calls: str,
    gap: int,
    came: tuple[list[Row], int],
    cuts: list[int],
    waits: list[int],
    patient: list[bool],
    gone: list[int],
) -> None:
    """After some epochs there is time for all timers: then everything is there that should be."""
    rows, delay = came
    spec = DynamicAggregateSpec(**parts_of(calls, gap, delay), trigger=EMISSIONS[trigger])
    rows = changes_of(rows, gone, spec)
    at_once = not spec.trigger.early and not spec.trigger.late
    marks, now, shown = marks_of(rows, delay), 0, dict[tuple[Any, ...], int]()
    bounds = [0, *sorted(c for c in cuts if c <= len(rows)), len(rows), len(rows)]
    with tempfile.TemporaryDirectory() as root:
        kernel = TimedEpochs(root, spec)
        for number, (first, behind) in enumerate(pairwise(bounds)):
            now += waits[number]
            last = number == len(bounds) - 2
            reached = max((r.time - delay for r in rows[:behind]), default=NONE)
            mark = END if last else reached
            table = table_of(rows[first:behind], marks[first:behind], first, spec)
            fold(shown, _changes(kernel.step(table, mark=mark, reached=reached, time=now), spec))
            while patient[number] and kernel.timer is not None:
                now = kernel.timer
                nothing = table_of([], [], 0, spec)
                fold(shown, _changes(kernel.step(nothing, mark=mark, reached=reached, time=now), spec))
            if at_once or patient[number] or last:
                twin = cut(rows[:behind], spec.trigger, delay, gap, calls)
                if last:
                    twin.end_with(rows)
                else:
                    twin.pass_to(held_back(reached, spec.trigger.lateness))
                early = spec.trigger.early is not None
                assert shown == dict(twin.visible(reached, early and not last))
    assert kernel.late == cut(rows, spec.trigger, delay, gap, calls).late


def _changes(output: pa.Table, spec: DynamicAggregateSpec) -> list[tuple[int, tuple[Any, ...]]]:
    keys = output.column("k").to_pylist() if spec.keys else [None] * len(output)
    bounds = [[v // 1000 for v in output.column(n).cast(I64).to_pylist()] for n in ("ws", "we")]
    values = [output.column(c.name).to_pylist() for c in spec.calls]
    kinds = output.column(KIND_COLUMN).to_pylist()
    return [(kind, tuple(row)) for kind, *row in zip(kinds, keys, *bounds, *values, strict=True)]
