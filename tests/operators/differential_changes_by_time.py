"""Windows over changes that a temporal join gives: the same answer wherever epochs are cut.

A row may come in time and go when its window has ended. Rows one by one are the definition.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.operators.timed_epochs import TimedEpochs
from tests.tiers import examples
from tidemill.changelog.rowkind import RowKind
from tidemill.changelog.watermarks import END, NONE, Running, held_back
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.join.shape import JoinSide
from tidemill.operators.lookup_join import LookupJoinSpec
from tidemill.operators.temporal_join.operator import TemporalJoinSpec
from tidemill.operators.window.aggregate import WindowAggregateSpec
from tidemill.operators.window.assigners.hop import Hop
from tidemill.operators.window.clock import Clock
from tidemill.operators.window.output import WindowColumns
from tidemill.operators.window.retractable_session import RetractableSessionSpec

I64, STAMP = pa.int64(), pa.timestamp("us")
ROW = (("t", STAMP), ("k", pa.string()), ("v", I64))
JOIN = TemporalJoinSpec(
    left=JoinSide(columns=ROW, keys=("k",), output=("t", "k", "v"), retracts=True),
    right=JoinSide(
        columns=(("r0", STAMP), ("r1", pa.string()), ("x", I64)), keys=("r1",), output=("x",), retracts=False
    ),
    times=("t", "r0"),
    null_safe=(False,),
    outer=True,
    tells=True,
    sequence=True,
    keeps_time=True,
)
_COUNT = AggregateSpec(function="COUNT", name="n", args=(), arg_types=(), result=I64)
_SUM = AggregateSpec(function="SUM", name="s", args=("x",), arg_types=(I64,), result=I64)
_SHAPE: dict[str, Any] = {
    "keys": (("k", pa.string()),),
    "calls": (_COUNT, _SUM),
    "time": "t",
    "clock": Clock(),
    "columns": WindowColumns(start="ws", end="we"),
    "output": ("k", "n", "s", "ws", "we"),
    "retracts": True,
}
WINDOWS: dict[str, WindowAggregateSpec | RetractableSessionSpec] = {
    "of a size": WindowAggregateSpec(**_SHAPE, windows=Hop(size=6, slide=3)),
    "that rows make": RetractableSessionSpec(**_SHAPE, gap=3, behind=1),
}
VERSIONS = [("a", 0), ("b", 3), ("a", 6), ("a", 11)]


@dataclass(frozen=True)
class Change:
    time: int
    key: str
    value: int
    kind: RowKind = RowKind.INSERT


@st.composite
def changelogs(draw: st.DrawFn) -> list[Change]:
    """Rows come, many behind others, and go, some long after their time."""
    changes: list[Change] = []
    there: list[Change] = []
    for now in range(draw(st.integers(0, 14))):
        if there and draw(st.integers(0, 2)) == 0:
            old = there.pop(draw(st.integers(0, len(there) - 1)))
            changes.append(Change(old.time, old.key, old.value, RowKind.DELETE))
        else:
            new = Change(
                now + draw(st.integers(-6, 3)), draw(st.sampled_from("abc")), draw(st.integers(0, 1))
            )
            there.append(new)
            changes.append(new)
    return changes


@dataclass
class Chain:
    """Join, what keeps its versions, and windows, as the runtime puts them behind one another."""

    root: str
    outer: bool
    windows: WindowAggregateSpec | RetractableSessionSpec

    def run(self, changes: list[Change], cuts: list[int], delay: int) -> Counter[tuple[Any, ...]]:
        kept = LookupJoinSpec(
            columns=ROW, found=(("x", I64),), outer=self.outer, sequence=True, keeps_time=True
        )
        join, found, above = (
            TimedEpochs(f"{self.root}/join", JOIN),
            TimedEpochs(f"{self.root}/found", kept),
            TimedEpochs(f"{self.root}/windows", self.windows),
        )
        running, shown = Running(), Counter[tuple[Any, ...]]()
        bounds = [0, *sorted(c for c in cuts if c < len(changes)), len(changes)]
        for first, last in pairwise(bounds):
            part = changes[first:last]
            marks = running.before(np.array([c.time - delay for c in part], np.int64))
            mark = END if last == len(changes) else running.mark
            versions = VERSIONS if first == 0 else []
            joined = join.step(left_table(part, marks, first), right_table(versions), mark=mark)
            joined = joined.append_column("$row", pa.array(range(len(joined)), I64))
            rows = found.step(joined, mark=mark)
            shown.update(come(above.step(rows, mark=held_back(mark, self.windows.behind))))
        return shown


def left_table(changes: list[Change], marks: Any, first: int) -> pa.Table:
    return pa.table(
        {
            "t": pa.array([c.time * 1000 for c in changes], STAMP),
            "k": pa.array([c.key for c in changes], pa.string()),
            "v": pa.array([c.value for c in changes], I64),
            "$kind": pa.array([c.kind for c in changes], pa.int8()),
            "$seq": pa.array(range(first, first + len(changes)), I64),
            "$wm": pa.array(marks, I64),
        }
    )


def right_table(versions: list[tuple[str, int]]) -> pa.Table:
    numbers = pa.array(range(len(versions)), I64)
    return pa.table(
        {
            "r0": pa.array([time * 1000 for _, time in versions], STAMP),
            "r1": pa.array([key for key, _ in versions], pa.string()),
            "x": numbers,
            "$seq": numbers,
            "$wm": pa.array([NONE] * len(versions), I64),
        }
    )


def come(output: pa.Table) -> list[tuple[Any, ...]]:
    bounds = (output.column(name).cast(I64).to_pylist() for name in ("ws", "we"))
    return list(zip(*(output.column(name).to_pylist() for name in ("k", "n", "s")), *bounds, strict=True))


LATE_TO_GO = [Change(1, "a", 0), Change(12, "a", 1), Change(1, "a", 0, RowKind.DELETE), Change(14, "a", 0)]


@pytest.mark.parametrize("windows", WINDOWS)
@settings(max_examples=examples(40), deadline=None)
@given(
    changes=changelogs(),
    cuts=st.lists(st.integers(1, 14), max_size=3),
    delay=st.sampled_from([0, 1, 4]),
    outer=st.booleans(),
)
@example(changes=LATE_TO_GO, cuts=[], delay=1, outer=True)
def test_the_answer_is_that_of_one_row_an_epoch(
    windows: str, changes: list[Change], cuts: list[int], delay: int, outer: bool
) -> None:
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        found = Chain(one, outer, WINDOWS[windows]).run(changes, cuts, delay)
        assert found == Chain(other, outer, WINDOWS[windows]).run(changes, list(range(1, 14)), delay)


def test_a_row_that_goes_too_late_was_there() -> None:
    with TemporaryDirectory() as root:
        found = Chain(root, True, WINDOWS["of a size"]).run(LATE_TO_GO, [], 1)
    assert {(n, we // 1000) for _, n, _, _, we in found} == {(1, 3), (1, 6), (2, 15), (2, 18)}
