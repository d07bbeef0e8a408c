"""Aggregation in windows against a dict of lists, wherever epochs are cut, whatever was combined before."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.timed_epochs import TimedEpochs
from tests.operators.window_tasks import Tasks
from tests.tiers import examples
from tidemill.changelog.columns import Ints
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.watermarks import Running
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.window.aggregate import WindowAggregateSpec
from tidemill.operators.window.assigners.assigner import Assigner
from tidemill.operators.window.assigners.calendar import Calendar
from tidemill.operators.window.assigners.cumulate import Cumulate
from tidemill.operators.window.assigners.hop import Hop
from tidemill.operators.window.assigners.tumble import Tumble
from tidemill.operators.window.clock import Clock
from tidemill.operators.window.output import WindowColumns
from tidemill.operators.window.shape import WindowShape

I64 = pa.int64()
COUNT = AggregateSpec(function="COUNT", name="n", args=(), arg_types=(), result=I64)
SUM = AggregateSpec(function="SUM", name="s", args=("v",), arg_types=(I64,), result=I64)
LARGEST = AggregateSpec(function="MAX", name="m", args=("v",), arg_types=(I64,), result=I64)
DISTINCT = AggregateSpec(function="COUNT", name="d", args=("v",), arg_types=(I64,), result=I64, distinct=True)

LENGTHS = (3, 5, 2, 4)
"""Of months, one year after the other."""
STARTS = np.cumsum([0, *LENGTHS])[:-1]


class ShortMonths(Calendar):
    """Months of some milliseconds each, so that many come and go."""

    def months(self, times: Ints) -> Ints:
        year, day = np.divmod(times - self.offset, sum(LENGTHS))
        return year * len(LENGTHS) + np.searchsorted(STARTS, day, side="right") - 1

    def times(self, months: Ints) -> Ints:
        year, month = np.divmod(months, len(LENGTHS))
        times: Ints = year * sum(LENGTHS) + STARTS[month] + self.offset
        return times

    def month(self, time: int) -> int:
        return int(self.months(np.array([time]))[0])

    def time(self, month: int) -> int:
        return int(self.times(np.array([month]))[0])


FromClock = Tumble | Hop | Cumulate | ShortMonths
"""The assigners that are tested."""
WINDOWS: dict[str, FromClock] = {
    "tumble": Tumble(size=10, offset=3),
    "hop": Hop(size=10, slide=5),
    "hop, each slice in many": Hop(size=12, slide=2),
    "hop that divides nothing": Hop(size=7, slide=3),
    "cumulate": Cumulate(size=12, slide=4),
    "cumulate with a short step": Cumulate(size=10, slide=4),
    "hop by months": ShortMonths(inner=Hop(size=3, slide=1), offset=1),
    "cumulate by months": ShortMonths(inner=Cumulate(size=4, slide=3)),
}
TOTAL = AggregateSpec(function="SUM", name="total", args=("v",), arg_types=(I64,), result=I64, distinct=True)
SMALL = AggregateSpec(
    function="COUNT", name="f", args=("v",), arg_types=(I64,), result=I64, distinct=True, filter="small"
)
SIZES = AggregateSpec(
    function="COUNT", name="b", args=("small",), arg_types=(pa.bool_(),), result=I64, distinct=True
)

CALLS = {
    "accumulated": ((COUNT, SUM, LARGEST), ("k",), False),
    "accumulated, one key": ((COUNT, SUM), (), False),
    "distinct": ((COUNT, DISTINCT), ("k",), False),
    "distinct, one key": ((DISTINCT, SUM, LARGEST), (), False),
    "several sets": ((TOTAL, SIZES, SMALL, DISTINCT, LARGEST), ("k",), False),
    "rows go, with sets": ((COUNT, SUM, SIZES, DISTINCT, TOTAL), ("k",), True),
    "rows go": ((COUNT, SUM), ("k",), True),
}


@dataclass(frozen=True)
class Row:
    key: str | None
    time: int
    value: int
    weight: int = 1


def ends_of(windows: Assigner, time: int) -> list[int]:
    """Of all windows that ``time`` is in."""
    if isinstance(windows, ShortMonths):
        return [windows.time(end) for end in ends_of(windows.inner, windows.month(time))]
    assert isinstance(windows, Tumble | Hop | Cumulate)
    size, offset = windows.size, windows.offset
    slide = size if isinstance(windows, Tumble) else windows.slide
    if isinstance(windows, Cumulate):
        start = (time - offset) // size * size + offset
        ends = [start + min(i * slide, size) for i in range(1, -(-size // slide) + 1)]
        return sorted({e for e in ends if e > time})
    last = (time - offset) // slide * slide + offset
    return [s + size for s in range(last, time - size, -slide)]


def results(calls: tuple[AggregateSpec, ...], rows: list[Row]) -> tuple[Any, ...] | None:
    """What the calls give of a window's rows; None where nothing is left of them."""
    weights = Counter[int]()
    for row in rows:
        weights[row.value] += row.weight
    if not sum(weights.values()):
        return None
    there = {v for v, w in weights.items() if w > 0}
    values = {
        "n": sum(weights.values()),
        "s": sum(v * w for v, w in weights.items()),
        "m": max(there, default=None),
        "d": len(there),
        "total": sum(there) if there else None,
        "f": sum(v < 2 for v in there),
        "b": len({v < 2 for v in there}),
    }
    return tuple(values[c.name] for c in calls)


def naive(
    spec: WindowAggregateSpec, rows: list[Row], marks: list[int]
) -> tuple[Counter[tuple[Any, ...]], int]:
    """What the windows give, and how many rows were late for all of theirs."""
    found: dict[tuple[str | None, int], list[Row]] = {}
    late = 0
    for row, mark in zip(rows, marks, strict=True):
        ends = [e for e in ends_of(spec.windows, row.time) if e - 1 > mark]
        late += not ends and bool(ends_of(spec.windows, row.time))
        for end in ends:
            found.setdefault((row.key, end), []).append(row)
    shown: Counter[tuple[Any, ...]] = Counter()
    for (key, end), members in found.items():
        values = results(spec.calls, members)
        if values is not None:
            shown[key, end, *values] += 1
    return shown, late


@st.composite
def arrivals(draw: st.DrawFn) -> tuple[list[Row], int, int]:
    """Rows, the delay of the watermark, the interval that it passes (0: always)."""
    rows: list[Row] = []
    now = draw(st.integers(-20, 0))
    for _ in range(draw(st.integers(0, 30))):
        now += draw(st.integers(-1, 4))
        time = now - draw(st.sampled_from([0, 0, 0, 2, 7, 15]))
        rows.append(Row(draw(st.sampled_from(["a", "b", None])), time, draw(st.integers(0, 3))))
    return rows, draw(st.sampled_from([0, 2, 9, 50])), draw(st.sampled_from([0, 0, 5]))


def table_of(rows: Sequence[Row], marks: Any, spec: WindowShape) -> pa.Table:
    keys = pa.array([r.key for r in rows], pa.string())
    columns: dict[str, pa.Array] = {
        "k": keys,
        "v": pa.array([r.value for r in rows], I64),
        "small": pa.array([r.value < 2 for r in rows], pa.bool_()),
        "t": pa.array([r.time * 1000 for r in rows], I64).cast(pa.timestamp("us")),
        "$wm": pa.array(marks, I64),
        "$hash": pa.array(hash_columns([keys] if spec.keys else [], len(rows))),
    }
    if spec.retracts:
        columns["$kind"] = pa.array([0 if r.weight > 0 else 3 for r in rows], pa.int8())
    return pa.table(columns)


def spec_of(windows: str, calls: str) -> WindowAggregateSpec:
    chosen, keys, retracts = CALLS[calls]
    return WindowAggregateSpec(
        keys=tuple((k, pa.string()) for k in keys),
        calls=chosen,
        time="t",
        windows=WINDOWS[windows],
        clock=Clock(),
        columns=WindowColumns(start="ws", end="we"),
        output=(*keys, *(c.name for c in chosen), "ws", "we"),
        retracts=retracts,
    )


@pytest.mark.parametrize("calls", CALLS)
@pytest.mark.parametrize("windows", WINDOWS)
@settings(max_examples=examples(40), deadline=None)
@given(
    came=arrivals(),
    cuts=st.lists(st.integers(0, 30), max_size=4),
    tasks=st.lists(st.integers(0, 30), max_size=3),
    combines=st.integers(0, 7),
    gone=st.lists(st.integers(0, 29), max_size=4),
    lag=st.sampled_from([0, 0, 6, 1000]),
)
def test_as_a_dict_of_lists(
    windows: str,
    calls: str,
    came: tuple[list[Row], int, int],
    cuts: list[int],
    tasks: list[int],
    combines: int,
    gone: list[int],
    lag: int,
) -> None:
    spec = spec_of(windows, calls)
    rows, delay, interval = came
    if not spec.keys:
        rows = [Row(None, r.time, r.value) for r in rows]
    if spec.retracts:
        rows = [*rows, *(Row(r.key, r.time, r.value, -1) for i, r in enumerate(rows) if i in gone)]
    arriving = Tasks(delay=delay, interval=interval, cuts=cuts, tasks=tasks, combines=combines, lag=lag)
    expected, late = naive(spec, rows, arriving.marks(rows, Running(interval=interval)).tolist())
    shown: Counter[tuple[Any, ...]] = Counter()
    with tempfile.TemporaryDirectory() as root:
        kernel = TimedEpochs(root, spec)
        for output in arriving.outputs(kernel, spec, rows, lambda own, seen: table_of(own, seen, spec)):
            shown.update(_shown(output, spec))
    assert shown == expected
    assert kernel.late == late


def _shown(output: pa.Table, spec: WindowAggregateSpec) -> list[tuple[Any, ...]]:
    keys = output.column("k").to_pylist() if spec.keys else [None] * len(output)
    ends = output.column("we").cast(I64).to_pylist()
    values = [output.column(c.name).to_pylist() for c in spec.calls]
    assert ends == sorted(ends)
    return [(key, end // 1000, *rest) for key, end, *rest in zip(keys, ends, *values, strict=True)]
