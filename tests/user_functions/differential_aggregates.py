"""User aggregates in the group aggregate kernel against folds from scratch: random rows that come and go,
epoch cuts, restarts from state on disk, FILTER, DISTINCT, with and without a change per row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.epochs import Epochs, fold
from tests.operators.naive_aggregate import freeze
from tests.tiers import examples
from tests.user_functions import samples
from tidemill.errors import ExecutionError, ValidationError
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.group_aggregate.operator import GroupAggregateSpec
from tidemill.sql.parser import parse_type
from tidemill.types.physical import arrow_type
from tidemill.user_functions.aggregates import BoundAggregate
from tidemill.user_functions.kinds import UserAggregateFunction

Row = dict[str, Any]
SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        ("v", pa.int64()),
        ("w", pa.int64()),
        ("s", pa.string()),
        ("f", pa.bool_()),
        ("$kind", pa.int8()),
        ("$seq", pa.int64()),
    ]
)


def call(declared: Any, *args: str, **more: Any) -> AggregateSpec:
    assert isinstance(declared, UserAggregateFunction)
    kinds = {"v": "BIGINT", "w": "BIGINT", "s": "STRING"}
    bound = BoundAggregate(
        name=declared.name.lower(),
        body=declared.body,
        vectorized=declared.vectorized,
        arg_types=tuple(parse_type(kinds[a]) for a in args),
        accumulator=parse_type(declared.accumulator_type),
        result=parse_type(declared.result_type),
    )
    return AggregateSpec(
        function=bound.name,
        args=args,
        arg_types=tuple(SCHEMA.field(a).type for a in args),
        result=arrow_type(bound.result),
        name=f"{bound.name}_{more}",
        user=bound,
        **more,
    )


CALLS = (
    call(samples.WeightedAverage, "v", "w"),
    call(samples.WeightedAverage, "v", "w", filter="f"),
    call(samples.Total, "v"),
    call(samples.Total, "v", filter="f"),
    call(samples.Total, "v", distinct=True),
    call(samples.Joined, "s"),
)


def average(rows: list[Row]) -> Any:
    there = [r for r in rows if r["v"] is not None]
    weight = sum(r["w"] for r in there)
    return sum(r["v"] * r["w"] for r in there) / weight if weight else None


def total(rows: list[Row]) -> Any:
    values = [r["v"] for r in rows if r["v"] is not None]
    return sum(values) if values else None


def distinct_total(rows: list[Row]) -> Any:
    values = {r["v"] for r in rows} - {None}
    return sum(values) if values else None


def joined(rows: list[Row]) -> Any:
    return "|".join("-" if r["s"] is None else r["s"] for r in rows)


def filtered(fold_rows: Callable[[list[Row]], Any]) -> Callable[[list[Row]], Any]:
    return lambda rows: fold_rows([r for r in rows if r["f"]])


FOLDS = (average, filtered(average), total, filtered(total), distinct_total, joined)

rows_strategy = st.fixed_dictionaries(
    {
        "k": st.sampled_from(["a", "b", None]),
        "v": st.one_of(st.none(), st.integers(-3, 3)),
        "w": st.integers(1, 3),
        "s": st.sampled_from(["x", "yy", None]),
        "f": st.sampled_from([True, False, None]),
    }
)
actions = st.lists(st.lists(st.one_of(rows_strategy, st.integers(0, 9)), max_size=6), min_size=1, max_size=4)


@pytest.mark.parametrize("per_record", [False, True], ids=["net", "per-record"])
@pytest.mark.parametrize("keyed", [True, False], ids=["keys", "global"])
@settings(max_examples=examples(8), deadline=None)
@given(cuts=actions)
def test_state_goes_on_from_epoch_to_epoch(keyed: bool, per_record: bool, cuts: list[list[Any]]) -> None:
    spec = GroupAggregateSpec(
        keys=(("k", pa.string()),) if keyed else (), calls=CALLS, retracts=True, per_record=per_record
    )
    live: list[Row] = []
    shown: dict[Any, int] = {}
    number = 0
    with TemporaryDirectory() as root:
        epochs = Epochs(root, spec)
        for cut in cuts:
            rows = []
            for action in cut:
                if isinstance(action, dict):
                    live.append(action)
                    rows.append({**action, "$kind": 0, "$seq": number})
                elif live:
                    # Of a group's rows with one text the earliest goes: so does Joined.
                    chosen = live[action % len(live)]
                    first = next(
                        r for r in live if r["s"] == chosen["s"] and (r["k"] == chosen["k"] or not keyed)
                    )
                    live.remove(first)
                    rows.append({**first, "$kind": 1, "$seq": number})
                number += 1
            fold(shown, epochs.step(pa.Table.from_pylist(rows, schema=SCHEMA)))
            assert shown == expected(live, keyed)


def expected(live: list[Row], keyed: bool) -> dict[Any, int]:
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in live:
        groups[(row["k"],) if keyed else ()].append(row)
    return {(*key, *(freeze(f(rows)) for f in FOLDS)): 1 for key, rows in groups.items()}


def rows_of(values: list[Any], kind: int = 0) -> pa.Table:
    rows = [{"k": "a", "v": v, "w": 1, "$kind": kind, "$seq": i} for i, v in enumerate(values)]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def test_an_accumulator_may_be_given_back_instead_of_changed() -> None:
    spec = GroupAggregateSpec(keys=(("k", pa.string()),), calls=(call(samples.Largest, "v"),))
    with TemporaryDirectory() as root:
        epochs = Epochs(root, spec)
        assert epochs.step(rows_of([3, 9, 4]).drop_columns("$kind")) == [(0, ("a", 9))]
        assert epochs.step(rows_of([5]).drop_columns("$kind")) == []
        assert epochs.step(rows_of([11]).drop_columns("$kind")) == [(1, ("a", 9)), (2, ("a", 11))]


def test_a_function_that_cannot_take_back_is_refused_where_rows_are() -> None:
    spec = GroupAggregateSpec(keys=(), calls=(call(samples.Largest, "v"),), retracts=True)
    with pytest.raises(ValidationError, match=r"method 'retract' of the aggregate function 'largest'"):
        _ = spec.fingerprint


def test_errors_name_the_function() -> None:
    spec = GroupAggregateSpec(keys=(), calls=(call(samples.Largest, "v"),))
    with TemporaryDirectory() as root, pytest.raises(ExecutionError, match="largest failed: TypeError"):
        Epochs(root, spec).step(rows_of([None]).drop_columns("$kind"))
