"""Which of equal rows batch keeps: the one that streaming keeps."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tidemill.session.environment import TableEnvironment
from tidemill.session.rows.pandas_frames import folded

ROWS = "a,2020-01-01 00:00:01,2020-01-01 00:00:09,{}\n"
NEWEST = (
    "SELECT k, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {} DESC) AS r FROM {}) "
    "WHERE r = 1"
)


@pytest.fixture
def environment(spark: SparkSession, tmp_path: Path) -> TableEnvironment:
    """Three rows with equal times; ``ts`` is event time, also as the computed column ``later`` of a view."""
    (tmp_path / "ties.csv").write_text("".join(ROWS.format(n) for n in (1, 2, 3)))
    made = TableEnvironment.create()
    made.execute_sql(
        "CREATE TABLE ties (k STRING, ts TIMESTAMP(3), other TIMESTAMP(3), n INT, "
        "WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) "
        f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/ties.csv', 'format' = 'csv')"
    )
    made.execute_sql(
        "CREATE TABLE computed (k STRING, f TIMESTAMP(3), other TIMESTAMP(3), n INT, "
        "later AS f + INTERVAL '1' SECOND, WATERMARK FOR later AS later) "
        f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/ties.csv', 'format' = 'csv')"
    )
    made.execute_sql("CREATE VIEW v AS SELECT n, later AS happened, k FROM computed WHERE n > 0")
    return made


def answer(environment: TableEnvironment, query: str, mode: str) -> list[tuple[object, ...]]:
    environment.execute_sql(f"SET 'execution.runtime-mode' = '{mode}'")
    result = environment.execute_sql(query)
    return sorted(folded(result.fields, result.changes()))


@pytest.mark.parametrize("mode", ["streaming", "batch"])
@pytest.mark.parametrize(
    ("column", "table", "kept"),
    [("ts", "ties", 3), ("happened", "v", 3), ("other", "ties", 1), ("f", "computed", 1)],
)
def test_the_newest_by_event_time_is_the_last_that_came(
    environment: TableEnvironment, column: str, table: str, kept: int, mode: str
) -> None:
    assert answer(environment, NEWEST.format(column, table), mode) == [("a", kept)]


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_equal_rows_are_numbered_as_they_came(environment: TableEnvironment, mode: str) -> None:
    query = "SELECT n, r FROM (SELECT n, ROW_NUMBER() OVER (ORDER BY k) AS r FROM ties) WHERE r <= 2"
    assert answer(environment, query, mode) == [(1, 1), (2, 2)]


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_a_union_below_an_ordered_aggregate_is_distinct(environment: TableEnvironment, mode: str) -> None:
    query = (
        "SELECT k, COUNT(*), FIRST_VALUE(k) FROM (SELECT k FROM ties UNION SELECT k FROM computed) GROUP BY k"
    )
    assert answer(environment, query, mode) == [("a", 1, "a")]
