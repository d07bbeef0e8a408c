"""SESSION end to end: on a time with zone, late rows, any epoch cut; alone and below others."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import new_session
from tidemill.session.environment import TableEnvironment

_ROWS = """\
2024-10-27 01:59:50,a,1
2024-10-27 03:00:05,a,2
2024-10-27 01:59:58,b,4
2024-10-27 03:00:30,a,8
2024-10-27 01:59:55,a,16
2024-10-27 03:00:45,b,32
2024-10-27 03:00:15,a,64
"""
"""After the second row the watermark is 03:00:05: the third and the fifth are late. Before the last it is
03:00:45: the second row's session is gone, that of the fourth takes it in although its own span is over."""


def session_on(path: Path, **options: str) -> TableEnvironment:
    (path / "t.csv").write_text(_ROWS)
    session = new_session(**options)
    session.execute_sql("SET 'table.local-time-zone' = 'Europe/Berlin'")
    session.execute_sql(
        "CREATE TABLE t (ts TIMESTAMP(3), k STRING, n INT, z AS CAST(ts AS TIMESTAMP_LTZ(3)), "
        "WATERMARK FOR z AS z) "
        f"WITH ('connector'='filesystem', 'path'='{path}/t.csv', 'format'='csv')"
    )
    return session


@pytest.mark.thorough
@pytest.mark.parametrize("options", [{}, {"tidemill__epoch__max_rows": "1"}], ids=["one go", "row by row"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, window_start, window_end, SUM(n) FROM TABLE(SESSION(TABLE t PARTITION BY k, DESCRIPTOR(z),"
        " INTERVAL '20' SECOND)) WHERE k <> 'c' GROUP BY k, window_start, window_end",
        "SELECT k, window_start, window_end, SUM(n) FROM TABLE(SESSION((SELECT k, n, z FROM t WHERE n > 0)"
        " PARTITION BY (k), DESCRIPTOR(z), INTERVAL '20' SECOND)) GROUP BY k, window_start, window_end",
        "SELECT k, SESSION_START(z, INTERVAL '20' SECOND), SESSION_END(z, INTERVAL '20' SECOND), SUM(n)"
        " FROM t GROUP BY k, SESSION(z, INTERVAL '20' SECOND)",
    ],
    ids=["table function", "over a query", "group by"],
)
def test_sessions_are_walls_in_the_zone(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], query: str
) -> None:
    found = {tuple(row) for row in session_on(tmp_path, **options).execute_sql(query).collect()}

    def at(text: str) -> dt.datetime:
        return dt.datetime.fromisoformat(f"2024-10-27T{text}")

    assert found == {
        ("a", at("01:59:50"), at("02:00:10"), 1),
        ("a", at("03:00:05"), at("03:00:25"), 2),
        ("a", at("03:00:15"), at("03:00:50"), 72),
        ("b", at("03:00:45"), at("03:01:05"), 32),
    }


@pytest.mark.one_case
@pytest.mark.parametrize("options", [{}, {"tidemill__epoch__max_rows": "1"}], ids=["one go", "row by row"])
def test_sessions_that_something_else_looks_at(
    spark: SparkSession, tmp_path: Path, options: dict[str, str]
) -> None:
    """Rows come with their session when that has ended."""
    session = session_on(tmp_path, **options)
    call = "TABLE(SESSION(TABLE t PARTITION BY k, DESCRIPTOR(z), INTERVAL '20' SECOND))"
    alone = session.execute_sql(f"SELECT n, window_start, window_end FROM {call}").collect()
    bounds = {1: ("01:59:50", "02:00:10"), 2: ("03:00:05", "03:00:25"), 8: ("03:00:15", "03:00:50")}
    bounds |= {64: bounds[8], 32: ("03:00:45", "03:01:05")}
    assert {(n, f"{start:%H:%M:%S}", f"{end:%H:%M:%S}") for n, start, end in map(tuple, alone)} == {
        (n, *bound) for n, bound in bounds.items()
    }
    filtered = f"SELECT window_end, SUM(n) FROM {call} WHERE n > 2 GROUP BY window_start, window_end"
    found = session.execute_sql(filtered).collect()
    assert {(f"{end:%M:%S}", total) for end, total in map(tuple, found)} == {("00:50", 72), ("01:05", 32)}
    best = (
        "SELECT n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k, window_start, window_end"
        f" ORDER BY n DESC) AS place FROM {call}) WHERE place = 1"
    )
    assert {n for (n,) in map(tuple, session.execute_sql(best).collect())} == {1, 2, 64, 32}


_NIGHTS = """\
2024-03-31 00:59:00,a,1
2024-03-31 01:01:00,a,2
2024-03-31 01:45:00,a,4
2024-10-27 00:20:00,b,8
2024-10-27 01:31:00,b,16
2024-10-27 01:50:00,b,32
"""
"""In Berlin the second row comes at 03:01, two minutes behind the first; the fifth at 02:31, 71 minutes
behind the fourth, which came at 02:20."""
_GAP = "INTERVAL '40' MINUTE"
_HELD = "TABLE(SESSION(TABLE t PARTITION BY k, DESCRIPTOR(z), " + _GAP + "))"


@pytest.mark.parametrize(
    "options",
    [{}, {"tidemill__epoch__max_rows": "1"}, {"execution__runtime_mode": "batch"}],
    ids=["one go", "row by row", "in batch"],
)
def test_a_gap_is_the_time_that_has_passed(
    spark: SparkSession, tmp_path: Path, options: dict[str, str]
) -> None:
    (tmp_path / "t.csv").write_text(_NIGHTS)
    session = new_session(**options)
    session.execute_sql(
        "CREATE TABLE t (ts TIMESTAMP(3), k STRING, n INT, z AS TO_TIMESTAMP_LTZ(TIMESTAMPDIFF(SECOND, "
        "TIMESTAMP '1970-01-01 00:00:00', ts), 0), WATERMARK FOR z AS z) "
        f"WITH ('connector'='filesystem', 'path'='{tmp_path}/t.csv', 'format'='csv')"
    )
    session.execute_sql("SET 'table.local-time-zone' = 'Europe/Berlin'")
    queries = (
        f"SELECT window_start, window_end, SUM(n) FROM {_HELD} GROUP BY k, window_start, window_end",
        f"SELECT SESSION_START(z, {_GAP}), SESSION_END(z, {_GAP}), SUM(n) FROM t"
        f" GROUP BY k, SESSION(z, {_GAP})",
        f"SELECT window_start, window_end, n FROM {_HELD}",
    )
    shown = [
        sorted(
            (f"{start:%H:%M}", f"{end:%H:%M}", n)
            for start, end, n in map(tuple, session.execute_sql(q).collect())
        )
        for q in queries
    ]
    march, october = (
        [("01:59", "03:41", 3), ("03:45", "04:25", 4)],
        [("02:20", "02:00", 8), ("02:31", "03:30", 48)],
    )
    assert shown[:2] == [sorted(march + october)] * 2
    each = [(*march[0][:2], 1), (*march[0][:2], 2), march[1], october[0]]
    assert shown[2] == sorted([*each, (*october[1][:2], 16), (*october[1][:2], 32)])
