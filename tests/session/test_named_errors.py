"""What fails in a row names the expression of the query that failed, in both modes."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import new_session, rows
from tidemill.errors import ExecutionError
from tidemill.session.environment import TableEnvironment


@pytest.fixture(params=["batch", "streaming"])
def session(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> TableEnvironment:
    (tmp_path / "t.csv").write_text("abc,4,0\n")
    session = new_session(execution__runtime_mode=request.param)
    session.execute_sql(
        "CREATE TABLE t (price STRING, n INT, z INT) WITH ('connector' = 'filesystem', 'format' = 'csv',"
        f" 'path' = '{tmp_path / 't.csv'}')"
    )
    return session


FAILURES = (
    (
        "SELECT UPPER(CAST(n + CAST(TRIM(price) AS INT) AS STRING)) FROM t",
        "CAST(TRIM(price, FLAG(BOTH)) AS INTEGER) failed: For input string: 'abc'. Invalid character found.",
    ),
    (
        "SELECT n, SUM(c) FROM (SELECT n, CAST(price AS DECIMAL(9, 2)) AS c FROM t) GROUP BY n",
        "CAST(price AS DECIMAL(9, 2)) failed: For input string: 'abc'. Invalid character found.",
    ),
    ("SELECT COUNT(*) FROM t WHERE 1 + n / (z * 2) > 1", "(n / (z * 2)) failed: / by zero"),
    (
        "SELECT a.n FROM t AS a JOIN t AS b ON a.n = b.n AND MOD(b.n, b.z) < a.n",
        "MOD(n, z) failed: / by zero",
    ),
    (
        "SELECT CAST(ARRAY[price] AS ARRAY<DATE>) FROM t",
        "CAST(ARRAY(price) AS DATE ARRAY NOT NULL) failed: For input string: 'abc'.",
    ),
    (
        "SELECT CAST(SQRT(-n) AS DECIMAL(9, 2)) FROM t",
        "CAST(SQRT(CAST(-(n) AS DOUBLE)) AS DECIMAL(9, 2)) failed: Infinite or NaN",
    ),
    (
        "SELECT ELEMENT(ARRAY[n, z]) FROM t",
        "ELEMENT(ARRAY(n, z)) failed: Array has more than one element.",
    ),
)


@pytest.mark.parametrize(("query", "message"), FAILURES)
def test_a_failure_names_its_expression(session: TableEnvironment, query: str, message: str) -> None:
    with pytest.raises(ExecutionError) as caught:
        rows(session.execute_sql(query))
    assert caught.value.message == message
