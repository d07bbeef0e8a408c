"""Windows that show more than their end, against a dict of lists: right at every epoch, however cut."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.differential_window_aggregate import (
    WINDOWS,
    Row,
    arrivals,
    ends_of,
    results,
    spec_of,
    table_of,
)
from tests.operators.epochs import fold
from tests.operators.timed_epochs import TimedEpochs, pieces
from tests.tiers import examples
from tidemill.changelog.rowkind import KIND_COLUMN
from tidemill.changelog.watermarks import END, NONE, Running
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.window.aggregate import WindowAggregateSpec
from tidemill.operators.window.assigners.assigner import Assigner
from tidemill.operators.window.triggers.trigger import Trigger

EMISSIONS = {
    "early": Trigger(early=0),
    "early, late": Trigger(early=0, lateness=6),
    "late": Trigger(lateness=11),
    "early after a while, late after another": Trigger(early=10, late=7, lateness=9),
}
CALLS = ("accumulated, one key", "distinct", "several sets", "rows go, with sets")
Shown = dict[tuple[Any, ...], int]


class Naive:
    """Every row in all its windows; which of them can be seen."""

    def __init__(self, windows: Assigner, trigger: Trigger, calls: tuple[AggregateSpec, ...]) -> None:
        self.windows, self.trigger, self.calls = windows, trigger, calls
        self.rows: dict[tuple[str | None, int], list[Row]] = {}
        self.own: set[tuple[str | None, int]] = set()
        self.late = 0

    def take(self, rows: list[Row], marks: list[int], reached: int) -> None:
        for row, mark in zip(rows, marks, strict=True):
            all_ends = ends_of(self.windows, row.time)
            ends = [e for e in all_ends if e - 1 + self.trigger.lateness > mark or mark == NONE]
            self.late += not ends and bool(all_ends)
            for end in ends:
                self.rows.setdefault((row.key, end), []).append(row)
            if ends and all_ends[0] == ends[0] and ends[0] - 1 > reached:
                self.own.add((row.key, ends[0]))

    def seen(self, reached: int) -> Shown:
        """Where everything has been shown that is to be."""
        shown: Shown = {}
        for (key, end), rows in self.rows.items():
            ended = reached >= end - 1
            early = self.trigger.early is not None and (not self.windows.cumulates or (key, end) in self.own)
            found = results(self.calls, rows)
            if found is not None and (ended or early):
                shown[(key, end, *found)] = 1
        return shown


def emitting(windows: str, calls: str, trigger: Trigger) -> WindowAggregateSpec:
    plain = spec_of(windows, calls)
    return WindowAggregateSpec(
        keys=plain.keys,
        calls=plain.calls,
        time=plain.time,
        windows=plain.windows,
        clock=plain.clock,
        columns=plain.columns,
        output=plain.output,
        retracts=plain.retracts,
        trigger=trigger,
    )


@pytest.mark.parametrize("trigger", EMISSIONS)
@pytest.mark.parametrize("calls", CALLS)
@pytest.mark.parametrize("windows", WINDOWS)
@settings(max_examples=examples(6), deadline=None)
@given(
    came=arrivals(),
    cuts=st.lists(st.integers(0, 30), max_size=6),
    gone=st.lists(st.integers(0, 29), max_size=4),
    waits=st.lists(st.integers(0, 8), min_size=8, max_size=8),
    patient=st.lists(st.booleans(), min_size=8, max_size=8),
)
def test_right_at_every_epoch(
    windows: str,
    calls: str,
    trigger: str,
    came: tuple[list[Row], int, int],
    cuts: list[int],
    gone: list[int],
    waits: list[int],
    patient: list[bool],
) -> None:
    """After some epochs there is time for all timers: then everything is there that should be."""
    spec = emitting(windows, calls, EMISSIONS[trigger])
    rows, delay, interval = came
    rows = rows if spec.keys else [replace(row, key=None) for row in rows]
    if spec.retracts:
        rows = [*rows, *(replace(row, weight=-1) for i, row in enumerate(rows) if i in gone)]
    running = Running(interval=interval)
    twin = Naive(WINDOWS[windows], spec.trigger, spec.calls)
    shown: Shown = {}
    at_once = not spec.trigger.early and not spec.trigger.late
    now = 0
    with tempfile.TemporaryDirectory() as root:
        kernel = TimedEpochs(root, spec)
        for number, (first, behind) in enumerate(pieces(len(rows), cuts)):
            now += waits[number]
            part = rows[first:behind]
            marks = running.before(np.array([r.time - delay for r in part], np.int64)).tolist()
            reached = END if behind == len(rows) else running.mark
            twin.take(part, marks, reached)
            fold(shown, _changes(kernel.step(table_of(part, marks, spec), mark=reached, time=now)))
            while patient[number] and kernel.timer is not None:
                assert kernel.timer > now
                now = kernel.timer
                nothing = table_of([], [], spec)
                fold(shown, _changes(kernel.step(nothing, mark=reached, time=now)))
            if at_once or patient[number] or reached == END:
                assert shown == twin.seen(reached)
    assert kernel.late == twin.late


def _changes(output: pa.Table) -> list[tuple[int, tuple[Any, ...]]]:
    names = [n for n in output.column_names if n not in ("k", "ws", "we", KIND_COLUMN)]
    keys = output.column("k").to_pylist() if "k" in output.column_names else [None] * len(output)
    ends = [end // 1000 for end in output.column("we").cast(pa.int64()).to_pylist()]
    values = [output.column(name).to_pylist() for name in names]
    kinds = output.column(KIND_COLUMN).to_pylist()
    return [(kind, tuple(row)) for kind, *row in zip(kinds, keys, ends, *values, strict=True)]
