"""MATCH_RECOGNIZE through a job: one answer wherever epochs are cut, stopped or not, in stream and batch."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.running import Session
from tidemill.errors import ExecutionError, NotSupportedError

EPOCHS = (0, 1, 3)
ROWS = (
    ("a", 1, "1.5", 10), ("b", 2, "2.5", 7), ("a", 3, "1.0", 12), ("a", 2, "3.0", 11), ("b", 6, "1.5", 5),
    ("a", 7, "2.0", 9), ("a", 5, "2.5", 8), ("b", 8, "", 9), ("a", 12, "4.0", 14), ("a", 11, "4.5", 13),
    ("b", 13, "3.5", 2), ("b", 20, "0.5", 11), ("a", 21, "1.5", 3), ("a", 4, "9.0", 99),
)  # fmt: skip
"""The last row is behind the watermark (t - 3)."""


def session(tmp_path: Path, rows: int, mode: str = "streaming") -> Session:
    path = tmp_path / "ticks.csv"
    path.write_text("".join(f"2024-05-01 00:00:{t:02d},{k},{d},{n}\n" for k, t, d, n in ROWS))
    made = Session({"tidemill.epoch.max-rows": str(rows)} if rows else {})
    made.execute(
        f"SET 'execution.runtime-mode' = '{mode}'",
        "CREATE TABLE ticks (ts TIMESTAMP(3), k STRING, d DECIMAL(4, 1), n INT,"
        " WATERMARK FOR ts AS ts - INTERVAL '3' SECOND)"
        f" WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv', 'csv.null-literal' = '')",
    )
    return made


def matching(body: str, columns: str = "*") -> str:
    return f"SELECT {columns} FROM ticks MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts {body})"


# By time: a: 10 11 12 (99) 8 9 13 14 3; b: 7 5 9 2 11.
GREEDY = (
    "MEASURES FIRST(A.n) AS f, COUNT(*) AS c, B.n AS b AFTER MATCH SKIP PAST LAST ROW PATTERN (A+ B)"
    " DEFINE A AS A.n > 8, B AS B.n > 11"
)
QUERIES: dict[str, tuple[str, list[tuple[object, ...]]]] = {
    "a greedy variable gives rows back": (GREEDY, [("a", 10, 3, 12), ("a", 9, 3, 14)]),
    "within": (
        "MEASURES A.n AS a, LAST(B.n) AS b PATTERN (A B*? C) WITHIN INTERVAL '3' SECOND"
        " DEFINE C AS C.n > A.n",
        [("a", 10, None), ("a", 11, None), ("a", 8, None), ("a", 13, None), ("b", 5, None)],
    ),
    "rows compared in other types, measures of functions": (
        "MEASURES A.n AS n, ABS(A.n - B.n) AS gap PATTERN (A B)"
        " DEFINE B AS B.d > A.d + 1 AND ABS(A.n - B.n) < 5 AND B.ts < A.ts + INTERVAL '3' SECOND",
        [("a", 10, 1), ("a", 12, 4)],
    ),
    "arithmetic, choices and elapsed time over several rows": (
        "MEASURES A.n AS a, B.n AS b PATTERN (A B)"
        " DEFINE B AS (B.d - A.d > 0.5 AND TIMESTAMPDIFF(SECOND, A.ts, B.ts) <= 3)"
        " OR CASE WHEN B.d IS NULL THEN B.n > A.n ELSE B.d * A.d > 8 END"
        " OR CAST(B.n AS DOUBLE) / CAST(A.n AS DOUBLE) > 5",
        [("a", 10, 11), ("a", 12, 8), ("a", 9, 13), ("a", 13, 14), ("b", 5, 9), ("b", 2, 11)],
    ),
    "rows judged alone, by kernels and by Spark": (
        "MEASURES A.n AS a, B.n AS b PATTERN (A B) DEFINE A AS A.n + 2147483640 < 0,"
        " B AS B.d > 2 AND UPPER(B.k) = 'A' AND B.n > 8.5e0 AND B.n IS NOT NULL",
        [("a", 10, 11), ("a", 9, 13), ("a", 13, 14)],
    ),
    "a function of a row that is not there": (
        "MEASURES A.n AS a, B.n AS b, C.n AS c PATTERN (A B? C)"
        " DEFINE B AS B.n > 12, C AS C.n < COALESCE(B.n, 6)",
        [("a", 13, 14, 3), ("a", 14, None, 3), ("b", 7, None, 5), ("b", 9, None, 2)],
    ),
}


@pytest.mark.one_case
@pytest.mark.parametrize("rows", EPOCHS)
def test_streaming(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    made = session(tmp_path, rows)
    for name, (body, expected) in QUERIES.items():
        changes = made.changes(matching(body))
        assert sorted(map(str, (row for _, row in changes))) == sorted(map(str, expected)), name
        assert {kind for kind, _ in changes} == {"+I"}


@pytest.mark.one_case
@pytest.mark.parametrize("rows", EPOCHS)
def test_by_processing_time(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    """In the order of arrival, in which no row is late: a: 10 12 11 9 8 14 13 3 99."""
    made = session(tmp_path, rows)
    made.execute("CREATE TEMPORARY VIEW coming AS SELECT *, PROCTIME() AS pt FROM ticks")
    body = matching(GREEDY).replace("ticks", "coming").replace("ORDER BY ts", "ORDER BY pt")
    expected = [("a", 10, 2, 12), ("a", 14, 2, 13)]
    within = body.replace("DEFINE", "WITHIN INTERVAL '1' HOUR DEFINE")
    for query in (body, within):
        assert sorted(row for _, row in made.changes(query)) == expected


def test_batch(tmp_path: Path, spark: SparkSession) -> None:
    """No row is late."""
    made = session(tmp_path, 0, "batch")
    found = [row for _, row in made.changes(matching(GREEDY))]
    assert sorted(found) == [("a", 9, 3, 14), ("a", 10, 4, 99)]


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_a_skip_that_would_not_end_fails(tmp_path: Path, spark: SparkSession, mode: str) -> None:
    made = session(tmp_path, 0, mode)
    with pytest.raises(ExecutionError, match="Could not skip to first element"):
        made.changes(matching("MEASURES A.n AS a AFTER MATCH SKIP TO FIRST A PATTERN (A B) DEFINE B AS TRUE"))


def test_refused(tmp_path: Path, spark: SparkSession) -> None:
    made = session(tmp_path, 0)
    made.execute(
        "CREATE TABLE changing (ts TIMESTAMP(3), k STRING, n INT, WATERMARK FOR ts AS ts)"
        f" WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'debezium-json')"
    )
    updating = matching("MEASURES A.n AS a PATTERN (A B) DEFINE B AS TRUE").replace("ticks", "changing")
    with pytest.raises(NotSupportedError, match="consuming update and delete changes"):
        made.changes(updating)
    with pytest.raises(NotSupportedError, match="DEFINE that applies LIKE to values of several rows"):
        made.changes(matching("MEASURES A.n AS a PATTERN (A B) DEFINE B AS A.k LIKE B.k"))
