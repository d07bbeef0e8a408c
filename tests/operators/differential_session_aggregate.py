"""Aggregation in sessions against a dict of lists, row by row, wherever the epochs are cut."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.epochs import TINY
from tests.tiers import examples
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.watermarks import END, NONE
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.api import AGAIN, EpochContext
from tidemill.operators.window.clock import Clock
from tidemill.operators.window.output import WindowColumns
from tidemill.operators.window.retractable_session import RetractableSessionSpec
from tidemill.operators.window.session import SessionAggregateSpec
from tidemill.state.store import StateStore

Spec = SessionAggregateSpec | RetractableSessionSpec

_GAP = 5
_COUNT = AggregateSpec(function="COUNT", name="n", args=(), arg_types=(), result=pa.int64())
_SUM = AggregateSpec(function="SUM", name="s", args=("v",), arg_types=(pa.int64(),), result=pa.int64())
_DISTINCT = AggregateSpec(
    function="COUNT", name="d", args=("v",), arg_types=(pa.int64(),), result=pa.int64(), distinct=True
)
_LARGEST = AggregateSpec(function="MAX", name="m", args=("v",), arg_types=(pa.int64(),), result=pa.int64())
_KEY = (("k", pa.string()),)

SHAPES = {
    "accumulated": ((_COUNT, _SUM, _LARGEST), _KEY, False),
    "accumulated, one key": ((_COUNT,), (), False),
    "no calls": ((), _KEY, False),
    "collected": ((_COUNT, _DISTINCT), _KEY, False),
    "collected, one key": ((_DISTINCT,), (), False),
    "counted, rows go": ((_COUNT, _SUM), _KEY, True),
    "collected, rows go": ((_COUNT, _LARGEST, _DISTINCT), _KEY, True),
}


@dataclass(frozen=True)
class Row:
    key: str | None
    time: int
    value: int
    mark: int
    weight: int = 1
    own: int = NONE
    """The watermark that this row alone makes."""


@dataclass
class Session:
    start: int
    end: int
    rows: list[Row] = field(default_factory=list)


@dataclass
class Naive:
    """Open sessions by key; what has fired, as (key, start, end, results)."""

    calls: tuple[AggregateSpec, ...]
    open: dict[str | None, list[Session]] = field(default_factory=dict)
    fired: list[tuple[Any, ...]] = field(default_factory=list)
    late: int = 0

    def reach(self, mark: int) -> None:
        for key, sessions in self.open.items():
            for session in [s for s in sessions if s.end - 1 <= mark]:
                sessions.remove(session)
                self.show(key, session)

    def holds(self, row: Row) -> bool:
        """Whether an open session has ``row``."""
        found = [r for s in self.open.get(row.key, []) for r in s.rows]
        same = [r.weight for r in found if (r.time, r.value) == (row.time, row.value)]
        return sum(same) > 0

    def has_time(self, row: Row) -> bool:
        """Whether an open session has rows of its time."""
        return any(r.time == row.time for s in self.open.get(row.key, []) for r in s.rows)

    def take_back(self, row: Row) -> None:
        """What is left of the session that has ``row`` are sessions of their own."""
        sessions = self.open[row.key]
        (old,) = (s for s in sessions if any(r.time == row.time for r in s.rows))
        sessions.remove(old)
        counts: dict[int, int] = {}
        for r in (*old.rows, row):
            counts[r.time] = counts.get(r.time, 0) + r.weight
        made: list[Session] = []
        for time in sorted(t for t, n in counts.items() if n > 0):
            if not made or time > made[-1].end:
                made.append(Session(time, time))
            made[-1].end = time + _GAP
            made[-1].rows += [r for r in (*old.rows, row) if r.time == time]
        sessions += made

    def add(self, row: Row) -> None:
        sessions = self.open.setdefault(row.key, [])
        met = [s for s in sessions if s.start <= row.time + _GAP and s.end >= row.time]
        whole = Session(
            min([row.time, *(s.start for s in met)]), max([row.time + _GAP, *(s.end for s in met)])
        )
        if whole.end - 1 <= row.mark:
            self.late += 1
            return
        whole.rows = [*(r for s in met for r in s.rows), row]
        self.open[row.key] = [*(s for s in sessions if s not in met), whole]

    def show(self, key: str | None, session: Session) -> None:
        weights: dict[int, int] = {}
        for row in session.rows:
            weights[row.value] = weights.get(row.value, 0) + row.weight
        values = {v: w for v, w in weights.items() if w}
        if values:
            results = {
                "n": sum(values.values()),
                "s": sum(v * w for v, w in values.items()),
                "d": len(values),
                "m": max(values),
            }
            self.fired.append((key, session.start, session.end, *(results[c.name] for c in self.calls)))


@dataclass
class Kernel:
    root: str
    spec: Spec
    manifest: str | None = None
    number: int = 0
    mark: int = NONE
    late: int = 0

    def step(self, rows: list[tuple[int, Row]], mark: int) -> list[tuple[Any, ...]]:
        return self.run(self.spec, table_of(rows, self.spec.retracts), mark) or []

    def run(self, spec: Spec, table: pa.Table, mark: int) -> list[tuple[Any, ...]] | None:
        """What is shown; None, and nothing done, where the step wants its rows as they are."""
        store = StateStore.open(self.root, "op", 0, self.manifest, self.number, options=TINY)
        context = EpochContext(epoch=self.number, time=0, partition=0, watermark=mark, before=self.mark)
        output = spec.step((table,), store, context)
        assert output.schema.equals(self.spec.output_schema())
        if AGAIN in context.notes:
            return None
        self.manifest, self.mark = store.flush(), mark
        self.number += 1
        self.late += context.late.count
        names = ["ws", "we", *(c.name for c in self.spec.calls)]
        keys = output.column("k").to_pylist() if self.spec.keys else [None] * len(output)
        columns = [output.column(n) for n in names]
        shown = [c.cast(pa.int64()).to_pylist() for c in columns]
        return [(key, ws // 1000, we // 1000, *rest) for key, ws, we, *rest in zip(keys, *shown, strict=True)]


def table_of(rows: list[tuple[int, Row]], retracts: bool) -> pa.Table:
    """Blocks in another order than that of arrival, which ``$seq`` tells."""
    rows = [*rows[1::2], *rows[::2]]
    columns: dict[str, pa.Array] = {
        "k": pa.array([r.key for _, r in rows], pa.string()),
        "v": pa.array([r.value for _, r in rows], pa.int64()),
        "t": pa.array([r.time * 1000 for _, r in rows], pa.int64()).cast(pa.timestamp("us")),
        "$seq": pa.array([i for i, _ in rows], pa.int64()),
        "$wm": pa.array([r.mark for _, r in rows], pa.int64()),
    }
    if retracts:
        columns["$kind"] = pa.array([0 if r.weight > 0 else 3 for _, r in rows], pa.int8())
    return pa.table(columns)


def spec_of(
    calls: tuple[AggregateSpec, ...], keys: tuple[tuple[str, pa.DataType], ...], retracts: bool
) -> Spec:
    return (RetractableSessionSpec if retracts else SessionAggregateSpec)(
        keys=keys,
        calls=calls,
        time="t",
        gap=_GAP,
        clock=Clock(),
        columns=WindowColumns(start="ws", end="we"),
        output=(*(k for k, _ in keys), *(c.name for c in calls), "ws", "we"),
        retracts=retracts,
    )


@st.composite
def arrivals(draw: st.DrawFn) -> list[Row]:
    delay = draw(st.sampled_from([0, 1, 3, 8, 40]))
    rows: list[Row] = []
    mark, now = NONE, 0
    for _ in range(draw(st.integers(0, 30))):
        if rows and draw(st.integers(0, 4)) == 0:
            old = draw(st.sampled_from(rows))
            rows.append(Row(old.key, old.time, old.value, mark, -1))
            continue
        now += draw(st.integers(-2, 6))
        time = now - draw(st.sampled_from([0, 0, 0, 1, 4, 5, 6, 12]))
        key = draw(st.sampled_from(["a", "b", None]))
        rows.append(Row(key, time, draw(st.integers(0, 3)), mark, own=time - delay))
        mark = max(mark, time - delay)
    return rows


def _order(row: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    return str(row[0]), row[1:]


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=examples(60), deadline=None)
@given(rows=arrivals(), cuts=st.lists(st.integers(0, 30), max_size=6))
def test_sessions_are_those_of_a_dict_of_lists(shape: str, rows: list[Row], cuts: list[int]) -> None:
    calls, keys, retracts = SHAPES[shape]
    naive, taken = Naive(calls), []
    for row in rows:
        if not keys:
            row = Row(None, row.time, row.value, row.mark, row.weight)
        naive.reach(row.mark)
        if row.weight > 0:
            naive.add(row)
        elif retracts and naive.holds(row):
            naive.take_back(row)
        elif retracts and not naive.has_time(row) and row.time + _GAP - 1 <= row.mark:
            naive.late += 1
        else:
            continue
        taken.append(row)
    naive.reach(END)
    bounds = [0, *sorted(c for c in cuts if c <= len(taken)), len(taken)]
    with tempfile.TemporaryDirectory() as root:
        kernel, shown = Kernel(root, spec_of(calls, keys, retracts)), []
        for first, last in pairwise(bounds):
            reached = max((r.mark for r in taken[: last + 1]), default=NONE)
            shown += kernel.step(list(enumerate(taken))[first:last], reached)
        shown += kernel.step([], END)
    assert sorted(shown, key=_order) == sorted(naive.fired, key=_order)
    assert kernel.late == naive.late


@dataclass(frozen=True)
class Tasks:
    """Reads an epoch's rows in tasks, ``combining`` those of some."""

    spec: Spec
    settling: int

    def input(self, tasks: list[list[tuple[int, Row]]], combining: list[bool]) -> tuple[Spec, pa.Table]:
        """As the exchange brings it: each task's own watermarks, lifted to those of all rows before it."""
        raw: list[pa.Table] = []
        combined: list[pa.Table] = []
        for rows, combines in zip(tasks, combining, strict=True):
            if rows:
                table = self._made(rows, combines)
                marks = [max(m, rows[0][1].mark) for m in table.column("$wm").to_pylist()]
                table = table.set_column(
                    table.schema.get_field_index("$wm"), "$wm", pa.array(marks, pa.int64())
                )
                (combined if combines else raw).append(table)
        if not combined:
            return self.spec, pa.concat_tables(raw)
        return self.spec.merged(raw, combined)

    def _made(self, rows: list[tuple[int, Row]], combines: bool) -> pa.Table:
        own, reached = [], NONE
        for number, row in rows:
            own.append((number, replace(row, mark=reached)))
            reached = max(reached, row.own)
        table = table_of(own, False)
        hashes = hash_columns([table.column(name) for name, _ in self.spec.keys], len(table))
        table = table.append_column("$hash", pa.array(hashes, pa.uint64()))
        return replace(self.spec.local, settling=self.settling).combine(table) if combines else table


@pytest.mark.parametrize("shape", [name for name, (_, _, retracts) in SHAPES.items() if not retracts])
@settings(max_examples=examples(120), deadline=None)
@given(
    rows=arrivals(),
    cuts=st.lists(st.integers(0, 30), max_size=4),
    tasks=st.lists(st.integers(0, 30), max_size=6),
    combining=st.lists(st.booleans(), min_size=12, max_size=12),
    settling=st.sampled_from([0, 0, 2, 5]),
)
def test_rows_put_together_where_they_are_made_are_of_the_same_sessions(
    shape: str, rows: list[Row], cuts: list[int], tasks: list[int], combining: list[bool], settling: int
) -> None:
    calls, keys, _ = SHAPES[shape]
    taken = [row if keys else replace(row, key=None) for row in rows if row.weight > 0]
    spec = spec_of(calls, keys, False)
    bounds = [0, *sorted(c for c in cuts if c <= len(taken)), len(taken)]
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        plain, kernel = Kernel(one, spec), Kernel(other, spec)
        for first, last in pairwise(bounds):
            numbered = list(enumerate(taken))[first:last]
            reached = max((r.mark for r in taken[: last + 1]), default=NONE)
            expected = plain.step(numbered, reached)
            if not numbered:
                assert kernel.step(numbered, reached) == expected
                continue
            ends = [first, *sorted(t for t in tasks if first < t < last), last]
            parts = [numbered[a - first : b - first] for a, b in pairwise(ends)]
            shown = kernel.run(*Tasks(spec, settling).input(parts, combining[: len(parts)]), reached)
            shown = kernel.step(numbered, reached) if shown is None else shown
            assert sorted(shown, key=_order) == sorted(expected, key=_order)
        assert sorted(kernel.step([], END), key=_order) == sorted(plain.step([], END), key=_order)
    assert kernel.late == plain.late


def test_rows_of_a_key_become_one() -> None:
    """But those that are behind the watermark, and where it may have been further before the task."""
    spec = spec_of((_COUNT, _DISTINCT), _KEY, False)
    rows = [Row("a", t, t % 2, NONE, own=t - 3) for t in (10, 11, 12, 2, 13, 14, 30, 31)]
    rows += [Row("b", 32, 1, NONE, own=29), Row("b", 33, 1, NONE, own=30)]
    spec_, table = Tasks(spec, 0).input([list(enumerate(rows))], [True])
    made = sorted(zip(*(table.column(n).to_pylist() for n in ("k", "v", "$seq", "$rows")), strict=True))
    assert made == [
        ("a", 0, 0, 3),
        ("a", 0, 3, 1),
        ("a", 0, 4, 2),
        ("a", 0, 6, 2),
        ("a", 1, 0, 3),
        ("a", 1, 4, 2),
        ("a", 1, 6, 2),
        ("b", 1, 8, 2),
    ]
    with tempfile.TemporaryDirectory() as root:
        kernel = Kernel(root, spec)
        assert kernel.run(spec_, table, 20) == [("a", 10, 19, 5, 2)]
        assert kernel.late == 1
        # What the task did not know: time had come to 40 before its first row.
        late = [replace(row, mark=40) for row in rows]
        assert kernel.run(*Tasks(spec, 0).input([list(enumerate(late))], [True]), 40) is None


@pytest.mark.parametrize(
    ("keys", "apart", "shrinks"), [(20_000, 1, False), (300, 1, False), (20_000, 1_000, True), (4, 1, True)]
)
def test_rows_are_put_together_where_that_makes_them_fewer(keys: int, apart: int, shrinks: bool) -> None:
    """``apart``: so many rows of a key come one after the other, one each millisecond."""
    spec = spec_of((_COUNT,), _KEY, False)
    rows = [Row(f"k{i // apart % keys}", i, 0, NONE, own=i - 50) for i in range(40_000)]
    _, table = Tasks(spec, 0).input([list(enumerate(rows))], [False])
    combined = spec.combine(table)
    assert (combined is not table) == shrinks
    if shrinks:
        assert len(combined) <= len(table) / 2
