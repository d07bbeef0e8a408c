"""A TTL that nothing outlives changes nothing: state of counts against state of weights.

Rows come in copies of one place in the sequence, as branches of a union over one source give them, and go
copy by copy.
"""

from __future__ import annotations

from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from tests.operators.differential_rank import COLUMNS as ROW
from tests.operators.differential_rank import NAMES, ORDERS, Row, rows_strategy
from tests.operators.epochs import Epochs, fold
from tests.tiers import examples
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.changelog_normalize import ChangelogNormalizeSpec
from tidemill.operators.group_aggregate.operator import GroupAggregateSpec
from tidemill.operators.join.operator import JoinSpec
from tidemill.operators.join.shape import JoinSide
from tidemill.operators.over.operator import OverFunction, OverSpec
from tidemill.operators.over.window import Frame
from tidemill.operators.rank.operator import RankSpec
from tidemill.operators.rank.shape import EVERY_STEP

TYPES = dict(ROW)
I64, TEXT = pa.int64(), pa.string()
LONG = 1 << 40
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


def _call(function: str, arg: str, result: pa.DataType, distinct: bool = False) -> AggregateSpec:
    name = f"{function} {arg} {distinct}"
    return AggregateSpec(
        function=function, args=(arg,), arg_types=(TYPES[arg],), result=result, name=name, distinct=distinct
    )


_COUNTED = pa.list_(pa.struct([pa.field("key", TEXT), pa.field("value", pa.int32())]))
CALLS = (
    _call("LISTAGG", "s", TEXT),
    _call("LISTAGG", "s", TEXT, distinct=True),
    _call("ARRAY_AGG", "n", pa.list_(pa.int32())),
    _call("FIRST_VALUE", "s", TEXT),
    _call("LAST_VALUE", "n", pa.int32()),
    _call("MIN", "s", TEXT),
    _call("MAX", "n", pa.int32()),
    _call("COUNT", "n", I64, distinct=True),
    _call("SUM", "n", pa.int32(), distinct=True),
    _call("COLLECT", "s", _COUNTED),
)
GROUPED = GroupAggregateSpec(keys=(("k", TEXT),), calls=CALLS, retracts=True)
RANKED = RankSpec(
    function="ROW_NUMBER",
    columns=ROW,
    partition=("k",),
    order=ORDERS["number"],
    start=1,
    end=2,
    retracts=True,
)
SUMS = OverFunction(call=_call("COUNT", "n", I64), order=(), frame=Frame(rows=False, lower=None, upper=None))
OVER = OverSpec(columns=ROW, partition=("k",), functions=(SUMS,))
SPECS: dict[str, GroupAggregateSpec | RankSpec | OverSpec | ChangelogNormalizeSpec] = {
    "group": GROUPED,
    "group, row by row": replace(GROUPED, per_record=True),
    "group, append-only": replace(GROUPED, retracts=False),
    "top two": RANKED,
    "ranks, row by row": replace(RANKED, function="RANK", rank="r", rounds=EVERY_STEP),
    "top two, append-only": replace(RANKED, retracts=False),
    "top one, append-only": replace(RANKED, retracts=False, end=1),
    "materializer": replace(RANKED, order=(), end=1, latest=True, by_place=True),
    "over": OVER,
    "normalize": ChangelogNormalizeSpec(columns=ROW, keys=("k", "n", "s", "x")),
}
steps = st.one_of(
    st.tuples(rows_strategy, st.integers(1, 3)),
    st.tuples(st.integers(0, 9), st.integers(1, 3)),
)
cuts = st.lists(st.lists(steps, max_size=6), min_size=1, max_size=6)
TWICE: Row = ("a", 1, "x", 0.5)


@pytest.mark.parametrize("name", SPECS)
@settings(max_examples=examples(25), deadline=None, phases=PHASES)
@given(epochs=cuts)
@example(epochs=[[(TWICE, 2)], [(0, 1)], [(0, 1)], [(TWICE, 2)], [(0, 2)]])
@example(epochs=[[(TWICE, 3), (0, 2), (TWICE, 1), (0, 2)]])
def test_one_input(name: str, epochs: list[list[Any]]) -> None:
    spec = SPECS[name]
    retracts = getattr(spec, "retracts", True)
    with TemporaryDirectory() as kept, TemporaryDirectory() as forgetting:
        runs = Epochs(kept, spec), Epochs(forgetting, replace(spec, state_ttl=LONG))
        shown: tuple[dict[Any, int], dict[Any, int]] = ({}, {})
        live: dict[int, list[Row]] = {}
        sequence = 0
        for number, epoch in enumerate(epochs):
            rows = []
            for step in epoch:
                rows += [(*change, sequence) for change in _changes(step, live, sequence, retracts)]
                sequence += 1
            table = _table(rows, retracts)
            for run, held in zip(runs, shown, strict=True):
                fold(held, run.step(table, time=1000 * number))
            assert shown[0] == shown[1]


def _changes(step: Any, live: dict[int, list[Row]], sequence: int, retracts: bool) -> list[tuple[int, Row]]:
    """A row in so many copies, or so many of the copies that came once taken back."""
    what, copies = step
    if isinstance(what, tuple):
        live[sequence] = [what] * copies
        return [(0, what)] * copies
    if not retracts or not live:
        return []
    chosen = list(live)[what % len(live)]
    taken, rest = live[chosen][:copies], live[chosen][copies:]
    live[chosen] = rest
    if not rest:
        del live[chosen]
    return [(3, row) for row in taken]


def _table(rows: list[tuple[int, Row, int]], retracts: bool) -> pa.Table:
    columns = {name: pa.array([r[1][i] for r in rows], TYPES[name]) for i, name in enumerate(NAMES)}
    if retracts:
        columns["$kind"] = pa.array([r[0] for r in rows], pa.int8())
    return pa.table({**columns, "$seq": pa.array([r[2] for r in rows], I64)})


def _side(letter: str, ttl: int) -> JoinSide:
    columns = ((f"{letter}k", TEXT), (f"{letter}n", pa.int32()))
    return JoinSide(
        columns=columns, keys=(f"{letter}k",), output=(f"{letter}k", f"{letter}n"), retracts=True, ttl=ttl
    )


@pytest.mark.parametrize("kind", ["INNER", "LEFT", "FULL", "SEMI", "ANTI"])
@settings(max_examples=examples(25), deadline=None, phases=PHASES)
@given(
    epochs=st.lists(
        st.tuples(st.lists(steps, max_size=4), st.lists(steps, max_size=4)), min_size=1, max_size=6
    )
)
def test_joins(kind: str, epochs: list[tuple[list[Any], list[Any]]]) -> None:
    with TemporaryDirectory() as kept, TemporaryDirectory() as forgetting:
        runs = []
        for root, ttl in ((kept, 0), (forgetting, LONG)):
            spec = JoinSpec(kind=kind, left=_side("l", ttl), right=_side("r", ttl), null_safe=(False,))
            runs.append(Epochs(root, spec))
        shown: tuple[dict[Any, int], dict[Any, int]] = ({}, {})
        live: tuple[dict[int, list[Row]], dict[int, list[Row]]] = ({}, {})
        for number, epoch in enumerate(epochs):
            tables = []
            for side, letter in enumerate("lr"):
                changes = [
                    c
                    for place, step in enumerate(epoch[side])
                    for c in _changes(step, live[side], 9 * number + place, True)
                ]
                columns = {
                    f"{letter}{n}": pa.array([row[i] for _, row in changes], TYPES[n])
                    for i, n in enumerate(("k", "n"))
                }
                tables.append(
                    pa.table({**columns, "$kind": pa.array([kind for kind, _ in changes], pa.int8())})
                )
            for run, held in zip(runs, shown, strict=True):
                fold(held, run.step(*tables, time=1000 * number))
            assert shown[0] == shown[1]
