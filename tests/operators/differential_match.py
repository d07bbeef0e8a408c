"""The search for patterns against a recursion over all ways to match, wherever epochs are cut."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.naive_match import Condition, NaiveVariable, Row, Taken, matches
from tests.operators.timed_epochs import TimedEpochs, pieces
from tests.tiers import examples
from tidemill.changelog.watermarks import END, Running
from tidemill.errors import ExecutionError
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.join.residual import ColumnTerm, ComputedTerm, Residual, Term
from tidemill.operators.match import operator
from tidemill.operators.match.operator import MatchSpec
from tidemill.operators.match.pattern import EVERY, Folded, Piece, Reference, Variable
from tidemill.operators.match.skip import Skip, SkipTo
from tidemill.operators.rows.ordering import OrderKey

BIGINT = pa.int64()
COLUMNS = (
    ("k", BIGINT),
    ("t", pa.timestamp("us")),
    ("v", BIGINT),
    ("low", pa.bool_()),
    ("odd", pa.bool_()),
    ("zero", BIGINT),
)
VALUES = st.integers(0, 4)


def _sum(variable: int) -> Folded:
    call = AggregateSpec(function="SUM", args=("v",), arg_types=(BIGINT,), result=BIGINT, name="s")
    return Folded(call=call, variable=variable)


PIECES: tuple[tuple[str, Piece], ...] = (
    ("first", Reference(column="v", variable=0, last=False)),
    ("before", Reference(column="v", variable=EVERY, offset=1)),
    ("own1", Reference(column="v", variable=1, offset=1, absent="zero")),
    ("sum1", _sum(1)),
)
CURRENT: Term = ColumnTerm("v")


def _compare(operation: str, piece: str) -> Residual:
    return Residual(ComputedTerm(operation, (CURRENT, ColumnTerm(piece))))


def _values(rows: list[Row]) -> list[int]:
    return [r["v"] for r in rows]


def _none_before(taken: Taken, row: Row) -> int | None:
    whole = _values([r for own in taken for r in own])
    return whole[-2] if len(whole) > 1 else None


def _falls(taken: Taken, number: int, row: Row) -> bool:
    before = _none_before(taken, row)
    return before is not None and row["v"] < before


def _above_first(taken: Taken, number: int, row: Row) -> bool:
    return bool(taken[0]) and row["v"] >= taken[0][0]["v"]


def _grows(taken: Taken, number: int, row: Row) -> bool:
    own = _values(taken[1]) if len(taken) > 1 else []
    return row["v"] > (own[-2] if len(own) > 1 else 0)


def _small_sum(taken: Taken, number: int, row: Row) -> bool:
    own = _values(taken[1]) if len(taken) > 1 else []
    return bool(own) and row["v"] <= sum(own)


CONDITIONS: dict[str, tuple[Residual | None, Residual | None, Condition]] = {
    "any": (None, None, lambda taken, number, row: True),
    "low": (Residual(ColumnTerm("low")), None, lambda taken, number, row: row["v"] < 2),
    "odd": (Residual(ColumnTerm("odd")), None, lambda taken, number, row: row["v"] % 2 == 1),
    "falls": (None, _compare("<", "before"), _falls),
    "above": (None, _compare(">=", "first"), _above_first),
    "low and above": (
        Residual(ColumnTerm("low")),
        _compare(">=", "first"),
        lambda taken, number, row: row["v"] < 2 and _above_first(taken, number, row),
    ),
    "grows": (None, _compare(">", "own1"), _grows),
    "sum": (None, _compare("<=", "sum1"), _small_sum),
}
QUANTIFIERS: tuple[tuple[int, int | None], ...] = ((1, 1), (0, 1), (0, None), (1, None), (2, 2), (1, 3))


@st.composite
def _patterns(draw: st.DrawFn) -> tuple[list[Variable], list[NaiveVariable]]:
    size = draw(st.integers(2, 4))
    made, naive = [], []
    for number in range(size):
        least, most = draw(st.sampled_from(QUANTIFIERS))
        greedy, chosen = draw(st.booleans()), draw(st.sampled_from(sorted(CONDITIONS)))
        alone, condition, plain = CONDITIONS[chosen]
        made.append(
            Variable(
                name="ABCD"[number], least=least, most=most, greedy=greedy, alone=alone, condition=condition
            )
        )
        naive.append(NaiveVariable(least, most, greedy, plain))
    if all(v.least == 0 for v in naive):
        made[0] = Variable(name="A")
        naive[0] = NaiveVariable(1, 1, True, CONDITIONS["any"][2])
    return made, naive


def _spec(variables: list[Variable], skip: Skip, within: int | None) -> MatchSpec:
    counts = [
        (
            f"n{i}",
            BIGINT,
            Folded(
                call=AggregateSpec(function="COUNT", args=(), arg_types=(), result=BIGINT, name=f"n{i}"),
                variable=i,
            ),
        )
        for i in range(len(variables))
    ]
    return MatchSpec(
        columns=COLUMNS,
        keys=("k",),
        order=(OrderKey("t", True, True), OrderKey("v", False, False)),
        variables=tuple(variables),
        conditions=tuple((n, p) for n, p in PIECES if (n != "sum1" and n != "own1") or len(variables) > 1),
        results=(
            ("start", pa.timestamp("us"), Reference(column="t", variable=EVERY, last=False)),
            ("v0", BIGINT, Reference(column="v", variable=EVERY, last=False)),
            ("end", pa.timestamp("us"), Reference(column="t", variable=EVERY)),
            *counts,
            ("s", BIGINT, _sum(1)),
        ),
        skip=skip,
        within=within,
        keeps_time=True,
    )


def _expected(
    naive: list[NaiveVariable], rows: list[Row], skip: tuple[str, int], within: int | None
) -> list[tuple[int | None, ...]]:
    by_key: dict[int, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda r: (r["t"], -r["v"])):
        by_key[row["k"]].append(row)
    found: list[tuple[int | None, ...]] = []
    for key, own in by_key.items():
        for taken in matches(naive, own, skip, within):
            whole = [r for part in taken for r in part]
            total = sum(_values(taken[1])) if taken[1] else None
            sizes = map(len, taken)
            found.append((key, whole[0]["t"], whole[0]["v"], whole[-1]["t"], *sizes, total))
    return found


def _table(rows: list[Row], marks: list[int], first: int) -> pa.Table:
    values = [r["v"] for r in rows]
    return pa.table(
        {
            "k": pa.array([r["k"] for r in rows], BIGINT),
            "t": pa.array([r["t"] * 1000 for r in rows], pa.timestamp("us")),
            "v": pa.array(values, BIGINT),
            "low": pa.array([v < 2 for v in values], pa.bool_()),
            "odd": pa.array([v % 2 == 1 for v in values], pa.bool_()),
            "zero": pa.array([0] * len(rows), BIGINT),
            "$seq": pa.array(range(first, first + len(rows)), BIGINT),
            "$wm": pa.array(marks, BIGINT),
        }
    )


@settings(max_examples=examples(400), deadline=None)
@given(
    pattern=_patterns(),
    data=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12), VALUES), max_size=16),
    skip=st.tuples(st.sampled_from([s.name for s in SkipTo]), st.integers(0, 1)),
    within=st.sampled_from([None, None, 1, 3, 6]),
    delay=st.sampled_from([0, 2, 30]),
    cuts=st.lists(st.integers(0, 16), max_size=5),
    slice_rows=st.sampled_from([1, 4, operator.SLICE_ROWS]),
)
def test_as_by_recursion(
    pattern: tuple[list[Variable], list[NaiveVariable]],
    data: list[tuple[int, int, int]],
    skip: tuple[str, int],
    within: int | None,
    delay: int,
    cuts: list[int],
    slice_rows: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    variables, naive = pattern
    rows = [{"k": k, "t": t, "v": v} for k, t, v in data]
    running = Running()
    marks = running.before(np.array([r["t"] - delay for r in rows], np.int64)).tolist()
    timely = [r for r, mark in zip(rows, marks, strict=True) if r["t"] > mark]
    spec = _spec(variables, Skip(to=SkipTo[skip[0]], variable=skip[1]), within)
    epochs = TimedEpochs(str(tmp_path_factory.mktemp("state")), spec)
    try:
        expected = _expected(naive, timely, skip, within)
    except LookupError:
        expected = None
    shown: list[tuple[int | None, ...]] = []
    known: list[int] = []

    def run() -> None:
        for first, last in pieces(len(rows), cuts):
            mark = max([r["t"] - delay for r in rows[:last]], default=epochs.mark)
            _collect(epochs.step(_table(rows[first:last], marks[first:last], first), mark=mark), shown, known)
        _collect(epochs.step(_table([], [], 0), mark=END), shown, known)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operator, "SLICE_ROWS", slice_rows)
        if expected is None:
            with pytest.raises(ExecutionError, match="Could not skip"):
                run()
            return
        run()
    assert sorted(map(str, shown)) == sorted(map(str, expected))
    assert known == sorted(known)
    assert epochs.late == len(rows) - len(timely)


def _collect(output: pa.Table, shown: list[tuple[int | None, ...]], known: list[int]) -> None:
    plain = output.set_column(1, "start", _millis(output, "start"))
    plain = plain.set_column(3, "end", _millis(output, "end"))
    known += plain.column("$wm").to_pylist()
    shown += zip(*(plain.column(n).to_pylist() for n in plain.column_names if n != "$wm"), strict=True)


def _millis(table: pa.Table, name: str) -> pa.Array:
    return pa.array([t // 1000 for t in table.column(name).cast(BIGINT).to_pylist()], BIGINT)
