"""Distinct values that keys of windows share against sets, wherever epochs are cut, whatever was combined."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.differential_window_aggregate import (
    DISTINCT,
    I64,
    WINDOWS,
    Row,
    arrivals,
    ends_of,
    table_of,
)
from tests.operators.timed_epochs import TimedEpochs
from tests.operators.window_tasks import Tasks
from tests.tiers import examples
from tidemill.changelog.watermarks import Running
from tidemill.operators.shared_distinct.shared_keys import Grouping, SharedKeys
from tidemill.operators.window.clock import Clock
from tidemill.operators.window.output import WindowColumns
from tidemill.operators.window.shared_values import SharedValuesSpec

KEYS = ("a", *"01234567", "b", *"ijklmnop", None)
"""More than fit a word of 8 bits: those that come are in three words."""
NULL = 3
"""The value that stands for NULL: it makes a row, and does not count."""


Counts = dict[tuple[str | None, int], int]
"""By key and end of the window."""


def spec_of(windows: str, width: int) -> SharedValuesSpec:
    shared = SharedKeys(
        kept=(),
        value=("v", I64),
        known=(KEYS,),
        shown=((("k", pa.string()), 0),),
        groupings=(
            Grouping(columns=("k",), values=tuple((k,) for k in KEYS), numbers=tuple(range(len(KEYS)))),
        ),
        width=width,
    )
    return SharedValuesSpec(
        keys=(("k", pa.string()),),
        calls=(DISTINCT,),
        time="t",
        windows=WINDOWS[windows],
        clock=Clock(),
        columns=WindowColumns(rowtime="last"),
        output=("k", "d", "last"),
        shared=shared,
    )


def naive(spec: SharedValuesSpec, rows: list[Row], marks: list[int]) -> tuple[Counts, int]:
    """How many values each key and window has, and how many rows were late for all windows."""
    found: dict[tuple[str | None, int], set[int]] = defaultdict(set)
    late = 0
    for row, mark in zip(rows, marks, strict=True):
        every = ends_of(spec.windows, row.time)
        ends = [end for end in every if end - 1 > mark]
        late += not ends and bool(every)
        for end in ends:
            found[row.key, end].add(row.value)
    return {place: len(values - {NULL}) for place, values in found.items()}, late


def summed(spec: SharedValuesSpec, given_: list[tuple[str | None, int, int]]) -> Counts:
    """What an aggregation above makes of the rows (key, number, last millisecond)."""
    found: dict[tuple[str | None, int], int] = defaultdict(int)
    for key, number, last in given_:
        ends = ends_of(spec.windows, last) if spec.cumulates else [last + 1]
        for end in ends:
            found[key, end] += number
    return dict(found)


@pytest.mark.parametrize("width", [8, 32])
@pytest.mark.parametrize("windows", WINDOWS)
@settings(max_examples=examples(40), deadline=None)
@given(
    came=arrivals(),
    cuts=st.lists(st.integers(0, 30), max_size=4),
    tasks=st.lists(st.integers(0, 30), max_size=3),
    combines=st.integers(0, 7),
    lag=st.sampled_from([0, 0, 6, 1000]),
)
def test_as_sets(
    windows: str,
    width: int,
    came: tuple[list[Row], int, int],
    cuts: list[int],
    tasks: list[int],
    combines: int,
    lag: int,
) -> None:
    spec = spec_of(windows, width)
    assert spec.combinable
    rows, delay, interval = came
    arriving = Tasks(delay=delay, interval=interval, cuts=cuts, tasks=tasks, combines=combines, lag=lag)
    expected, late = naive(spec, rows, arriving.marks(rows, Running(interval=interval)).tolist())
    shown: list[tuple[str | None, int, int]] = []
    with tempfile.TemporaryDirectory() as root:
        kernel = TimedEpochs(root, spec)
        for output in arriving.outputs(kernel, spec, rows, lambda own, seen: _table(own, seen, spec)):
            last = [time // 1000 for time in output.column("last").cast(I64).to_pylist()]
            shown += zip(output.column("k").to_pylist(), output.column("d").to_pylist(), last, strict=True)
    if not spec.cumulates:
        assert len({(key, last) for key, _, last in shown}) == len(shown)
    assert summed(spec, shown) == expected
    assert kernel.late == late


def _table(rows: Sequence[Row], marks: object, spec: SharedValuesSpec) -> pa.Table:
    table = table_of(rows, marks, spec)
    values = pa.array([None if r.value == NULL else r.value for r in rows], I64)
    return table.set_column(table.schema.get_field_index("v"), "v", values)
