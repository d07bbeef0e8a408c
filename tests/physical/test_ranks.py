"""Top-N: when a filter on a rank is one, what it keeps, and what it asks of its input."""

from __future__ import annotations

import pytest

from tests.physical.builders import CLICKS, aggregate, call, column, modes, plan, project, scan
from tidemill.physical import nodes as p
from tidemill.physical.operators.rank import strategy
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Call, Expr, Literal, OverCall, SortKey
from tidemill.types.logical import BIGINT, BOOLEAN, Field


def ranked(
    source: n.LogicalNode, order: int, *, function: str = "ROW_NUMBER", ascending: bool = False
) -> n.Over:
    rank = OverCall(
        function=function,
        args=(),
        type=BIGINT,
        name="rn",
        partition=(0,),
        order=(SortKey(index=order, ascending=ascending, nulls_first=ascending),),
    )
    return n.Over(fields=(*source.fields, Field("rn", BIGINT)), input=source, calls=(rank,))


def compare(node: n.LogicalNode, operator: str, value: int) -> Call:
    rank = column(node, len(node.fields) - 1)
    return Call(type=BOOLEAN, function=operator, args=(rank, Literal(type=BIGINT, value=value)))


def where(node: n.LogicalNode, *conditions: Expr) -> n.Filter:
    whole = conditions[0]
    for condition in conditions[1:]:
        whole = Call(type=BOOLEAN, function="AND", args=(whole, condition))
    return n.Filter(fields=node.fields, input=node, condition=whole)


COUNTS = aggregate(scan(CLICKS, "url", "usr"), (0, 1), call("COUNT", name="c"))
OVER = ranked(scan(CLICKS), 2)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ((compare(OVER, "<=", 3),), (1, 3)),
        ((compare(OVER, "<", 3), compare(OVER, ">", 1)), (2, 2)),
        ((compare(OVER, "=", 2),), (2, 2)),
        ((compare(OVER, ">=", 2), compare(OVER, "<=", 9)), (2, 9)),
    ],
)
def test_range(conditions: tuple[Expr, ...], expected: tuple[int, int]) -> None:
    node = plan(project(where(OVER, *conditions), 0))
    assert isinstance(node, p.Calc)
    assert isinstance(node.input, p.Rank)
    assert (node.input.start, node.input.end) == expected


def test_open_range_is_an_over_aggregate() -> None:
    node = plan(where(OVER, compare(OVER, ">", 1)))
    assert isinstance(node, p.Calc)
    assert isinstance(node.input, p.OverAggregate)


def test_rank_is_kept_only_where_used() -> None:
    used = plan(where(OVER, compare(OVER, "<=", 3)))
    assert isinstance(used, p.Rank)
    assert used.with_rank
    unused = plan(project(where(OVER, compare(OVER, "<=", 3)), 0, 1))
    assert isinstance(unused, p.Calc)
    assert isinstance(unused.input, p.Rank)
    assert not unused.input.with_rank


def test_other_conditions_stay_above() -> None:
    positive = Call(type=BOOLEAN, function=">", args=(column(OVER, 2), Literal(type=BIGINT, value=0)))
    node = plan(where(OVER, compare(OVER, "<=", 3), positive))
    assert isinstance(node, p.Calc)
    assert node.condition == positive
    assert isinstance(node.input, p.Rank)


def test_shown_plan_overwrites_and_run_plan_retracts() -> None:
    over = ranked(COUNTS, 2)
    top = where(over, compare(over, "<=", 2))
    shown = plan(top)
    assert isinstance(shown, p.Rank)
    assert strategy(shown) == "UpdateFastStrategy[0,1]"
    assert modes(shown)[1] == "Exchange I+"
    run = plan(top, executed=True)
    assert isinstance(run, p.Rank)
    assert strategy(run) == "RetractStrategy"
    assert modes(run)[1] == "Exchange I-+"


def test_falling_order_of_a_rising_value_retracts() -> None:
    over = ranked(COUNTS, 2, ascending=True)
    shown = plan(where(over, compare(over, "<=", 2)))
    assert isinstance(shown, p.Rank)
    assert strategy(shown) == "RetractStrategy"


def test_limit_zero_is_empty() -> None:
    source = scan(CLICKS)
    node = plan(n.Sort(fields=source.fields, input=source, keys=(), fetch=0))
    assert isinstance(node, p.Values)
    assert node.rows == ()


def test_limit_of_appends_only_appends() -> None:
    source = scan(CLICKS)
    limited = n.Sort(fields=source.fields, input=source, keys=(), fetch=3, offset=1)
    assert modes(plan(limited)) == ["SortLimit I", "Exchange I", "TableSourceScan I"]


def test_columns_that_only_a_filter_below_reads_are_not_kept() -> None:
    source = scan(CLICKS)
    positive = Call(type=BOOLEAN, function=">", args=(column(source, 2), Literal(type=BIGINT, value=0)))
    over = ranked(where(source, positive), 1)
    top = plan(project(where(over, compare(over, "<=", 2)), 0, 1))
    rank = top if isinstance(top, p.Rank) else top.inputs[0]
    assert isinstance(rank, p.Rank)
    assert [f.name for f in rank.input.fields] == ["usr", "url"]
    assert (rank.partition, rank.order[0].index) == ((0,), 1)


def test_keys_of_the_input_are_kept() -> None:
    over = ranked(COUNTS, 2)
    top = plan(project(where(over, compare(over, "<=", 2)), 0, 2))
    assert isinstance(top, p.Calc)
    assert isinstance(top.input, p.Rank)
    assert [f.name for f in top.input.fields] == ["url", "usr", "c"]
    assert strategy(top.input) == "UpdateFastStrategy[0,1]"
