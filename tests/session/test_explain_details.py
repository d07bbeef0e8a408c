"""EXPLAIN JSON_EXECUTION_PLAN and PLAN_ADVICE."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.session.environments import ask, new_session
from tidemill.errors import NotSupportedError
from tidemill.session.environment import TableEnvironment

TABLE = "CREATE TABLE o (a INT NOT NULL, b STRING) WITH ('connector'='datagen')"
COUNT = "SELECT b, COUNT(*) AS c FROM o GROUP BY b"
ADVICE = "You might want to enable local-global two-phase optimization by configuring"


def session(**options: str) -> TableEnvironment:
    made = new_session(**options)
    made.execute_sql(TABLE)
    return made


def explained(made: TableEnvironment, statement: str) -> str:
    return str(ask(made, f"EXPLAIN {statement}")[0][0])


def graph(text: str) -> list[dict[str, Any]]:
    nodes: list[dict[str, Any]] = json.loads(text.split("== Physical Execution Plan ==\n")[1])["nodes"]
    return nodes


def test_the_plan_as_a_graph() -> None:
    found = graph(explained(session(parallelism__default="3"), f"JSON_EXECUTION_PLAN {COUNT}"))
    assert [(n["type"], n["pact"], n["parallelism"]) for n in found] == [
        ("Source: TableSourceScan[1]", "Data Source", 3),
        ("GroupAggregate[2]", "Operator", 3),
    ]
    assert found[1]["predecessors"] == [{"id": 1, "ship_strategy": "HASH", "side": "second"}]
    assert found[1]["contents"] == "[2]:GroupAggregate(groupBy=[b], select=[b, COUNT(*) AS c])"


def test_what_two_read_is_one_node() -> None:
    join = "JSON_EXECUTION_PLAN SELECT x.b FROM o x JOIN o y ON x.b = y.b"
    sources = [n for n in graph(explained(session(), join)) if "predecessors" not in n]
    assert [n["parallelism"] for n in sources] == [-1]


def test_batch_plans_too() -> None:
    text = explained(session(execution__runtime_mode="batch"), f"JSON_EXECUTION_PLAN {COUNT}")
    ways = [w["ship_strategy"] for n in graph(text) for w in n.get("predecessors", ())]
    assert ways == ["FORWARD", "HASH[b]"]


@pytest.mark.parametrize(
    ("options", "advised"),
    [
        ({}, ""),
        ({"table.exec.mini-batch.enabled": "false"}, "('table.exec.mini-batch.enabled' to 'true')."),
        (
            {"table.optimizer.agg-phase-strategy": "ONE_PHASE"},
            "('table.optimizer.agg-phase-strategy' to 'AUTO').",
        ),
    ],
)
def test_advice(options: dict[str, str], advised: str) -> None:
    made = session(**options)
    text = explained(made, f"PLAN_ADVICE {COUNT}")
    plan = text.split("== Optimized Physical Plan With Advice ==\n")[1].split("\n\n==")[0]
    first = "GroupAggregate(advice=[1], groupBy" if advised else "GroupAggregate(groupBy"
    assert plan.startswith(first)
    last = f"advice[1]: [ADVICE] {ADVICE} {advised}" if advised else "No available advice..."
    assert plan.splitlines()[-1] == last
    not_merged = explained(made, "PLAN_ADVICE SELECT b, FIRST_VALUE(a) AS f FROM o GROUP BY b")
    assert "No available advice..." in not_merged


def test_what_is_refused() -> None:
    with pytest.raises(NotSupportedError, match="PLAN_ADVICE is not supported under batch mode"):
        explained(session(execution__runtime_mode="batch"), f"PLAN_ADVICE {COUNT}")
    with pytest.raises(NotSupportedError, match="ESTIMATED_COST is not supported"):
        explained(session(), f"ESTIMATED_COST {COUNT}")
