"""In batch OVER and GROUPING SETS are Spark's own nodes, where those give Flink's answers."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tidemill.errors import ValidationError
from tidemill.session.environment import TableEnvironment

D = Decimal
LARGE = 9 * 10**37


@pytest.fixture(scope="module")
def environment(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TableEnvironment:
    folder = tmp_path_factory.mktemp("windows")
    made = new_session(parallelism__default="2", execution__runtime_mode="batch", table__dml_sync="true")
    ask(
        made,
        "CREATE TABLE t (k STRING, n INT, v DECIMAL(7, 2), w DECIMAL(38, 0), f DOUBLE) WITH "
        f"('connector' = 'filesystem', 'path' = '{folder}/t', 'format' = 'parquet')",
        "INSERT INTO t VALUES "
        f"('a', 1, 10.50, CAST('{LARGE}' AS DECIMAL(38, 0)), 0.0), "
        f"('a', 2, 20.25, CAST('{LARGE}' AS DECIMAL(38, 0)), CAST('-0.0' AS DOUBLE)), "
        f"('a', 2, CAST(NULL AS DECIMAL(7, 2)), CAST('-{LARGE}' AS DECIMAL(38, 0)), 1.5), "
        "(CAST(NULL AS STRING), 2147483647, 1.00, CAST(NULL AS DECIMAL(38, 0)), 2.5), "
        "('b', CAST(NULL AS INT), CAST(NULL AS DECIMAL(7, 2)), CAST(NULL AS DECIMAL(38, 0)), 3.5)",
    )
    return made


OVER: dict[str, list[tuple[Any, ...]]] = {
    "SELECT k, n, SUM(v) OVER (PARTITION BY k) FROM t": [
        (None, 2147483647, D("1.00")),
        ("a", 1, D("30.75")),
        ("a", 2, D("30.75")),
        ("a", 2, D("30.75")),
        ("b", None, None),
    ],
    # Equal rows are one step of a RANGE; averages of whole numbers are cut.
    "SELECT n, SUM(n) OVER (ORDER BY n), AVG(n) OVER (PARTITION BY k ORDER BY n), COUNT(v) OVER (ORDER BY n) "
    "FROM t": [
        (None, None, None, 0),
        (1, 1, 1, 1),
        (2, 5, 1, 2),
        (2, 5, 1, 2),
        # It wraps.
        (2147483647, -2147483644, 2147483647, 3),
    ],
    "SELECT n, MIN(n) OVER (ORDER BY n DESC, v ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING), "
    "COUNT(*) OVER (ORDER BY n DESC, v ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) FROM t": [
        (None, 1, 1),
        (1, 1, 2),
        (2, 1, 3),
        (2, 2, 4),
        (2147483647, 2, 5),
    ],
    "SELECT n, AVG(v) OVER () FROM t": [
        (None, D("10.583333")),
        (1, D("10.583333")),
        (2, D("10.583333")),
        (2, D("10.583333")),
        (2147483647, D("10.583333")),
    ],
    "SELECT k, SUM(SUM(v)) OVER (PARTITION BY k) FROM t GROUP BY k, n": [
        (None, D("1.00")),
        ("a", D("30.75")),
        ("a", D("30.75")),
        ("b", None),
    ],
}


@pytest.mark.parametrize("query", OVER)
def test_over(environment: TableEnvironment, query: str) -> None:
    assert sorted(ask(environment, query), key=_nulls_first) == OVER[query]
    assert "MapInArrow" not in plan(environment, query)


def test_a_window_s_sum_that_leaves_its_digits_on_the_way(environment: TableEnvironment) -> None:
    """The job is run again with sums in parts."""
    found = ask(environment, "SELECT n, SUM(w) OVER (PARTITION BY k) FROM t WHERE k = 'a'")
    assert sorted(found) == [(1, D(LARGE)), (2, D(LARGE)), (2, D(LARGE))]


def test_what_spark_s_windows_would_answer_otherwise(environment: TableEnvironment) -> None:
    """Of the zeros Spark takes any, and it has no DISTINCT."""
    found = ask(
        environment,
        "SELECT n, COUNT(DISTINCT k) OVER (), CAST(MIN(f) OVER (PARTITION BY k) AS STRING) FROM t "
        "WHERE n < 3",
    )
    assert sorted(found) == [(1, 1, "-0.0"), (2, 1, "-0.0"), (2, 1, "-0.0")]


@pytest.mark.parametrize(
    ("frame", "sums"),
    [
        ("100000000000 PRECEDING", [1, 3, 5]),
        ("BETWEEN 1 PRECEDING AND 100000000000 FOLLOWING", [5, 5, 4]),
        ("BETWEEN 100000000000 PRECEDING AND 50000000000 PRECEDING", [None, None, None]),
        ("BETWEEN 1 PRECEDING AND 2 PRECEDING", [None, None, None]),
        ("BETWEEN 2 FOLLOWING AND 1 FOLLOWING", [None, None, None]),
        ("BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING", [4, 2, None]),
    ],
)
def test_frames_out_of_reach(environment: TableEnvironment, frame: str, sums: list[int | None]) -> None:
    query = f"SELECT n, SUM(n) OVER (ORDER BY n, v ROWS {frame}) FROM t WHERE n < 3"
    assert [total for _, total in sorted(ask(environment, query), key=lambda row: (row[0], row[1] or 0))] == (
        [sums[0], *sorted(sums[1:], key=lambda total: total or 0)]
    )


@pytest.mark.parametrize(
    ("frame", "told"),
    [
        ("1 FOLLOWING AND 1 PRECEDING", "cannot be PRECEDING when lower boundary is FOLLOWING"),
        ("CURRENT ROW AND 1 PRECEDING", "cannot be PRECEDING when lower boundary is CURRENT ROW"),
        ("1 FOLLOWING AND CURRENT ROW", "cannot be CURRENT ROW when lower boundary is FOLLOWING"),
        ("UNBOUNDED FOLLOWING AND CURRENT ROW", "UNBOUNDED FOLLOWING cannot be specified for the lower"),
        ("CURRENT ROW AND UNBOUNDED PRECEDING", "UNBOUNDED PRECEDING cannot be specified for the upper"),
    ],
)
def test_frames_that_end_before_they_begin(environment: TableEnvironment, frame: str, told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        ask(environment, f"SELECT SUM(n) OVER (ORDER BY n ROWS BETWEEN {frame}) FROM t")


GROUPED: dict[str, list[tuple[Any, ...]]] = {
    "SELECT k, n, SUM(n), COUNT(k), GROUPING(k) FROM t WHERE n < 3 GROUP BY ROLLUP (k, n)": [
        (None, None, 5, 3, 1),
        ("a", None, 5, 3, 0),
        ("a", 1, 1, 1, 0),
        ("a", 2, 4, 2, 0),
    ],
    # A key that is NULL is not one that is left out.
    "SELECT k, COUNT(*), GROUPING_ID(k) FROM t GROUP BY GROUPING SETS ((k), ())": [
        (None, 1, 0),
        (None, 5, 1),
        ("a", 3, 0),
        ("b", 1, 0),
    ],
    # A set that stands twice has its rows twice.
    "SELECT k, MAX(v) FROM t WHERE k = 'a' GROUP BY GROUPING SETS ((k), (k), ())": [
        (None, D("20.25")),
        ("a", D("20.25")),
        ("a", D("20.25")),
    ],
    "SELECT k, f, COUNT(*) FROM t WHERE n < 3 GROUP BY CUBE (k, f) HAVING GROUPING(k) = 1": [
        (None, None, 3),
        (None, -0.0, 1),
        (None, 0.0, 1),
        (None, 1.5, 1),
    ],
}


@pytest.mark.parametrize("query", GROUPED)
def test_grouping_sets(environment: TableEnvironment, query: str) -> None:
    found = sorted(ask(environment, query), key=_nulls_first)
    assert [tuple(map(str, row)) for row in found] == [tuple(map(str, row)) for row in GROUPED[query]]
    text = plan(environment, query)
    assert "Expand" in text
    assert "Generate" not in text


OF_NO_ROWS: dict[str, list[tuple[Any, ...]]] = {
    "COUNT(*), SUM(n) FROM t WHERE n > 5000 AND k = 'b' GROUP BY GROUPING SETS ((), ())": [(0, None)] * 2,
    "COUNT(*) FROM t WHERE k = 'c' GROUP BY (), GROUPING SETS ((), (), ())": [(0,)] * 3,
    "COUNT(*) FROM t WHERE k = 'c' GROUP BY GROUPING SETS ((), ()) HAVING COUNT(*) > 0": [],
    "GROUP_ID(), COUNT(*) FROM t WHERE k = 'c' GROUP BY GROUPING SETS ((), ())": [(0, 0), (1, 0)],
    "1 FROM t WHERE k = 'c' GROUP BY GROUPING SETS ((), ())": [(1,)] * 2,
    "1 FROM t WHERE k = 'c' GROUP BY ()": [(1,)],
    # As in Flink there is no row of no rows where other sets stand beside.
    "COUNT(*) FROM t WHERE k = 'c' GROUP BY GROUPING SETS ((), (k), ())": [],
    "COUNT(*) FROM t WHERE k = 'c' GROUP BY ROLLUP (k)": [],
}


@pytest.mark.parametrize("query", OF_NO_ROWS)
def test_empty_grouping_sets(environment: TableEnvironment, query: str) -> None:
    """In streaming nothing is known of what is not there yet."""
    assert sorted(ask(environment, f"SELECT {query}")) == OF_NO_ROWS[query]
    some = query.replace("k = 'c'", "k = 'a'").replace("n > 5000 AND k = 'b'", "k = 'a'")
    batch = ask(environment, f"SELECT {some}")
    ask(environment, "SET 'execution.runtime-mode' = 'streaming'")
    try:
        assert ask(environment, f"SELECT {query}") == []
        assert sorted(ask(environment, f"SELECT {some}")) == sorted(batch) != []
    finally:
        ask(environment, "SET 'execution.runtime-mode' = 'batch'")


def plan(environment: TableEnvironment, query: str) -> str:
    return str(environment.sql_query(query).to_spark()._jdf.queryExecution().executedPlan())


def _nulls_first(row: tuple[Any, ...]) -> list[tuple[bool, Any, str]]:
    return [(value is not None, value if value is not None else 0, str(value)) for value in row]
