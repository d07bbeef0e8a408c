"""Times of day that the session's zone skips are times like others: a TIMESTAMP has no zone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import new_session
from tidemill.session.environment import TableEnvironment

_ROWS = """\
2024-03-31 01:30:00,k,1
2024-03-31 02:30:00,k,2
2024-03-31 03:00:00,k,4
"""
_STREAMS: dict[str, dict[str, str]] = {
    "one go": {},
    "row by row": {"tidemill__epoch__max_rows": "1"},
    "in batch": {"execution__runtime_mode": "batch"},
}


@pytest.fixture(params=_STREAMS)
def made(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> TableEnvironment:
    """Clocks of Berlin go from 02:00 to 03:00 on this day."""
    (tmp_path / "t.csv").write_text(_ROWS)
    session = new_session(**_STREAMS[request.param])
    session.execute_sql("SET 'table.local-time-zone' = 'Europe/Berlin'")
    session.execute_sql(
        "CREATE TABLE t (ts TIMESTAMP(3), k STRING, n INT,"
        " PRIMARY KEY (k) NOT ENFORCED, WATERMARK FOR ts AS ts)"
        f" WITH ('connector'='filesystem', 'path'='{tmp_path}/t.csv', 'format'='csv')"
    )
    return session


_HOURS = {("01:00", "02:00", 1), ("02:00", "03:00", 2), ("03:00", "04:00", 4)}
_QUERIES: dict[str, tuple[str, set[tuple[str, str, int]]]] = {
    "rows with their windows": (
        "SELECT {start}, {end}, n FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR))",
        _HOURS,
    ),
    "aggregated": (
        "SELECT {start}, {end}, SUM(n) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR))"
        " GROUP BY window_start, window_end",
        _HOURS,
    ),
    "steps": (
        "SELECT {start}, {end}, SUM(n) FROM TABLE(CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR,"
        " INTERVAL '4' HOUR)) GROUP BY window_start, window_end",
        {("00:00", "02:00", 1), ("00:00", "03:00", 3), ("00:00", "04:00", 7)},
    ),
    "in GROUP BY": (
        "SELECT DATE_FORMAT(TUMBLE_START(ts, INTERVAL '1' HOUR), 'HH:mm'),"
        " DATE_FORMAT(TUMBLE_END(ts, INTERVAL '1' HOUR), 'HH:mm'), SUM(n) FROM t"
        " GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)",
        _HOURS,
    ),
    "as JSON": (
        "SELECT SUBSTRING(JSON_OBJECT('v' VALUE ts) FROM 18 FOR 5), 'of day', n FROM t",
        {("01:30", "of day", 1), ("02:30", "of day", 2), ("03:00", "of day", 4)},
    ),
    "versions": (
        "SELECT DATE_FORMAT(l.ts, 'HH:mm'), DATE_FORMAT(r.ts, 'HH:mm'), r.n"
        " FROM t AS l JOIN t FOR SYSTEM_TIME AS OF l.ts AS r ON l.k = r.k",
        {("01:30", "01:30", 1), ("02:30", "02:30", 2), ("03:00", "03:00", 4)},
    ),
}


@pytest.mark.parametrize("name", _QUERIES)
def test_a_skipped_hour_is_an_hour(made: TableEnvironment, name: str) -> None:
    query, expected = _QUERIES[name]
    bounds = {
        "start": "DATE_FORMAT(window_start, 'HH:mm')",
        "end": "DATE_FORMAT(window_end, 'HH:mm')",
    }
    rows: Counter[tuple[object, ...]] = Counter()
    for row in made.execute_sql(query.format(**bounds)).collect():
        rows[tuple(row)] += 1 if row.kind.short in ("+I", "+U") else -1
    assert +rows == Counter(expected)
