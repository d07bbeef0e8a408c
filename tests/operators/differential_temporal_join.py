"""The temporal join against two lists that are looked through row by row, whatever the epochs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.timed_epochs import TimedEpochs
from tests.tiers import examples
from tidemill.changelog.watermarks import END, NONE, Running, all_held_back, held_back
from tidemill.operators.api import EpochContext
from tidemill.operators.join.shape import JoinSide
from tidemill.operators.temporal_join.operator import TemporalJoinSpec
from tidemill.state.spine import SpineOptions
from tidemill.state.store import StateStore

_STAMP = pa.timestamp("us")
_TINY = SpineOptions(fuel=4, fuel_per_row=1, slice_rows=2)
SPEC = TemporalJoinSpec(
    left=JoinSide(
        columns=(("l0", _STAMP), ("l1", pa.string()), ("l2", pa.int64())),
        keys=("l1",),
        output=("l2",),
        retracts=False,
    ),
    right=JoinSide(
        columns=(("r0", _STAMP), ("r1", pa.string()), ("r2", pa.int64()), ("$ok", pa.bool_())),
        keys=("r1",),
        output=("r2",),
        retracts=True,
    ),
    times=("l0", "r0"),
    null_safe=(False,),
    outer=True,
    alive="$ok",
    keeps_time=True,
)


@dataclass(frozen=True)
class Left:
    time: int
    key: str | None


@dataclass(frozen=True)
class Version:
    time: int
    key: str | None
    kind: int = 0
    passes: bool | None = True


Shown = list[tuple[int, int | None, int]]


def marks_of(times: list[int], delay: int, behind: int) -> list[int]:
    running = Running().before(np.array([t - delay for t in times], np.int64))
    return [int(m) for m in all_held_back(running, behind)]


def naive(spec: TemporalJoinSpec, left: list[Left], right: list[Version], delays: tuple[int, int]) -> Shown:
    """Row by row: who came when the watermark had reached what."""
    behind = spec.behind
    versions: list[tuple[int, int, Version]] = []
    newest: dict[str | None, int] = {}
    for number, (version, mark) in enumerate(
        zip(right, marks_of([v.time for v in right], delays[1], behind[1]), strict=True)
    ):
        if (version.key is None and not spec.null_safe[0]) or version.kind == 1:
            continue
        if spec.latest and version.time < newest.get(version.key, NONE):
            continue
        newest[version.key] = version.time
        versions.append((mark if mark >= version.time else NONE, number, version))
    shown: Shown = []
    marks = marks_of([row.time for row in left], delays[0], behind[0])
    for number, (row, mark) in enumerate(zip(left, marks, strict=True)):
        due = max(row.time, mark + 1)
        able = row.key is not None or spec.null_safe[0]
        seen = [
            (v.time, late, n, v)
            for late, n, v in versions
            if v.key == row.key and v.time <= max(row.time, due - 1) and late < due
        ]
        last = max(seen, default=None, key=lambda x: x[:3])
        found = None
        if able and last is not None and last[0] <= row.time and last[3].kind != 3 and last[3].passes:
            found = last[2]
        if found is not None or spec.outer:
            shown.append((number, found, due - 1))
    return shown


def left_table(rows: list[Left], marks: Any, first: int) -> pa.Table:
    return pa.table(
        {
            "l0": pa.array([x.time * 1000 for x in rows], _STAMP),
            "l1": pa.array([x.key for x in rows], pa.string()),
            "l2": pa.array(range(first, first + len(rows)), pa.int64()),
            "$wm": pa.array(marks, pa.int64()),
        }
    )


def right_table(rows: list[Version], marks: Any, first: int) -> pa.Table:
    numbers = pa.array(range(first, first + len(rows)), pa.int64())
    return pa.table(
        {
            "r0": pa.array([x.time * 1000 for x in rows], _STAMP),
            "r1": pa.array([x.key for x in rows], pa.string()),
            "r2": numbers,
            "$ok": pa.array([x.passes for x in rows], pa.bool_()),
            "$kind": pa.array([x.kind for x in rows], pa.int8()),
            "$seq": numbers,
            "$wm": pa.array(marks, pa.int64()),
        }
    )


def run(
    spec: TemporalJoinSpec,
    left: list[Left],
    right: list[Version],
    delays: tuple[int, int],
    cuts: list[tuple[int, int]],
    root: str,
) -> Shown:
    """The kernel, over epochs that end at ``cuts`` (rows of the left, of the right)."""
    edges = (
        sorted({min(a, len(left)) for a, _ in cuts} | {0}),
        sorted({min(b, len(right)) for _, b in cuts} | {0}),
    )
    count = max(map(len, edges)) + 1
    ends = [
        [*e[1:], *[n] * (count - len(e) + 1)] for e, n in zip(edges, (len(left), len(right)), strict=True)
    ]
    running = Running(), Running()
    base: str | None = None
    before, starts = NONE, [0, 0]
    shown: Shown = []
    for epoch in range(1, count + 1):
        stop = [e[epoch - 1] for e in ends]
        l_part, r_part = left[starts[0] : stop[0]], right[starts[1] : stop[1]]
        l_marks = running[0].before(np.array([x.time - delays[0] for x in l_part], np.int64))
        r_marks = running[1].before(np.array([x.time - delays[1] for x in r_part], np.int64))
        inputs = (left_table(l_part, l_marks, starts[0]), right_table(r_part, r_marks, starts[1]))
        marks = [held_back(r.mark, b) for r, b in zip(running, spec.behind, strict=True)]
        watermark = END if epoch == count else min(marks)
        store = StateStore.open(root, "join", 0, base, epoch, attempt=str(epoch), options=_TINY)
        context = EpochContext(epoch=epoch, time=0, partition=0, watermark=watermark, before=before)
        output = spec.step(inputs, store, context)
        assert output.schema.equals(spec.output_schema())
        base, before, starts = store.flush(), watermark, stop
        rows = list(zip(*(output.column(i).to_pylist() for i in range(3)), strict=True))
        assert all(mark < watermark for *_, mark in rows)
        shown += rows
    return shown


KEYS = st.sampled_from(["a", "b", None])
LEFT = st.lists(st.builds(Left, time=st.integers(-3, 12), key=KEYS), max_size=12)
RIGHT = st.lists(
    st.builds(
        Version,
        time=st.integers(-3, 12),
        key=KEYS,
        kind=st.sampled_from([0, 0, 2, 2, 1, 3]),
        passes=st.sampled_from([True, True, True, False, None]),
    ),
    max_size=12,
)


@settings(max_examples=examples(300), deadline=None)
@given(
    left=LEFT,
    right=RIGHT,
    delays=st.sampled_from([(0, 0), (2, 2), (5, 1), (0, 3), (100, 0)]),
    cuts=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=6),
    outer=st.booleans(),
    latest=st.booleans(),
    null_safe=st.booleans(),
)
def test_as_row_by_row(
    left: list[Left],
    right: list[Version],
    delays: tuple[int, int],
    cuts: list[tuple[int, int]],
    outer: bool,
    latest: bool,
    null_safe: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    slowest = max(delays)
    spec = replace(
        SPEC,
        behind=(slowest - delays[0], slowest - delays[1]),
        outer=outer,
        latest=latest,
        null_safe=(null_safe,),
    )
    made = run(spec, left, right, delays, cuts, _folder(tmp_path_factory))
    assert sorted(made, key=lambda x: x[0]) == naive(spec, left, right, delays)


def test_a_version_lives_as_long_as_rows_ask_for_it(tmp_path: Path) -> None:
    """10 ms of processing time after it came or was last asked for it is forgotten, as the view forgets that
    it had one."""
    kernel = TimedEpochs(str(tmp_path), replace(SPEC, state_ttl=10, latest=True))
    nothing = left_table([], [], 0), right_table([], [], 0)
    kernel.step(nothing[0], right_table([Version(1, "a"), Version(1, "b")], [NONE, NONE], 0), mark=1, time=0)
    found = []
    for now in (6, 12, 18, 40):
        rows = [Left(now, "a"), Left(now, "b")] if now in (18, 40) else [Left(now, "a")]
        output = kernel.step(left_table(rows, [NONE] * len(rows), 0), nothing[1], mark=now, time=now)
        found.append(output.column("r2").to_pylist())
    assert found == [[0], [0], [0, None], [None, None]]
    older = right_table([Version(0, "a")], [NONE], 7)
    kernel.step(nothing[0], older, mark=40, time=40)
    output = kernel.step(left_table([Left(41, "a")], [NONE], 0), nothing[1], mark=41, time=41)
    assert output.column("r2").to_pylist() == [7]


def _folder(factory: pytest.TempPathFactory) -> str:
    return str(factory.mktemp("state"))
