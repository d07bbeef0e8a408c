"""Changelogs that are not full ones are normalized by primary key."""

from __future__ import annotations

import pytest

from tests.physical.builders import ORDERS, ORDERS_NO_KEY, aggregate, call, column, modes, plan, scan, table
from tidemill.errors import ValidationError
from tidemill.physical import nodes as p
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Call, Literal
from tidemill.types.logical import BOOLEAN, INT, STRING

UPSERTS = table("ups", {"id": INT, "v": STRING, "w": INT}, "upsert", ("id",))
REPEATED = {"table.exec.source.cdc-events-duplicate": "true"}
FILTERED = n.Filter(
    fields=scan(UPSERTS).fields,
    input=scan(UPSERTS),
    condition=Call(type=BOOLEAN, function=">", args=(column(scan(UPSERTS), 2), Literal(type=INT, value=3))),
)


def test_upserts_pass_to_a_consumer_that_overwrites() -> None:
    assert modes(plan(scan(UPSERTS))) == ["TableSourceScan I+D"]


def test_upserts_are_normalized_for_retractions() -> None:
    root = aggregate(scan(UPSERTS, "w"), (0,), call("COUNT"))
    assert modes(plan(root))[1:] == [
        "Exchange I-+D",
        "ChangelogNormalize I-+D",
        "Exchange I+D",
        "TableSourceScan I+D",
    ]


def test_key_is_read_though_not_selected() -> None:
    node = plan(scan(UPSERTS, "v"), executed=True)
    assert [f.name for f in node.fields] == ["v"]
    assert isinstance(node, p.Calc)
    assert isinstance(node.input, p.ChangelogNormalize)
    assert [f.name for f in node.input.fields] == ["v", "id"]
    assert node.input.keys == (1,)


@pytest.mark.parametrize("executed", [True, False])
def test_filter_is_part_of_it(executed: bool) -> None:
    node = plan(FILTERED, executed=executed)
    assert isinstance(node, p.ChangelogNormalize)
    assert node.condition == FILTERED.condition
    assert modes(node)[0] == ("ChangelogNormalize I-+D" if executed else "ChangelogNormalize I+D")


def test_repeated_events_are_normalized() -> None:
    assert modes(plan(scan(ORDERS), REPEATED)) == [
        "ChangelogNormalize I+D",
        "Exchange I+D",
        "DropUpdateBefore I+D",
        "TableSourceScan I-+D",
    ]


def test_repeated_events_need_a_primary_key() -> None:
    with pytest.raises(ValidationError, match="requires the changelog sources to define a PRIMARY KEY"):
        plan(scan(ORDERS_NO_KEY), REPEATED)
