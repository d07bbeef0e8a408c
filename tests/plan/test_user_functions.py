"""User functions in plans: every call is a column of its own Project, computed once, over few rows."""

from __future__ import annotations

import pytest

from tests.plan.environment import FakeEnvironment
from tests.user_functions import samples
from tidemill import udf
from tidemill.physical.explain.syntax_tree import syntax_tree
from tidemill.plan.optimizer import optimize


@pytest.fixture
def environment() -> FakeEnvironment:
    made = FakeEnvironment()
    made.add_table("t", k="INT", s="STRING", a="ARRAY<INT>")
    made.add_table("u", k="INT", s="STRING")
    made.functions = {
        "f": udf(lambda x: x, input_types=["BIGINT"], result_type="BIGINT"),
        "g": udf(lambda x, y: x, result_type="BIGINT"),
        "chance": udf(lambda: 1, result_type="BIGINT", deterministic=False),
        "many": udf(lambda x: [x], result_type="ARRAY<BIGINT>"),
        "words": samples.words,
    }
    return made


def plan(environment: FakeEnvironment, query: str) -> list[str]:
    """The nodes from the root down, as EXPLAIN prints them."""
    return [line.strip(" +-:") for line in syntax_tree(optimize(environment.bind(query))).split("\n")]


LONG = "CAST({}):BIGINT"


def test_a_call_that_is_a_column_stays(environment: FakeEnvironment) -> None:
    assert plan(environment, "SELECT f(k) AS x FROM t") == [
        "LogicalProject(x=[f(CAST($0):BIGINT)])",
        "LogicalTableScan(table=[[default_catalog, default_database, t]])",
    ]


def test_calls_in_expressions_and_in_calls_go_below(environment: FakeEnvironment) -> None:
    assert plan(environment, "SELECT f(f(k)) + f(k) AS x, f(k) AS y FROM t")[:3] == [
        "LogicalProject(x=[+($2, $1)], y=[$1])",
        "LogicalProject(k=[$0], f0=[$1], f00=[f($1)])",
        "LogicalProject(k=[$0], f0=[f(CAST($0):BIGINT)])",
    ]


def test_what_differs_each_time_is_computed_each_time(environment: FakeEnvironment) -> None:
    assert plan(environment, "SELECT chance() + 1 AS x, chance() + 1 AS y FROM t")[:2] == [
        "LogicalProject(x=[+($1, 1:BIGINT)], y=[+($2, 1:BIGINT)])",
        "LogicalProject(k=[$0], f0=[chance()], f1=[chance()])",
    ]


def test_plain_conditions_come_first_and_filtered_calls_are_used_again(environment: FakeEnvironment) -> None:
    assert plan(environment, "SELECT f(k) + 1 AS x FROM t WHERE f(k) > 1 AND k > 0")[:4] == [
        "LogicalProject(x=[+($1, 1:BIGINT)])",
        "LogicalFilter(condition=[>($1, 1)])",
        "LogicalProject(k=[$0], f0=[f(CAST($0):BIGINT)])",
        "LogicalFilter(condition=[>($0, 0)])",
    ]


def test_a_join_computes_calls_on_their_sides(environment: FakeEnvironment) -> None:
    found = plan(environment, "SELECT t.s, u.s FROM t LEFT JOIN u ON f(t.k) = f(u.k) AND g(t.k, u.k) > 1")
    assert found[0] == "LogicalProject(s=[$1], s0=[$4])"
    assert found[1] == "LogicalJoin(condition=[AND(=($2, $5), >(g($0, $3), 1))], joinType=[left])"
    assert found[2] == found[4] == "LogicalProject(k=[$0], s=[$1], f0=[f(CAST($0):BIGINT)])"


def test_a_call_over_both_sides_of_an_inner_join_filters_above(environment: FakeEnvironment) -> None:
    assert plan(environment, "SELECT t.s FROM t JOIN u ON t.k = u.k AND g(t.k, u.k) > 1")[:4] == [
        "LogicalProject(s=[$1])",
        "LogicalFilter(condition=[>($3, 1)])",
        "LogicalProject(k=[$0], s=[$1], k0=[$2], f0=[g($0, $2)])",
        "LogicalJoin(condition=[=($0, $2)], joinType=[inner])",
    ]


@pytest.mark.parametrize(
    ("source", "node"),
    [
        ("UNNEST(many(k)) AS x(e)", "LogicalCorrelate(joinType=[inner], unnest=[$1])"),
        ("LATERAL TABLE(words(CAST(f(k) AS STRING))) AS x(e)", "invocation=[words(CAST($1):"),
    ],
)
def test_calls_in_from_are_columns_of_the_input(environment: FakeEnvironment, source: str, node: str) -> None:
    found = plan(environment, f"SELECT k, e FROM t, {source}")
    assert any(node in line for line in found)
    assert any(line.startswith("LogicalProject(k=[$0], f0=[") for line in found)


def test_sources_are_not_asked_to_filter_by_them(environment: FakeEnvironment) -> None:
    optimized = optimize(environment.bind("SELECT s FROM t WHERE f(k) > 1 AND k > 0"))
    node = optimized
    while node.inputs:
        (node,) = node.inputs
    assert len(getattr(node, "filters", ())) == 1
