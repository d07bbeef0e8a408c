"""In batch the one value of a sub-query is known before what is compared with it is read."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tidemill.session.environment import TableEnvironment

LARGE = 9 * 10**37


@pytest.fixture(scope="module")
def environment(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TableEnvironment:
    folder = tmp_path_factory.mktemp("values")
    made = new_session(parallelism__default="2", execution__runtime_mode="batch", table__dml_sync="true")
    ask(
        made,
        "CREATE TABLE t (k INT, v DECIMAL(38, 0), f DOUBLE) WITH "
        f"('connector' = 'filesystem', 'path' = '{folder}/t', 'format' = 'parquet')",
        "INSERT INTO t VALUES (1, 10, 0.5), (2, 20, -0.0), (3, CAST(NULL AS DECIMAL(38, 0)), 0.0)",
    )
    return made


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT k FROM t WHERE v > (SELECT AVG(v) FROM t)", [(2,)]),
        ("SELECT k FROM t WHERE f = (SELECT MIN(f) FROM t)", [(2,), (3,)]),
        ("SELECT k, (SELECT SUM(k) FROM t) AS k0 FROM t", [(1, 6), (2, 6), (3, 6)]),
        (
            "SELECT k, CASE WHEN (SELECT COUNT(*) FROM t) > k + 1 THEN (SELECT MAX(k) FROM t) ELSE k END "
            "AS m FROM t",
            [(1, 3), (2, 2), (3, 3)],
        ),
        ("SELECT k, (SELECT MAX(v) FROM t WHERE k > 9) AS v FROM t", [(1, None), (2, None), (3, None)]),
        ("SELECT k FROM t WHERE k > (SELECT MAX(k) FROM t WHERE k > 9)", []),
        ("SELECT k FROM t WHERE (SELECT MAX(k) FROM t WHERE k > 9) IS NULL", [(1,), (2,), (3,)]),
        ("SELECT k FROM t WHERE k > (SELECT MIN(k) FROM t) AND k < (SELECT MAX(k) FROM t)", [(2,)]),
        (
            "SELECT a.k, b.k FROM t AS a JOIN (SELECT MAX(k) AS k FROM t) AS b ON a.k + 1 >= b.k",
            [(2, 3), (3, 3)],
        ),
        ("SELECT COUNT(*) FROM t JOIN (SELECT COUNT(*) AS c FROM t) ON TRUE", [(3,)]),
        ("SELECT k FROM t WHERE k = (SELECT MAX(k) FROM t HAVING COUNT(*) > 3)", []),
    ],
)
def test_answers(environment: TableEnvironment, query: str, expected: list[Any]) -> None:
    assert sorted(ask(environment, query)) == expected


@pytest.mark.thorough
def test_a_sum_that_leaves_its_digits_on_the_way_within(
    environment: TableEnvironment, tmp_path: Path
) -> None:
    """The job is run again with sums in parts, as any other."""
    ask(
        environment,
        "CREATE TABLE wide (v DECIMAL(38, 0)) WITH "
        f"('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'parquet')",
        f"INSERT INTO wide VALUES (CAST('{LARGE}' AS DECIMAL(38, 0))), (CAST('{LARGE}' AS DECIMAL(38, 0))), "
        f"(CAST('-{LARGE}' AS DECIMAL(38, 0)))",
    )
    found = ask(environment, "SELECT v FROM wide WHERE v = (SELECT SUM(v) FROM wide)")
    assert found == [(Decimal(LARGE),)] * 2


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k FROM t WHERE k > (SELECT AVG(k) FROM t)",
        "SELECT k, CASE WHEN (SELECT COUNT(*) FROM t) > 2 THEN (SELECT MAX(v) FROM t) END AS v FROM t",
    ],
)
def test_no_join_is_made_of_it(environment: TableEnvironment, query: str) -> None:
    frame = environment.sql_query(query).to_spark()
    plan = str(frame._jdf.queryExecution().executedPlan())
    assert "Join" not in plan
    assert "scalar-subquery" in plan or "Subquery" in plan
