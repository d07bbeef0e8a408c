"""Unique and upsert keys through nodes."""

from __future__ import annotations

import pytest

from tests.physical.builders import CLICKS, ORDERS, USERS, aggregate, call, column, plan, scan
from tidemill.physical import nodes as p
from tidemill.physical.explain.attributes import attributes
from tidemill.physical.explain.printer import Form
from tidemill.physical.traits.keys import keeps_distinct
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Call, Cast, Literal, OverCall, SortKey
from tidemill.types import logical as t
from tidemill.types.logical import BIGINT, BOOLEAN, INT, STRING, Field


def join(
    left: n.LogicalNode, right: n.LogicalNode, a: int, b: int, kind: n.JoinKind = n.JoinKind.INNER
) -> n.Join:
    width = len(left.fields)
    renamed = tuple(Field(f"r_{f.name}", f.type) for f in right.fields)
    fields = (*left.fields, *renamed)
    right_column = column(n.Project(fields=fields, input=left, expressions=()), width + b)
    condition = Call(type=BOOLEAN, function="=", args=(column(left, a), right_column))
    return n.Join(fields=fields, left=left, right=right, kind=kind, condition=condition)


def test_aggregate_is_keyed_by_its_groups() -> None:
    node = plan(aggregate(scan(CLICKS, "usr", "n"), (0,), call("SUM", 1)))
    assert node.traits.upsert_keys == {frozenset({0})}


def test_global_aggregate_has_the_empty_key() -> None:
    assert plan(aggregate(scan(CLICKS), (), call("COUNT"))).traits.upsert_keys == {frozenset()}


def test_widening_cast_keeps_the_key_and_narrowing_loses_it() -> None:
    source = scan(ORDERS, "oid")
    for target, kept in ((BIGINT, True), (t.SmallIntType(), False)):
        cast = Cast(type=target, operand=column(source, 0))
        root = n.Project(fields=(Field("x", target),), input=source, expressions=(cast,))
        assert bool(plan(root).traits.unique_keys) is kept


def test_join_on_another_column_keeps_unique_but_not_upsert_keys() -> None:
    node = plan(join(scan(ORDERS, "oid", "uid"), scan(USERS, "uid", "name"), 1, 0))
    assert isinstance(node, p.Join)
    shown = dict(attributes(node, Form.PREFIX))
    specs = (shown["leftInputSpec"], shown["rightInputSpec"])
    assert specs == ("[HasUniqueKey]", "[JoinKeyContainsUniqueKey]")
    assert frozenset({0}) in node.traits.unique_keys
    assert node.traits.upsert_keys == frozenset()


def test_join_on_the_keys_has_either_key() -> None:
    node = plan(join(scan(ORDERS, "oid", "uid"), scan(USERS, "uid", "name"), 0, 0))
    assert {frozenset({0}), frozenset({2})} <= node.traits.upsert_keys


def test_outer_side_does_not_key_the_result() -> None:
    node = plan(join(scan(ORDERS, "oid"), scan(USERS, "uid"), 0, 0, n.JoinKind.LEFT))
    assert frozenset({0}) in node.traits.unique_keys
    assert frozenset({1}) not in node.traits.unique_keys


def test_aggregate_over_unique_rows_is_left_out() -> None:
    root = aggregate(scan(ORDERS, "oid", "qty"), (0,), call("MAX", 1, name="m"))
    node = plan(root, executed=True)
    assert isinstance(node, p.Calc)
    assert isinstance(node.input, p.TableSourceScan)
    counted = plan(aggregate(scan(ORDERS, "oid"), (0,), call("COUNT")), executed=True)
    assert isinstance(counted, p.GroupAggregate)


def test_top_one_is_keyed_by_its_partition() -> None:
    source = scan(CLICKS)
    rank = OverCall(
        function="ROW_NUMBER",
        args=(),
        type=BIGINT,
        name="rn",
        partition=(0,),
        order=(SortKey(index=2, ascending=False, nulls_first=False),),
    )
    over = n.Over(fields=(*source.fields, Field("rn", BIGINT)), input=source, calls=(rank,))
    one = n.Filter(
        fields=over.fields,
        input=over,
        condition=Call(type=BOOLEAN, function="=", args=(column(over, 3), Literal(type=BIGINT, value=1))),
    )
    node = plan(one)
    assert isinstance(node, p.Calc)
    assert frozenset({0}) in node.traits.upsert_keys
    assert isinstance(node.projections[3], Literal)
    assert node.projections[3].value == 1


@pytest.mark.parametrize(
    ("source", "target", "distinct"),
    [
        (INT, INT.with_nullable(False), True),
        (INT, STRING, True),
        (t.VarCharType(length=5), t.VarCharType(length=4), False),
        (t.CharType(length=3), STRING, True),
        (BIGINT, t.DOUBLE, False),
        (t.DecimalType(precision=10, scale=2), INT, False),
    ],
)
def test_casts_that_keep_values_apart(source: t.LogicalType, target: t.LogicalType, distinct: bool) -> None:
    assert keeps_distinct(source, target) is distinct
