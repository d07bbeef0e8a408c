"""Which operators a TTL reaches: table.exec.state.ttl all of them, a hint the side that it names."""

from __future__ import annotations

from tests.physical.builders import CLICKS, ORDERS, USERS, aggregate, call, column, plan, scan, sink, table
from tidemill.physical import nodes as p
from tidemill.physical.tree import walk
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Call, InputRef
from tidemill.types.logical import BOOLEAN, INT, STRING, Field

TTL = {"table.exec.state.ttl": "1 h"}
HOUR = 3_600_000
LEFT, RIGHT = scan(ORDERS), scan(USERS)
OTHERS = tuple(Field(f"r_{f.name}", f.type) for f in RIGHT.fields)


def join(kind: n.JoinKind, hints: tuple[tuple[str, str], ...] = ()) -> n.Join:
    equal = Call(
        type=BOOLEAN, function="=", args=(column(LEFT, 1), InputRef(type=INT, index=len(LEFT.fields)))
    )
    fields = LEFT.fields if kind in (n.JoinKind.SEMI, n.JoinKind.ANTI) else (*LEFT.fields, *OTHERS)
    return n.Join(fields=fields, left=LEFT, right=RIGHT, kind=kind, condition=equal, hints=hints)


def ttls(root: n.LogicalNode) -> list[tuple[int, int]]:
    return [(x.left_ttl, x.right_ttl) for x in walk(plan(root, TTL)) if isinstance(x, p.Join)]


def test_a_join_takes_a_hint_per_side_over_the_option() -> None:
    assert ttls(join(n.JoinKind.INNER)) == [(HOUR, HOUR)]
    assert ttls(join(n.JoinKind.LEFT, (("RIGHT", "2 min"),))) == [(HOUR, 120_000)]
    assert ttls(join(n.JoinKind.SEMI, (("LEFT", "0 s"), ("RIGHT", "1 d")))) == [(0, 24 * HOUR)]


def test_aggregates_and_the_materializer_follow_the_option() -> None:
    target = table("t", {"url": STRING, "c": INT}, "upsert", ("c",))
    counts = aggregate(scan(CLICKS, "url"), (0,), call("COUNT", name="c"))
    nodes = list(walk(plan(sink(counts, target, "DEDUPLICATE"), TTL)))
    assert [x.state_ttl for x in nodes if isinstance(x, p.Sink) and x.materialize] == [HOUR]
    assert [x.state_ttl for x in nodes if isinstance(x, p.GroupAggregate)] == [HOUR]
