"""EXPLAIN JSON_EXECUTION_PLAN and PLAN_ADVICE."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.session.environments import ask, new_session
from tidemill.errors import NotSupportedError, Position
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
        ("Source: o[1]", "Data Source", 3),
        ("Calc[2]", "Operator", 3),
        ("GroupAggregate[3]", "Operator", 3),
    ]
    assert found[2]["predecessors"] == [{"id": 2, "ship_strategy": "HASH", "side": "second"}]
    assert found[2]["contents"] == "[3]:GroupAggregate(groupBy=[b], select=[b, COUNT(*) AS c])"


def test_a_sink_is_the_end_of_the_graph() -> None:
    made = session()
    made.execute_sql("CREATE TABLE s (x INT, y STRING) WITH ('connector'='blackhole')")
    text = explained(made, "JSON_EXECUTION_PLAN INSERT INTO s SELECT a, b FROM o")
    last = graph(text)[-1]
    assert (last["type"], last["pact"]) == ("Sink: s[2]", "Data Sink")
    assert text.endswith(
        '    "parallelism" : -1,\n    "predecessors" : [ {\n      "id" : 1,\n'
        '      "ship_strategy" : "FORWARD",\n      "side" : "second"\n    } ]\n  } ]\n}'
    )


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
    with pytest.raises(NotSupportedError, match="ESTIMATED_COST is not supported under batch mode"):
        explained(session(execution__runtime_mode="batch"), f"ESTIMATED_COST {COUNT}")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT window_end, COUNT(*) FROM TABLE(TUMBLE(TABLE j, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) "
        "GROUP BY window_start, window_end",
        "SELECT COUNT(*) FROM j GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)",
        "SELECT * FROM j ORDER BY ts",
    ],
)
def test_what_cannot_run_is_not_explained(query: str) -> None:
    made = session()
    ask(made, "CREATE TABLE e (a INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector'='datagen')")
    ask(made, "CREATE VIEW j AS SELECT x.ts FROM e AS x JOIN e AS y ON x.a = y.a")
    with pytest.raises(NotSupportedError, match="the result of Join has none") as raised:
        explained(made, query)
    assert raised.value.position == Position(1, 9)


def section(text: str, title: str) -> str:
    return text.split(f"== {title} ==\n")[1].split("\n\n==")[0].rstrip()


def costs(text: str) -> list[str]:
    lines = section(text, "Optimized Physical Plan").splitlines()
    return [line.rpartition(": rowcount = ")[2].removesuffix(" memory}") for line in lines]


def test_costs_are_those_that_flink_counts_with() -> None:
    made = session()
    assert costs(explained(made, "ESTIMATED_COST SELECT UPPER(b) AS u FROM o WHERE a = 1 AND b <> 'x'")) == [
        "1.275E7, cumulative cost = {1.1275E8 rows, 2.0E8 cpu, 1.6E9 io, 0.0 network, 0.0",
        "1.0E8, cumulative cost = {1.0E8 rows, 1.0E8 cpu, 1.6E9 io, 0.0 network, 0.0",
    ]
    assert costs(explained(made, f"ESTIMATED_COST {COUNT}"))[0] == (
        "1.0E8, cumulative cost = {4.0E8 rows, 1.7E10 cpu, 1.6E9 io, 1.2E9 network, 0.0"
    )
    top = "ESTIMATED_COST SELECT * FROM (SELECT b FROM o UNION ALL SELECT b FROM o WHERE a > 0) LIMIT 3"
    assert [c.partition(",")[0] for c in costs(explained(made, top))] == [
        *("3.0", "1.5E8", "1.5E8", "1.0E8", "1.0E8", "5.0E7", "1.0E8"),
    ]


def test_columns_are_chosen_above_a_source_that_makes_whole_rows() -> None:
    made = session()
    made.execute_sql(
        "CREATE TABLE w (a INT, b STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)"
        " WITH ('connector'='datagen')"
    )
    scan = "TableSourceScan(table=[[default_catalog, default_database, w]], fields=[a, b, ts])"
    above = "WatermarkAssigner(rowtime=[ts], watermark=[ts])"
    shown = section(explained(made, "SELECT ts, b FROM w WHERE a > 1"), "Optimized Physical Plan")
    assert shown == f"Calc(select=[ts, b], where=[>(a, 1)])\n+- {above}\n   +- {scan}"
    shown = section(explained(made, "SELECT a FROM w"), "Optimized Execution Plan")
    assert shown == f"Calc(select=[a])\n+- {above}\n   +- {scan}"


def test_what_inserts_share_stands_before_them() -> None:
    made = session()
    for name in ("x", "y"):
        made.execute_sql(f"CREATE TABLE {name} (v STRING, n BIGINT) WITH ('connector'='print')")
    inserts = "; ".join(f"INSERT INTO {name} {COUNT}" for name in ("x", "y"))
    shown = section(explained(made, f"STATEMENT SET BEGIN {inserts}; END"), "Optimized Execution Plan")
    first, *sinks = shown.split("\n\n")
    assert first.startswith(
        "GroupAggregate(groupBy=[b], select=[b, COUNT(*) AS c])(reuse_id=[1])\n+- Exchange"
    )
    assert sinks == [
        f"Sink(table=[default_catalog.default_database.{name}], fields=[b, c])\n+- Reused(reference_id=[1])"
        for name in ("x", "y")
    ]
