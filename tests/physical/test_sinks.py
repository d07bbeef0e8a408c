"""Rows of several keys under one primary key of a sink: who wins, and what ON CONFLICT is for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.physical.builders import CLICKS, ORDERS, USERS, aggregate, call, plan, project, scan, sink, table
from tidemill.changelog.rowkind import UPSERT
from tidemill.config.option import Configuration
from tidemill.errors import ValidationError
from tidemill.physical import nodes as p
from tidemill.physical.sinks import check_sink, keep_insert_only_rows, keeps_greatest_row
from tidemill.physical.traits.arrival import Arrival, arrival
from tidemill.plan import nodes as n
from tidemill.plan.predicates import TRUE
from tidemill.types.logical import BIGINT, INT, STRING, Field

NAMES = table("names", {"name": STRING, "uid": INT}, "upsert", ("name",))
TOTALS = table("totals", {"usr": STRING, "url": STRING, "total": BIGINT}, "upsert", ("usr",))


def runs(root: n.LogicalNode) -> p.Sink:
    made = plan(root, executed=True)
    assert isinstance(made, p.Sink)
    return made


def crossed(left: n.LogicalNode, right: n.LogicalNode) -> n.Join:
    fields = (*left.fields, *(Field(f"r_{f.name}", f.type) for f in right.fields))
    return n.Join(fields=fields, left=left, right=right, kind=n.JoinKind.INNER, condition=TRUE)


def test_changes_of_one_source_win_by_arrival() -> None:
    grouped = aggregate(scan(CLICKS), (0, 1), call("COUNT", name="total"))
    changes = runs(sink(grouped, TOTALS))
    assert changes.materialize
    assert arrival(changes.input) is Arrival.SOURCE
    assert not keeps_greatest_row(changes)
    renamed = runs(sink(project(scan(USERS), 1, 0), NAMES))
    assert renamed.materialize
    assert not keeps_greatest_row(renamed)


def test_what_a_join_gives_wins_by_its_columns() -> None:
    pairs = project(crossed(scan(USERS), scan(ORDERS)), 1, 0)
    assert keeps_greatest_row(runs(sink(pairs, NAMES)))


def test_rows_that_only_come_out_of_a_join_are_kept() -> None:
    """A database takes updates also where none is offered."""
    only_come = project(crossed(scan(CLICKS), scan(CLICKS)), 0, 1, 2)
    made = replace(runs(sink(only_come, TOTALS)), consumed=UPSERT)
    assert not made.materialize
    kept = keep_insert_only_rows(made, Configuration())
    assert kept.materialize
    assert keeps_greatest_row(kept)
    declined = Configuration({"table.exec.sink.upsert-materialize": "NONE"})
    assert not keep_insert_only_rows(made, declined).materialize
    by_source = replace(runs(sink(scan(CLICKS), TOTALS)), consumed=UPSERT)
    assert not keep_insert_only_rows(by_source, Configuration()).materialize


def test_on_conflict_is_for_upsert_sinks() -> None:
    target = table("target", {"name": STRING, "uid": INT}, "upsert", ("name",))
    changes = sink(project(scan(USERS), 1, 0), target, "DEDUPLICATE")
    made = runs(changes)
    with pytest.raises(ValidationError, match="requires UPDATE_BEFORE"):
        check_sink(replace(made, retract=True), Configuration())
