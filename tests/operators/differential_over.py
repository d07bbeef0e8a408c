"""OVER against lists: every function and frame, random changes, ties, epoch cuts, restarts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.differential_rank import (
    COLUMNS,
    NAMES,
    Row,
    _sortable,
    changes_of,
    rows_strategy,
    table_of,
)
from tests.operators.epochs import Epochs, fold
from tests.operators.naive_aggregate import freeze
from tests.tiers import examples
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.over.operator import OverFunction, OverSpec, with_results
from tidemill.operators.over.window import Frame
from tidemill.operators.rows.ordering import OrderKey

TYPES = dict(COLUMNS)
I64, F64 = pa.int64(), pa.float64()

small_rows = st.tuples(
    st.sampled_from(["a", None]),
    st.sampled_from([1, 2, 4, None]),
    st.sampled_from(["x", "yy", None]),
    st.sampled_from([0.5, -1.0, None]),
)
cuts_strategy = st.lists(
    st.lists(
        st.one_of(small_rows, st.integers(0, 9), st.tuples(st.integers(0, 9), rows_strategy)), max_size=7
    ),
    min_size=1,
    max_size=4,
)


def call(function: str, *args: str, result: pa.DataType, distinct: bool = False) -> AggregateSpec:
    return AggregateSpec(
        function=function,
        args=args,
        arg_types=tuple(TYPES[a] for a in args),
        result=result,
        name=f"{function} {args} {distinct}",
        distinct=distinct,
    )


def values(rows: list[Row], name: str) -> list[Any]:
    found = [row[NAMES.index(name)] for row in rows]
    return [v for v in found if v is not None]


def wrapped(number: int) -> int:
    return (number + 2**31) % 2**32 - 2**31


AGGREGATES: list[tuple[AggregateSpec, Callable[[list[Row]], Any]]] = [
    (call("COUNT", result=I64), len),
    (call("COUNT", "s", result=I64), lambda f: len(values(f, "s"))),
    (call("COUNT", "n", result=I64, distinct=True), lambda f: len(set(values(f, "n")))),
    (call("SUM", "n", result=pa.int32()), lambda f: wrapped(sum(v)) if (v := values(f, "n")) else None),
    (
        call("AVG", "n", result=pa.int32()),
        lambda f: math.trunc(sum(v) / len(v)) if (v := values(f, "n")) else None,
    ),
    (call("SUM", "x", result=F64), lambda f: sum(v) if (v := values(f, "x")) else None),
    (call("MIN", "s", result=pa.string()), lambda f: min(values(f, "s"), default=None)),
    (call("MAX", "n", result=pa.int32()), lambda f: max(values(f, "n"), default=None)),
    (call("FIRST_VALUE", "s", result=pa.string()), lambda f: next(iter(values(f, "s")), None)),
    (call("LAST_VALUE", "n", result=pa.int32()), lambda f: next(iter(values(f, "n")[::-1]), None)),
]
FRAMES = {
    f"{'ROWS' if rows else 'RANGE'} {lower}..{upper}": Frame(rows=rows, lower=lower, upper=upper)
    for rows in (True, False)
    for lower, upper in ((None, 0), (None, None), (0, None), (-1, 1), (-3, -2), (1, 2), (None, 1), (-1, None))
}
ORDER = OrderKey("n", True, True)


def frame_of(rows: list[Row], at: int, frame: Frame, order: OrderKey) -> list[Row]:
    if frame.rows:
        low = 0 if frame.lower is None else max(at + frame.lower, 0)
        high = len(rows) if frame.upper is None else max(at + frame.upper + 1, 0)
        return rows[low:high]
    keys = [_sortable(row[1], order) for row in rows]
    key = keys[at]

    def bound(offset: int | None, unbounded: float) -> tuple[float, float]:
        if offset is None:
            return unbounded, 0
        return key[0], key[1] + offset

    low_key, high_key = bound(frame.lower, -math.inf), bound(frame.upper, math.inf)
    return [row for row, k in zip(rows, keys, strict=True) if low_key <= k <= high_key]


def naive(live: list[Row], spec: OverSpec, results: Callable[[list[Row], int], list[Any]]) -> Counter[Any]:
    shown: Counter[Any] = Counter()
    order = spec.functions[0].order
    for key in {row[0] for row in live}:
        rows = [row for row in live if row[0] == key]
        rows.sort(key=lambda row: [_sortable(row[NAMES.index(k.name)], k) for k in order])
        for at, row in enumerate(rows):
            shown[tuple(freeze(v) for v in (*row, *results(rows, at)))] += 1
    return shown


def check(spec: OverSpec, cuts: list[list[Any]], results: Callable[[list[Row], int], list[Any]]) -> None:
    live: list[Row] = []
    standing: list[Row] = []
    shown: dict[Any, int] = {}
    seq = 0
    with TemporaryDirectory() as root:
        epochs = Epochs(root, spec)
        for cut in cuts:
            changes = [c for action in cut for c in changes_of(action, live, True)]
            for kind, row in changes:
                # A retraction takes the earliest copy, which the list of live rows leaves open.
                standing.remove(row) if kind & 1 else standing.append(row)
            fold(shown, epochs.step(table_of(changes, seq, True, False)))
            seq += len(changes)
            assert shown == naive(standing, spec, results)


@pytest.mark.parametrize("frame", FRAMES)
@settings(max_examples=examples(10), deadline=None)
@given(cuts=cuts_strategy, ascending=st.booleans())
def test_aggregates(frame: str, cuts: list[list[Any]], ascending: bool) -> None:
    order = OrderKey("n", ascending, ascending)
    functions = tuple(OverFunction(call=c, order=(order,), frame=FRAMES[frame]) for c, _ in AGGREGATES)
    spec = OverSpec(columns=COLUMNS, partition=("k",), functions=functions)

    def results(rows: list[Row], at: int) -> list[Any]:
        inside = frame_of(rows, at, FRAMES[frame], order)
        return [compute(inside) for _, compute in AGGREGATES]

    check(spec, cuts, results)


@settings(max_examples=examples(30), deadline=None)
@given(cuts=cuts_strategy)
def test_ranking_and_shifts(cuts: list[list[Any]]) -> None:
    whole = Frame(rows=False, lower=None, upper=0)
    calls = [
        *(call(f, result=I64) for f in ("ROW_NUMBER", "RANK", "DENSE_RANK")),
        *(call(f, result=F64) for f in ("PERCENT_RANK", "CUME_DIST")),
        call("LAG", "s", result=pa.string()),
        call("LEAD", "x", "n", result=F64),
    ]
    functions = tuple(OverFunction(call=c, order=(ORDER,), frame=whole) for c in calls)
    spec = OverSpec(columns=COLUMNS, partition=("k",), functions=functions)

    def results(rows: list[Row], at: int) -> list[Any]:
        keys = [_sortable(row[1], ORDER) for row in rows]
        first = keys.index(keys[at])
        through = sum(k <= keys[at] for k in keys)
        share = first / (len(rows) - 1) if len(rows) > 1 else 0.0
        step = rows[at][1]
        ahead = at + step if step is not None else -1
        return [
            at + 1,
            first + 1,
            len({k for k in keys if k <= keys[at]}),
            share,
            through / len(rows),
            rows[at - 1][2] if at else None,
            rows[ahead][3] if 0 <= ahead < len(rows) else None,
        ]

    check(spec, cuts, results)


@pytest.mark.parametrize(
    ("size", "buckets", "expected"),
    [(5, 2, [1, 1, 1, 2, 2]), (3, 5, [1, 2, 3]), (7, 3, [1, 1, 1, 2, 2, 3, 3])],
)
def test_ntile(tmp_path: Any, size: int, buckets: int, expected: list[int]) -> None:
    tile = OverFunction(
        call=AggregateSpec(function="NTILE", args=("b",), arg_types=(pa.int32(),), result=I64, name="t"),
        order=(ORDER,),
        frame=Frame(rows=False, lower=None, upper=0),
    )
    columns = (("n", pa.int32()), ("b", pa.int32()))
    spec = OverSpec(columns=columns, partition=(), functions=(tile,))
    table = pa.table(
        {
            "n": pa.array(range(size), pa.int32()),
            "b": pa.array([buckets] * size, pa.int32()),
            "$seq": pa.array(range(size), I64),
        }
    )
    output = sorted(Epochs(str(tmp_path), spec).step(table))
    assert [row[-1] for _, row in output] == expected


INFINITE = math.inf
ENDS: dict[pa.DataType, list[Any]] = {
    I64: [-(2**63), -(2**63) + 1, 2**63 - 2, 2**63 - 1, None, None],
    F64: [-INFINITE, -INFINITE, -1.5, 1e300, 1e300, INFINITE, math.nan, None],
}


@pytest.mark.parametrize("kind", ENDS)
@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize(
    ("lower", "upper"), [(-2, -1), (1, 2), (None, -1), (1, None), (-1, 1), (None, 1), (-1, None)]
)
def test_where_ranges_end(kind: pa.DataType, ascending: bool, lower: int | None, upper: int | None) -> None:
    """A row's peers are as far from it as it is itself, also where adding makes no other value of it."""
    function = OverFunction(
        call=AggregateSpec(function="COUNT", args=(), arg_types=(), result=I64, name="c"),
        order=(OrderKey("n", ascending, ascending),),
        frame=Frame(rows=False, lower=lower, upper=upper),
    )
    spec = OverSpec(columns=(("n", kind),), partition=(), functions=(function,))
    values = ENDS[kind]
    [found] = with_results(spec, pa.table({"n": pa.array(values, kind)}))

    def place(value: Any) -> int:
        """NULL, numbers, NaN; the other way round where they descend."""
        rank = -1 if value is None else 1 if value != value else 0
        return rank if ascending else -rank

    def distance(value: Any, other: Any) -> float:
        if place(value) != place(other):
            return INFINITE * (place(other) - place(value))
        if place(value) or value == other:
            return 0
        return float(other - value if ascending else value - other)

    low, high = (-INFINITE if lower is None else lower), (INFINITE if upper is None else upper)
    wanted = [sum(low <= distance(v, other) <= high for other in values) for v in values]
    assert found.to_pylist() == wanted


def test_a_changed_result_is_an_update(tmp_path: Any) -> None:
    counting = OverFunction(
        call=call("COUNT", result=I64), order=(), frame=Frame(rows=False, lower=None, upper=None)
    )
    spec = OverSpec(columns=COLUMNS, partition=("k",), functions=(counting,))
    epochs = Epochs(str(tmp_path), spec)
    first, second = ("a", 1, "x", 0.5), ("a", 2, "y", 0.5)
    assert epochs.step(table_of([(0, first)], 0, True, False)) == [(0, (*first, 1))]
    assert epochs.step(table_of([(0, second)], 1, True, False)) == [
        (1, (*first, 1)),
        (2, (*first, 2)),
        (0, (*second, 2)),
    ]
    assert epochs.step(table_of([(3, first)], 2, True, False)) == [
        (3, (*first, 2)),
        (1, (*second, 2)),
        (2, (*second, 1)),
    ]


@pytest.mark.parametrize("ascending", [True, False])
def test_a_range_holds_at_the_ends_of_integers(ascending: bool) -> None:
    near = OverFunction(
        call=AggregateSpec(function="COUNT", args=(), arg_types=(), result=I64, name="c"),
        order=(OrderKey("v", ascending, True),),
        frame=Frame(rows=False, lower=-5, upper=5),
    )
    spec = OverSpec(columns=(("v", I64),), partition=(), functions=(near,))
    values = [-(2**63), -(2**63) + 4, 0, 2**63 - 6, 2**63 - 1]
    (counts,) = with_results(spec, pa.table({"v": pa.array(values, I64)}))
    assert counts.to_pylist() == [2, 2, 1, 2, 2]
