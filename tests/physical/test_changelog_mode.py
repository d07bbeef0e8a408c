"""-U flows only where a consumer needs it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.physical.builders import (
    CLICKS,
    ORDERS,
    ORDERS_NO_KEY,
    aggregate,
    call,
    column,
    modes,
    plan,
    project,
    scan,
    sink,
    table,
)
from tidemill.errors import ValidationError
from tidemill.physical import nodes as p
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Call, Literal
from tidemill.types.logical import BIGINT, BOOLEAN, INT, STRING

COUNTS = aggregate(scan(CLICKS, "usr"), (0,), call("COUNT", name="c"))


def test_append_aggregate_updates_without_before() -> None:
    assert modes(plan(COUNTS)) == ["GroupAggregate I+", "Exchange I", "TableSourceScan I"]


def test_executed_select_gives_before() -> None:
    assert modes(plan(COUNTS, executed=True))[0] == "GroupAggregate I-+"


def test_aggregate_over_aggregate_asks_for_before() -> None:
    root = aggregate(project(COUNTS, 1), (0,), call("COUNT", name="k"))
    assert modes(plan(root)) == [
        "GroupAggregate I+D",
        "Exchange I-+",
        "GroupAggregate I-+",
        "Exchange I",
        "TableSourceScan I",
    ]


def test_filter_needs_before() -> None:
    condition = Call(type=BOOLEAN, function=">", args=(column(COUNTS, 1), Literal(type=BIGINT, value=1)))
    root = n.Filter(fields=COUNTS.fields, input=COUNTS, condition=condition)
    assert modes(plan(root))[0] == "GroupAggregate I-+"


def test_cdc_select_drops_before_at_the_source() -> None:
    assert modes(plan(scan(ORDERS))) == ["DropUpdateBefore I+D", "TableSourceScan I-+D"]
    assert modes(plan(scan(ORDERS), executed=True)) == ["TableSourceScan I-+D"]


def test_union_all_drops_before_in_the_updating_branch_only() -> None:
    left, right = scan(CLICKS, "usr"), scan(ORDERS, "product")
    root = n.SetOp(fields=left.fields, kind=n.SetKind.UNION, all=True, branches=(left, right))
    assert modes(plan(root)) == [
        "Union I+D",
        "TableSourceScan I",
        "DropUpdateBefore I+D",
        "TableSourceScan I-+D",
    ]


TARGET = table("s", {"usr": STRING, "c": BIGINT}, "upsert", ("usr",))


def test_upsert_sink_on_the_upsert_key_takes_no_before() -> None:
    node = plan(sink(COUNTS, TARGET))
    assert isinstance(node, p.Sink)
    assert not node.materialize
    assert modes(node)[:2] == ["Sink ", "GroupAggregate I+"]


def test_append_sink_refuses_updates() -> None:
    with pytest.raises(
        ValidationError,
        match=r"Table sink 'default_catalog\.default_database\.s' doesn't "
        r"support consuming update changes which is produced by node GroupAggregate",
    ):
        plan(sink(COUNTS, replace(TARGET, options={"mode": "append"})))


def test_other_primary_key_materializes() -> None:
    target = table("s", {"uid": INT, "oid": INT}, "upsert", ("uid",))
    node = plan(sink(scan(ORDERS, "uid", "oid"), target))
    assert isinstance(node, p.Sink)
    assert node.materialize
    assert modes(node)[1] == "TableSourceScan I-+D"


def test_key_within_primary_key_does_not_materialize_but_keeps_before() -> None:
    target = table("s", {"uid": INT, "oid": INT}, "upsert", ("uid", "oid"))
    node = plan(sink(scan(ORDERS, "uid", "oid"), target))
    assert isinstance(node, p.Sink)
    assert not node.materialize
    assert modes(node)[1] == "TableSourceScan I-+D"


def test_conflict_clause_can_be_required() -> None:
    target = table("s", {"uid": INT, "oid": INT}, "upsert", ("uid",))
    root = sink(scan(ORDERS, "uid", "oid"), target)
    required = {"table.exec.sink.require-on-conflict": "true"}
    with pytest.raises(ValidationError, match=r"Primary key: \[uid\], upsert key: \[oid\]"):
        plan(root, required)
    assert plan(replace(root, conflict="DEDUPLICATE"), required)


def test_conflict_nothing_needs_watermarks() -> None:
    target = table("s", {"uid": INT, "oid": INT}, "upsert", ("uid",))
    root = sink(scan(ORDERS_NO_KEY, "uid", "oid"), target, "NOTHING")
    with pytest.raises(ValidationError, match="DO NOTHING requires all source tables to define watermarks"):
        plan(root)
