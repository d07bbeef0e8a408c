"""Statements of hundreds of terms, levels and branches, and plans that read a part of theirs often."""

from __future__ import annotations

import sys

import pytest

from tests.plan.environment import sample
from tidemill.deep_calls import with_room
from tidemill.errors import NotSupportedError
from tidemill.plan import nodes as n
from tidemill.plan.once import once_per_node
from tidemill.plan.optimizer import optimize


def chained(number: int, body: str) -> str:
    """``number`` WITH queries, each ``body`` over the one before."""
    parts = ["c0 AS (SELECT id, v FROM t)"]
    parts += [f"c{i} AS ({body.format(below=f'c{i - 1}')})" for i in range(1, number)]
    return f"WITH {', '.join(parts)} SELECT * FROM c{number - 1}"


def cases(number: int) -> str:
    text = "0"
    for i in range(number):
        text = f"CASE WHEN v = {i} THEN {i} ELSE {text} END"
    return text


def nested(number: int) -> str:
    text = "SELECT id FROM t"
    for i in range(number):
        text = f"SELECT id FROM ({text}) WHERE id > {i}"
    return text


DEEP = {
    "terms": "SELECT " + " + ".join(["v"] * 500) + " AS x FROM t",
    "texts": "SELECT " + " || ".join(["s"] * 500) + " AS x FROM t",
    "negations": "SELECT id FROM t WHERE " + "NOT " * 500 + "v > 1",
    "parentheses": "SELECT " + "(" * 500 + "v" + ")" * 500 + " AS x FROM t",
    "calls": "SELECT " + "ABS(" * 300 + "v" + ")" * 300 + " AS x FROM t",
    "cases": f"SELECT {cases(200)} AS x FROM t",
    "subqueries": nested(200),
    "ctes": chained(300, "SELECT id, v + 1 AS v FROM {below}"),
    "union": " UNION ALL ".join(f"SELECT id, {i} AS k FROM t" for i in range(1000)),
    "joins": "SELECT t0.id FROM t t0"
    + "".join(f" JOIN t t{i} ON t{i}.id = t{i - 1}.id" for i in range(1, 201)),
}


TWICE = (
    "SELECT a.id, b.v FROM {below} a JOIN {below} b ON a.id = b.id",
    "SELECT id, v FROM {below} UNION ALL SELECT id, v + 1 FROM {below}",
    "SELECT id, v FROM {below} WHERE v > (SELECT MIN(v) FROM {below})",
)
"""Queries that read the one ``below`` them twice."""


@pytest.mark.parametrize("sql", DEEP.values(), ids=DEEP)
def test_deep_statements_are_planned(sql: str) -> None:
    limit = sys.getrecursionlimit()
    plan = optimize(sample().bind(sql))
    assert len(plan.fields) in (1, 2)
    assert sys.getrecursionlimit() == limit


@pytest.mark.parametrize("body", TWICE)
def test_what_is_read_twice_is_planned_once(body: str) -> None:
    plan = optimize(sample().bind(chained(40, body)))
    # Visited as a tree these are 2^40 nodes and more.
    assert distinct(plan) < 1000


def distinct(plan: n.LogicalNode) -> int:
    seen: set[int] = set()
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen.add(id(node))
            waiting.extend(node.inputs)
    return len(seen)


def test_a_deep_call_gives_its_result_and_its_error() -> None:
    def down(levels: int) -> int:
        return 0 if levels == 0 else 1 + down(levels - 1)

    def fail(levels: int) -> int:
        if levels == 0:
            raise KeyError("at the bottom")
        return fail(levels - 1)

    def endless() -> int:
        return endless()

    assert with_room(lambda: down(20_000)) == 20_000
    with pytest.raises(KeyError, match="at the bottom"):
        with_room(lambda: fail(20_000))
    with pytest.raises(NotSupportedError, match="nested too deeply"):
        with_room(endless)


def test_a_walk_comes_to_each_node_once() -> None:
    visited: list[n.LogicalNode] = []

    @once_per_node
    def height(node: n.LogicalNode, extra: int) -> int:
        visited.append(node)
        return extra + max((height(child, extra) for child in node.inputs), default=0)

    plan = sample().bind(chained(20, "SELECT a.id, b.v FROM {below} a JOIN {below} b ON a.id = b.id"))
    tall = height(plan, 1)
    assert len(visited) == distinct(plan)
    # Nothing is remembered beyond the outermost call.
    assert height(plan, 2) == 2 * tall
