"""OVER end to end: windows of one and several partitionings, stream folded = batch, epochs cut small."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import new_session
from tidemill.changelog.rowkind import RowKind
from tidemill.errors import NotSupportedError
from tidemill.session.environment import TableEnvironment

QUERY = """
SELECT k, o, n,
  SUM(n) OVER w AS total,
  COUNT(*) OVER (PARTITION BY k) AS rows_of_k,
  AVG(n) OVER (PARTITION BY k ORDER BY o, n ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS near,
  LAG(n, 1, -1) OVER (PARTITION BY k ORDER BY o, n) AS lag_n,
  LEAD(n) OVER (PARTITION BY k ORDER BY o, n) AS lead_n,
  MAX(n) OVER (ORDER BY o RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS recent
FROM t WINDOW w AS (PARTITION BY k ORDER BY o)
"""
EXPECTED = {
    ("a", 1, 10, 10, 4, 7, -1, 5, 10),
    ("a", 2, 5, 35, 4, 11, 10, 20, 20),
    ("a", 2, 20, 35, 4, 11, 5, 8, 20),
    ("a", 4, 8, 43, 4, 14, 20, None, 8),
    ("b", 1, 7, 7, 1, 7, -1, None, 10),
}


def session_on(path: Path, **options: str) -> TableEnvironment:
    (path / "t.csv").write_text("a,1,10\na,2,20\na,2,5\nb,1,7\na,4,8\n")
    session = new_session(**options)
    session.execute_sql(
        "CREATE TABLE t (k STRING, o INT, n INT) "
        f"WITH ('connector'='filesystem', 'path'='{path}/t.csv', 'format'='csv')"
    )
    return session


def folded(session: TableEnvironment, query: str) -> dict[Any, int]:
    found: Counter[Any] = Counter()
    for row in session.execute_sql(query).collect():
        found[tuple(row)] += -1 if row.kind in (RowKind.UPDATE_BEFORE, RowKind.DELETE) else 1
    return {row: n for row, n in found.items() if n}


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="stream"),
        pytest.param({"tidemill__epoch__max_rows": "2"}, id="cut"),
        pytest.param({"execution__runtime_mode": "batch"}, id="batch"),
    ],
)
def test_windows(spark: SparkSession, tmp_path: Path, options: dict[str, str]) -> None:
    assert folded(session_on(tmp_path, **options), QUERY) == dict.fromkeys(EXPECTED, 1)


def test_over_an_updating_input(spark: SparkSession, tmp_path: Path) -> None:
    query = (
        "SELECT k, total, RANK() OVER (ORDER BY total DESC) AS place FROM "
        "(SELECT k, SUM(n) AS total FROM t GROUP BY k)"
    )
    session = session_on(tmp_path, tidemill__epoch__max_rows="1")
    assert folded(session, query) == {("a", 43, 1): 1, ("b", 7, 2): 1}


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_variances_of_whole_numbers(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    """As Flink divides them: with OVER the square of the sum by the count at once."""
    session = session_on(tmp_path, execution__runtime_mode=mode)
    query = (
        "SELECT n, VAR_SAMP(n) OVER w, VAR_POP(n) OVER w, STDDEV_SAMP(n) OVER w FROM t WHERE k = 'a' "
        "WINDOW w AS (ORDER BY n)"
    )
    expected = [(5, None, 0, None), (8, 5, 2, 2), (10, 6, 4, 2), (20, 42, 31, 6)]
    assert folded(session, query) == dict.fromkeys(expected, 1)
    assert folded(session, "SELECT VAR_SAMP(n), VAR_POP(n) FROM t WHERE n IN (5, 8)") == {(4, 2): 1}


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_ranges_from_null(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    """Its peers are in its frame where the row itself is."""
    session = session_on(tmp_path, execution__runtime_mode=mode)
    rows = "SELECT NULLIF(o, 1) AS o, n FROM t"
    for frame, sums in {
        "1 PRECEDING AND CURRENT ROW": {(None, 17): 2, (2, 25): 2, (4, 8): 1},
        "2 PRECEDING AND 1 PRECEDING": {(None, None): 2, (2, None): 2, (4, 25): 1},
        "1 FOLLOWING AND 2 FOLLOWING": {(None, None): 2, (2, 8): 2, (4, None): 1},
        "UNBOUNDED PRECEDING AND 1 PRECEDING": {(None, None): 2, (2, 17): 2, (4, 42): 1},
    }.items():
        query = f"SELECT o, SUM(n) OVER (ORDER BY o RANGE BETWEEN {frame}) FROM ({rows})"
        assert folded(session, query) == sums, frame


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_a_function_without_a_window_kernel_is_named(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    session = session_on(tmp_path, execution__runtime_mode=mode)
    with pytest.raises(NotSupportedError, match="LISTAGG OVER"):
        session.execute_sql("SELECT LISTAGG(k) OVER (PARTITION BY n ORDER BY o) FROM t").collect()
