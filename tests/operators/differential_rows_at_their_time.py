"""Windows that rows make, over rows that come when the watermark reaches their time: as in batch, always.

An operator below gives them so: a window's result, the first row of a key, a match, a temporal join. No such
row is late, whichever watermarks there were and wherever epochs are cut, also one gap behind the last.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.operators.timed_epochs import TimedEpochs
from tests.tiers import examples
from tidemill.changelog.rowkind import KIND_COLUMN
from tidemill.changelog.watermarks import END, NONE, held_back
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.window.clock import Clock
from tidemill.operators.window.dynamic import DynamicAggregateSpec
from tidemill.operators.window.output import WindowColumns
from tidemill.operators.window.retractable_session import RetractableSessionSpec
from tidemill.operators.window.session import SessionAggregateSpec
from tidemill.operators.window.session_shape import SessionShape
from tidemill.operators.window.triggers.trigger import Trigger

GAP, STEP = 5, 4
BEHIND = 1
"""What the operator holds its watermark back by, so that the last row of a window comes before its end."""
Shown = Counter[tuple[Any, ...]]


@dataclass(frozen=True)
class Row:
    key: str
    time: int


_COUNT = AggregateSpec(function="COUNT", name="n", args=(), arg_types=(), result=pa.int64())
_SHAPE: dict[str, Any] = {
    "keys": (("k", pa.string()),),
    "calls": (_COUNT,),
    "time": "t",
    "gap": GAP,
    "clock": Clock(),
    "columns": WindowColumns(start="ws", end="we"),
    "output": ("k", "n", "ws", "we"),
    "behind": BEHIND,
}
Spec = SessionAggregateSpec | RetractableSessionSpec | DynamicAggregateSpec
SPECS: dict[str, Spec] = {
    "sessions": SessionAggregateSpec(**_SHAPE),
    "sessions of rows that may go": RetractableSessionSpec(**_SHAPE, retracts=True),
    "sessions that show early": SessionAggregateSpec(**_SHAPE, trigger=Trigger(early=0)),
    "sessions that may change after their end": SessionAggregateSpec(**_SHAPE, trigger=Trigger(lateness=3)),
    "windows that grow": DynamicAggregateSpec(**_SHAPE, slide=STEP),
    "windows that grow and show early": DynamicAggregateSpec(**_SHAPE, slide=STEP, trigger=Trigger(early=0)),
}


def naive(rows: list[Row], spec: Spec) -> Shown:
    """The answer of a batch."""
    shown: Shown = Counter()
    for key in {row.key for row in rows}:
        times = sorted(row.time for row in rows if row.key == key)
        breaks = [0, *(i for i, (a, b) in enumerate(pairwise(times), 1) if b - a > GAP), len(times)]
        for first, last in pairwise(breaks):
            part = times[first:last]
            start, end = part[0], part[-1] + GAP
            if isinstance(spec, SessionShape):
                shown[key, len(part), start, end] += 1
                continue
            start = start // STEP * STEP
            for point in {*range(start + STEP, end, STEP), end}:
                shown[key, sum(t < point for t in part), start, point] += 1
    return shown


def table_of(rows: list[Row], spec: Spec, first: int) -> pa.Table:
    """As the operator below gives them: in the order of their times, each just before its time has come."""
    table = pa.table(
        {
            "k": pa.array([r.key for r in rows], pa.string()),
            "t": pa.array([r.time * 1000 for r in rows], pa.int64()).cast(pa.timestamp("us")),
            "$seq": pa.array(range(first, first + len(rows)), pa.int64()),
            "$wm": pa.array([r.time - 1 for r in rows], pa.int64()),
        }
    )
    return table.append_column("$kind", pa.array([0] * len(rows), pa.int8())) if spec.retracts else table


def come(output: pa.Table) -> Shown:
    """What the rows add up to."""
    kinds = (
        output.column(KIND_COLUMN).to_pylist() if KIND_COLUMN in output.column_names else [0] * len(output)
    )
    bounds = ([v // 1000 for v in output.column(name).cast(pa.int64()).to_pylist()] for name in ("ws", "we"))
    columns = (output.column("k").to_pylist(), output.column("n").to_pylist(), *bounds)
    found: Shown = Counter()
    for kind, row in zip(kinds, zip(*columns, strict=True), strict=True):
        found[row] += -1 if kind & 1 else 1
    return found


@pytest.mark.parametrize("name", SPECS)
@settings(max_examples=examples(30), deadline=None)
@given(
    rows=st.lists(st.builds(Row, st.sampled_from("ab"), st.integers(0, 40)), max_size=12),
    marks=st.lists(st.integers(0, 50), max_size=5),
)
@example(rows=[Row("a", 0), Row("a", GAP)], marks=[])
@example(rows=[Row("a", 0), Row("a", GAP)], marks=[0, GAP - 1, GAP])
def test_no_row_is_late(name: str, rows: list[Row], marks: list[int]) -> None:
    """``marks``: the watermarks at which epochs are cut."""
    spec, shown = SPECS[name], Shown()
    rows = sorted(rows, key=lambda row: row.time)
    with TemporaryDirectory() as root:
        epochs, before, number = TimedEpochs(root, spec), NONE, 0
        for mark in [*sorted(marks), END]:
            due = [row for row in rows if before < row.time <= mark]
            shown.update(come(epochs.step(table_of(due, spec, number), mark=held_back(mark, BEHIND))))
            before, number = mark, number + len(due)
    assert +shown == naive(rows, spec)
    assert epochs.late == 0
    assert min(shown.values(), default=0) >= 0
