"""OVER by event time against rows taken one by one, wherever the epochs are cut."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.operators.timed_epochs import TimedEpochs, pieces
from tests.tiers import examples
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.watermarks import END, NONE
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.over.by_time import OverByTimeSpec
from tidemill.operators.over.operator import OverFunction
from tidemill.operators.over.window import Frame
from tidemill.operators.rows.ordering import OrderKey

I64 = pa.int64()
COLUMNS = (("k", pa.string()), ("v", I64), ("t", pa.timestamp("us")))
ORDER = (OrderKey("t", True, True),)


@dataclass(frozen=True)
class Row:
    """``mark``: the watermark at which it came."""

    key: str | None
    time: int
    value: int | None
    number: int
    mark: int


@dataclass
class Naive:
    """Flink's operators: rows wait for the watermark; by key those that were given, and when the last was."""

    spec: OverByTimeSpec
    waiting: list[Row] = field(default_factory=list)
    given: dict[str | None, list[Row]] = field(default_factory=dict)
    shown: list[tuple[Any, ...]] = field(default_factory=list)
    late: int = 0

    def take(self, row: Row) -> None:
        self.reach(row.mark)
        given = self.past(row.key, row.mark)
        behind = (
            row.time <= row.mark if self.spec.by_watermark else bool(given) and row.time <= given[-1].time
        )
        if behind:
            self.late += 1
        else:
            self.waiting.append(row)

    def past(self, key: str | None, mark: int) -> list[Row]:
        """The rows that the key was given, if they are not forgotten."""
        given, memory = self.given.get(key, []), self.spec.memory
        if memory is not None and given and mark > given[-1].time + memory:
            return []
        return given

    def reach(self, mark: int) -> None:
        due = [r for r in self.waiting if r.time <= mark and (r.mark < mark or mark == END)]
        self.waiting = [r for r in self.waiting if r not in due]
        for key in {r.key for r in due}:
            rows = sorted((r for r in due if r.key == key), key=lambda r: (r.time, r.number))
            for time in sorted({r.time for r in rows}):
                peers = [r for r in rows if r.time == time]
                past = self.past(key, max(time - 1, *(r.mark for r in peers)))
                both = [*past, *peers]
                self.given[key] = both
                for place, row in enumerate(both[len(past) :], start=len(past)):
                    values = (_value(f, both, place) for f in self.spec.functions)
                    self.shown.append((row.number, *values))


def _value(function: OverFunction, rows: list[Row], at: int) -> Any:
    """``rows`` up to the last peer of the one ``at``."""
    call, frame = function.call, function.frame
    if call.function == "ROW_NUMBER":
        return at + 1
    if call.function == "RANK":
        return 1 + sum(r.time < rows[at].time for r in rows)
    if call.function == "DENSE_RANK":
        return len({r.time for r in rows})
    if call.function == "LAG":
        return rows[at - 1].value if at else None
    if frame.rows:
        low = 0 if frame.lower is None else max(at + frame.lower, 0)
        chosen = rows[low : at + 1 + (frame.upper or 0)]
    else:
        first = NONE if frame.lower is None else rows[at].time + frame.lower // 1000
        chosen = [r for r in rows if first <= r.time <= rows[at].time + (frame.upper or 0) // 1000]
    values = [r.value for r in chosen if r.value is not None]
    if call.function == "COUNT":
        return len(set(values)) if call.distinct else len(values) if call.args else len(chosen)
    if call.function == "FIRST_VALUE":
        return values[0] if values else None
    if call.function == "SUM":
        return sum(values) if values else None
    return (min if call.function == "MIN" else max)(values, default=None)


def function(name: str, *args: str, frame: Frame, distinct: bool = False) -> OverFunction:
    call = AggregateSpec(
        function=name,
        args=args,
        arg_types=(I64,) * len(args),
        result=I64,
        name=f"{name} {args} {distinct} {frame}",
        distinct=distinct,
    )
    return OverFunction(call=call, order=ORDER, frame=frame)


def rows(lower: int | None, upper: int = 0) -> Frame:
    return Frame(rows=True, lower=lower, upper=upper)


def span(lower: int | None, upper: int = 0) -> Frame:
    """In ms."""
    return Frame(rows=False, lower=None if lower is None else lower * 1000, upper=upper * 1000)


def spec_of(*functions: OverFunction, keyed: bool = True, lag: int | None = 0) -> OverByTimeSpec:
    return OverByTimeSpec(
        columns=COLUMNS,
        partition=("k",) if keyed else (),
        time="t",
        functions=functions,
        lag=lag,
        sequence=True,
        keeps_time=True,
    )


_ALL = span(None)
SHAPES = {
    "rows back": spec_of(
        function("SUM", "v", frame=rows(-2)),
        function("MAX", "v", frame=rows(-1)),
        function("COUNT", frame=rows(0)),
    ),
    "rows back, one key": spec_of(
        function("SUM", "v", frame=rows(-3, -1)), function("COUNT", frame=rows(-3)), keyed=False
    ),
    "time back": spec_of(
        function("SUM", "v", frame=span(-4)), function("COUNT", "v", frame=span(-9), distinct=True)
    ),
    "time back, one key": spec_of(function("MIN", "v", frame=span(-6)), keyed=False),
    "this moment": spec_of(function("COUNT", frame=span(0))),
    "rows and time back": spec_of(function("SUM", "v", frame=rows(-1)), function("SUM", "v", frame=span(-5))),
    "from the start": spec_of(
        function("SUM", "v", frame=rows(None)),
        function("SUM", "v", frame=_ALL),
        function("COUNT", "v", frame=_ALL, distinct=True),
        function("FIRST_VALUE", "v", frame=_ALL),
        function("MAX", "v", frame=rows(None)),
    ),
    "from the start, one key": spec_of(function("COUNT", frame=_ALL), keyed=False),
    "ranks": spec_of(*(function(f, frame=_ALL) for f in ("ROW_NUMBER", "RANK", "DENSE_RANK"))),
    "the row before": spec_of(function("LAG", "v", frame=_ALL), lag=1),
    "the row before, of all": spec_of(function("LAG", "v", frame=_ALL), lag=None),
    "all in one": spec_of(
        function("LAG", "v", frame=_ALL),
        function("SUM", "v", frame=rows(None)),
        function("SUM", "v", frame=rows(-2)),
        function("COUNT", frame=span(-4)),
        lag=1,
    ),
}


@st.composite
def arrivals(draw: st.DrawFn) -> list[Row]:
    delay = draw(st.sampled_from([0, 0, 2, 8, 40]))
    found: list[Row] = []
    mark, now = NONE, 0
    for number in range(draw(st.integers(0, 30))):
        now += draw(st.integers(0, 4))
        time = now - draw(st.sampled_from([0, 0, 0, 0, 1, 3, 9, 20]))
        key = draw(st.sampled_from(["a", "a", "b", None]))
        found.append(Row(key, time, draw(st.sampled_from([1, 2, 5, None])), number, mark))
        mark = max(mark, time - delay)
    return found


def table_of(came: list[Row]) -> pa.Table:
    """Blocks in another order than that of arrival."""
    came = [*came[1::2], *came[::2]]
    keys = pa.array([r.key for r in came], pa.string())
    return pa.table(
        {
            "k": keys,
            "v": pa.array([r.value for r in came], I64),
            "t": pa.array([r.time * 1000 for r in came], I64).cast(pa.timestamp("us")),
            "$seq": pa.array([r.number for r in came], I64),
            "$wm": pa.array([r.mark for r in came], I64),
            "$hash": pa.array(hash_columns([keys], len(came))),
        }
    )


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=examples(100), deadline=None)
@example(
    came=[Row("a", 0, 1, 0, NONE), Row("b", -1, 1, 1, 0), Row("b", -1, 1, 2, 0)],
    cuts=[],
)
# A key that was forgotten gets a row of an earlier time than its last one's, within an epoch.
@example(
    came=[
        Row("b", 0, 1, 0, NONE),
        *(Row("a", 4 * n - 2, 1, n, 4 * n - 6) for n in range(1, 5)),
        Row("b", -6, 2, 5, 14),
    ],
    cuts=[],
)
@given(came=arrivals(), cuts=st.lists(st.integers(0, 30), max_size=6))
def test_as_row_by_row(shape: str, came: list[Row], cuts: list[int]) -> None:
    spec = SHAPES[shape]
    if not spec.partition:
        came = [Row(None, r.time, r.value, r.number, r.mark) for r in came]
    naive = Naive(spec)
    for row in came:
        naive.take(row)
    naive.reach(END)
    shown = []
    with tempfile.TemporaryDirectory() as root:
        kernel = TimedEpochs(root, spec)
        for first, behind in pieces(len(came), cuts):
            mark = END if behind == len(came) else came[behind].mark
            table = table_of(came[first:behind])
            shown += kernel.step(table if spec.partition else _unkeyed(table), mark=mark).to_pylist()
    names = [f.call.name for f in spec.functions]
    assert Counter((_stamp(r["t"]), r["k"], r["v"], *(r[n] for n in names)) for r in shown) == Counter(
        (came[n].time, came[n].key, came[n].value, *values) for n, *values in naive.shown
    )
    assert [r["$wm"] for r in shown] == sorted(r["$wm"] for r in shown)
    assert all(r["$wm"] + 1 >= _stamp(r["t"]) for r in shown)
    assert [r["$seq"] for r in shown] == sorted({r["$seq"] for r in shown})
    assert kernel.late == naive.late


def _unkeyed(table: pa.Table) -> pa.Table:
    return table.set_column(5, "$hash", pa.array(hash_columns([], len(table))))


def _stamp(value: Any) -> int:
    stamp: int = round(value.timestamp() * 1000)
    return stamp
