"""DYNAMIC_CUMULATE against a dict of lists that takes one row after the other, wherever epochs are cut."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.operators.timed_epochs import TimedEpochs, pieces
from tests.tiers import examples
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.watermarks import END, NONE, Running
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.window.clock import Clock
from tidemill.operators.window.dynamic import DynamicAggregateSpec
from tidemill.operators.window.output import WindowColumns
from tidemill.operators.window.retractable_dynamic import RetractableDynamicSpec
from tidemill.operators.window.shape import WindowShape

I64 = pa.int64()
COUNT = AggregateSpec(function="COUNT", name="n", args=(), arg_types=(), result=I64)
SUM = AggregateSpec(function="SUM", name="s", args=("v",), arg_types=(I64,), result=I64)
LARGEST = AggregateSpec(function="MAX", name="m", args=("v",), arg_types=(I64,), result=I64)
DISTINCT = AggregateSpec(function="COUNT", name="d", args=("v",), arg_types=(I64,), result=I64, distinct=True)

CALLS = {
    "accumulated": ((COUNT, SUM, LARGEST), ("k",), False),
    "one key": ((COUNT, SUM), (), False),
    "collected": ((COUNT, DISTINCT), ("k",), False),
    "rows go": ((COUNT, SUM), ("k",), True),
    "rows go from what is collected": ((LARGEST, DISTINCT), ("k",), True),
}
Spec = DynamicAggregateSpec | RetractableDynamicSpec
STEP = 5
SHAPES = [(calls, gap) for calls in CALLS for gap in (0, 3, 10, 12)]


@dataclass(frozen=True)
class Row:
    key: str | None
    time: int
    value: int
    weight: int = 1


@dataclass
class Window:
    """An open one."""

    rows: list[Row] = field(default_factory=list)
    counted: dict[int, Counter[int]] = field(default_factory=dict)
    """By the end of the step in which they count first the values of its rows."""
    cancels: bool = False

    @property
    def steps(self) -> set[int]:
        """The ends of the steps in which rows of it count first, as they are shown early. Where rows are kept
        as they are, one and what takes it back leave nothing."""
        return {step for step, values in self.counted.items() if not self.cancels or any(values.values())}

    @property
    def last(self) -> int:
        """The last step in which a row that came counts first, taken back since or not."""
        return max(self.counted, default=0)

    @property
    def start(self) -> int:
        return min(r.time for r in self.rows) // STEP * STEP


@dataclass
class Naive:
    """The definition: watermarks show what is due, rows go into windows."""

    gap: int
    calls: tuple[AggregateSpec, ...]
    open: dict[str | None, list[Window]] = field(default_factory=dict)
    shown: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    passed: int | None = None
    late: int = 0

    def end(self, window: Window) -> float:
        return max(r.time for r in window.rows) + self.gap if self.gap else float("inf")

    def pass_to(self, mark: int, last: bool = False) -> None:
        """All steps and ends up to ``mark`` + 1 are shown; no row is left out in the ``last`` steps."""
        for key, windows in self.open.items():
            for window in list(windows):
                upto = max(mark + 1, window.last) if last else mark + 1
                end = self.end(window)
                first = window.start if self.passed is None else max(self.passed, window.start)
                boundary = first // STEP * STEP + STEP
                while boundary <= upto and boundary < end:
                    self._show(key, window, boundary)
                    boundary += STEP
                if end <= upto:
                    self._show(key, window, int(end))
                    windows.remove(window)
        self.passed = mark + 1 if self.passed is None else max(self.passed, mark + 1)

    def end_with(self, rows: list[Row]) -> None:
        """All rows have come. What nothing ends shows its last step."""
        latest = max((r.time for r in rows), default=0)
        self.pass_to(END - 10**15 if self.gap else latest // STEP * STEP + STEP - 1, last=not self.gap)

    def add(self, row: Row) -> None:
        windows = self.open.setdefault(row.key, [])
        step = max(row.time, row.time if self.passed is None else self.passed) // STEP * STEP + STEP
        own = Window([row], {step: Counter({row.value: row.weight})}, LARGEST in self.calls)
        met = [w for w in windows if min(r.time for r in w.rows) <= self.end(own) and self.end(w) >= row.time]
        if not met and self.passed is not None and self.end(own) <= self.passed:
            self.late += 1
            return
        for window in met:
            windows.remove(window)
        for window in met:
            own.rows = [*own.rows, *window.rows]
            for end, values in window.counted.items():
                own.counted.setdefault(end, Counter()).update(values)
        windows.append(own)

    def _show(self, key: str | None, window: Window, boundary: int) -> None:
        weights = Counter[int]()
        for row in window.rows:
            if row.time < boundary:
                weights[row.value] += row.weight
        if sum(weights.values()) <= 0:
            return
        values = {
            "n": sum(weights.values()),
            "s": sum(v * w for v, w in weights.items()),
            "m": max((v for v, w in weights.items() if w > 0)),
            "d": sum(w > 0 for w in weights.values()),
        }
        self.shown[key, window.start, boundary, *(values[c.name] for c in self.calls)] += 1


@st.composite
def arrivals(draw: st.DrawFn) -> tuple[list[Row], int]:
    """Rows, some taken back later, and the delay of the watermark."""
    rows: list[Row] = []
    now = draw(st.integers(-20, 0))
    for _ in range(draw(st.integers(0, 30))):
        now += draw(st.integers(-1, 6))
        time = now - draw(st.sampled_from([0, 0, 0, 2, 7, 15, 25]))
        rows.append(Row(draw(st.sampled_from(["a", "a", "b", None])), time, draw(st.integers(0, 3))))
    return rows, draw(st.sampled_from([0, 2, 9, 50]))


def table_of(rows: list[Row], marks: Any, first: int, spec: WindowShape) -> pa.Table:
    keys = pa.array([r.key for r in rows], pa.string())
    columns: dict[str, pa.Array] = {
        "k": keys,
        "v": pa.array([r.value for r in rows], I64),
        "t": pa.array([r.time * 1000 for r in rows], I64).cast(pa.timestamp("us")),
        "$wm": pa.array(marks, I64),
        "$seq": pa.array(range(first, first + len(rows)), I64),
        "$hash": pa.array(hash_columns([keys] if spec.keys else [], len(rows))),
    }
    if spec.retracts:
        columns["$kind"] = pa.array([0 if r.weight > 0 else 3 for r in rows], pa.int8())
    return pa.table(columns)


def parts_of(calls: str, gap: int, delay: int) -> dict[str, Any]:
    """What every kernel of such windows is made of."""
    chosen, keys, retracts = CALLS[calls]
    return {
        "keys": tuple((k, pa.string()) for k in keys),
        "calls": chosen,
        "time": "t",
        "slide": STEP,
        "gap": gap,
        "delayed": delay,
        "clock": Clock(),
        "columns": WindowColumns(start="ws", end="we"),
        "output": (*keys, *(c.name for c in chosen), "ws", "we"),
        "retracts": retracts,
    }


def changes_of(rows: list[Row], gone: list[int], spec: WindowShape) -> list[Row]:
    """``rows`` as ``spec`` takes them, of which some are taken back in the end."""
    if not spec.keys:
        rows = [Row(None, r.time, r.value) for r in rows]
    if spec.retracts:
        rows = [*rows, *(Row(r.key, r.time, r.value, -1) for i, r in enumerate(rows) if i in gone)]
    return rows


# A step behind the last one of all: of a row that came before the last epoch, and of what was taken back.
@example(came=([Row("a", 4, 1), Row("a", 0, 2), Row("b", 4, 0)], 0), cuts=[2], gone=[])
@example(came=([Row("a", 0, 0), Row("a", 0, 0), Row("b", 0, 0), Row("a", 4, 0)], 0), cuts=[5], gone=[0, 2])
@example(came=([Row("a", 4, 0), Row("a", 3, 1), Row("b", 3, 1)], 0), cuts=[3, 4], gone=[1, 2])
@pytest.mark.parametrize(("calls", "gap"), SHAPES)
@settings(max_examples=examples(20), deadline=None)
@given(
    came=arrivals(),
    cuts=st.lists(st.integers(0, 30), max_size=5),
    gone=st.lists(st.integers(0, 29), max_size=4),
)
def test_as_a_dict_of_lists(
    calls: str, gap: int, came: tuple[list[Row], int], cuts: list[int], gone: list[int]
) -> None:
    chosen, _, _ = CALLS[calls]
    came_rows, delay = came
    spec = DynamicAggregateSpec(**parts_of(calls, gap, delay))
    rows = changes_of(came_rows, gone, spec)
    marks = Running().before(np.array([r.time - delay for r in rows], np.int64)).tolist()
    naive = Naive(gap, chosen)
    for row, mark in zip(rows, marks, strict=True):
        if mark != NONE:
            naive.pass_to(mark)
        naive.add(row)
    naive.end_with(rows)
    shown, late = shown_of(rows, marks, delay, cuts, spec)
    assert shown == naive.shown
    assert late == naive.late


def shown_of(
    rows: list[Row], marks: list[int], delay: int, cuts: list[int], spec: Spec
) -> tuple[Counter[tuple[Any, ...]], int]:
    """What the kernel shows of ``rows`` in epochs cut at ``cuts``, and how many rows are late."""
    shown: Counter[tuple[Any, ...]] = Counter()
    reached = NONE
    with tempfile.TemporaryDirectory() as root:
        kernel = TimedEpochs(root, spec)
        for first, behind in pieces(len(rows), cuts):
            table = table_of(rows[first:behind], marks[first:behind], first, spec)
            reached = max([reached, *(r.time - delay for r in rows[first:behind])])
            last = behind == len(rows)
            output = kernel.step(table, mark=END if last else reached, reached=reached)
            shown.update(shown_by(output, spec))
    return shown, kernel.late


def shown_by(output: pa.Table, spec: WindowShape) -> list[tuple[Any, ...]]:
    keys = output.column("k").to_pylist() if spec.keys else [None] * len(output)
    bounds = [output.column(name).cast(I64).to_pylist() for name in ("ws", "we")]
    values = [output.column(c.name).to_pylist() for c in spec.calls]
    assert bounds[1] == sorted(bounds[1])
    return [
        (key, start // 1000, end // 1000, *rest)
        for key, start, end, *rest in zip(keys, *bounds, *values, strict=True)
    ]
