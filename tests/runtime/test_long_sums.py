"""Sums of long decimals that leave 38 digits on their way and come back: exact in whatever a batch job is."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import new_session
from tidemill.session.environment import TableEnvironment

LARGE = 9 * 10**37
QUERY = f"""
    SELECT g, SUM(v) AS s, AVG(v) AS a, SUM(v) FILTER (WHERE v < 0) AS f FROM (VALUES
      (1, CAST('{LARGE}' AS DECIMAL(38, 0))), (1, CAST('{LARGE}' AS DECIMAL(38, 0))),
      (1, CAST('-{LARGE}' AS DECIMAL(38, 0))), (2, CAST('{LARGE}' AS DECIMAL(38, 0))),
      (2, CAST('{LARGE}' AS DECIMAL(38, 0))), (3, CAST(7 AS DECIMAL(38, 0))),
      (4, CAST(NULL AS DECIMAL(38, 0)))) AS t (g, v) GROUP BY g"""
SUMS = [(1, Decimal(LARGE)), (2, None), (3, Decimal(7)), (4, None)]


@pytest.fixture(scope="module")
def environment(spark: SparkSession) -> TableEnvironment:
    made = new_session()
    made.execute_sql("SET 'execution.runtime-mode' = 'batch'")
    return made


def test_select(environment: TableEnvironment) -> None:
    rows = sorted(tuple(row)[:2] for row in environment.execute_sql(QUERY).collect())
    assert rows == SUMS


def test_frame(environment: TableEnvironment) -> None:
    rows = sorted(tuple(row)[:2] for row in environment.sql_query(QUERY).to_spark().collect())
    assert rows == SUMS


def test_insert(environment: TableEnvironment, tmp_path: Path) -> None:
    """What the first attempt wrote is not there."""
    environment.execute_sql(
        "CREATE TABLE sums (g INT, s DECIMAL(38, 0)) WITH "
        f"('connector' = 'filesystem', 'path' = '{tmp_path}/sums', 'format' = 'json')"
    )
    environment.execute_sql(f"INSERT INTO sums SELECT g, s FROM ({QUERY})").wait()
    rows = sorted(tuple(row) for row in environment.execute_sql("SELECT * FROM sums").collect())
    assert rows == SUMS
