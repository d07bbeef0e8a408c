"""Rows that are larger than a page of a task's memory."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tidemill.session.environment import TableEnvironment

LONG = 5_000_000


@pytest.fixture(scope="module")
def environment(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TableEnvironment:
    assert spark.sparkContext.getConf().get("spark.buffer.pageSize") == "4m"
    place = tmp_path_factory.mktemp("long")
    session = new_session(execution__runtime_mode="batch", table__dml_sync="true")
    ask(
        session,
        "CREATE TABLE texts (k INT, s STRING) WITH "
        f"('connector' = 'filesystem', 'path' = '{place}', 'format' = 'parquet')",
        f"INSERT INTO texts SELECT k, REPEAT(CAST(k AS STRING), {LONG}) FROM (VALUES 1, 2, 3) AS v(k)",
    )
    return session


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (
            "SELECT k, CHAR_LENGTH(s) FROM (SELECT * FROM texts ORDER BY s DESC LIMIT 2) AS t",
            [(2, LONG), (3, LONG)],
        ),
        ("SELECT SUM(k), CHAR_LENGTH(s) FROM texts GROUP BY s", [(1, LONG), (2, LONG), (3, LONG)]),
        ("SELECT COUNT(DISTINCT s), MAX(CHAR_LENGTH(s)) FROM texts", [(3, LONG)]),
        (
            "SELECT /*+ SHUFFLE_MERGE(b) */ a.k, CHAR_LENGTH(b.s) FROM texts a JOIN texts b ON a.s = b.s",
            [(1, LONG), (2, LONG), (3, LONG)],
        ),
        (
            "SELECT k, CHAR_LENGTH(FIRST_VALUE(s) OVER (ORDER BY k)) FROM texts",
            [(1, LONG), (2, LONG), (3, LONG)],
        ),
    ],
)
def test_they_are_sorted_grouped_and_joined(
    environment: TableEnvironment, query: str, rows: list[tuple[int, int]]
) -> None:
    assert sorted(ask(environment, query)) == rows
