"""Sessions of a job are mended by SQL, and the job goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.catalogs.test_of_savepoint import until
from tests.session.environments import ask, new_session
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.session.environment import TableEnvironment

QUERY = """SELECT city, window_start, window_end, COUNT(*), SUM(price) FROM
 TABLE(SESSION(TABLE o PARTITION BY city, DESCRIPTOR(ts), INTERVAL '10' MINUTE))
 GROUP BY city, window_start, window_end"""
MINUTE = 60_000
DAY = 1704067200000
"""The first of 2024, in milliseconds."""


def session(root: Path, **options: str) -> TableEnvironment:
    made = new_session(parallelism__default="2", **options)
    ask(
        made,
        f"""CREATE TABLE o (city STRING, price INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
         WITH ('connector'='filesystem', 'format'='csv', 'path'='{root}/o',
         'source.monitor-interval'='1 s')""",
        f"""CREATE TABLE found (city STRING, s TIMESTAMP(3), e TIMESTAMP(3), n BIGINT, total INT)
         WITH ('connector'='filesystem', 'format'='csv', 'path'='{root}/found')""",
    )
    return made


def stamped(*rows: str) -> str:
    cells = (row.split() for row in rows)
    return "".join(f"{city},{price},2024-01-01 {time}:00.000\n" for city, price, time in cells)


def files_of(place: Path) -> list[Path]:
    """Those that a reader of the table sees."""
    return [f for f in place.rglob("*") if f.is_file() and not f.name.startswith((".", "_"))]


@pytest.mark.thorough
def test_sessions_are_changed_deleted_and_added(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "1.csv").write_text(stamped("a 1 00:10", "b 2 00:20", "c 3 00:20", "a 4 00:21"))
    first = session(tmp_path, execution__checkpointing__dir=str(tmp_path / "one"))
    job = first.execute_sql(f"INSERT INTO found {QUERY}").job
    assert job is not None
    until(lambda: bool(list((tmp_path / "one").rglob("1.commit.json"))))
    ask(first, f"CREATE SAVEPOINT '{tmp_path}/s0' FOR JOB '{job.job_id}'")
    job.cancel()

    editor = new_session(parallelism__default="2", execution__runtime_mode="batch")
    for number in range(4):
        path = tmp_path / f"s{number}"
        ask(editor, f"CREATE CATALOG s{number} WITH ('type'='savepoint', 'path'='{path}')")
    table = "state.window_aggregate_1"
    shown = "city, session_start, session_end, `COUNT(*)`, `SUM(price)`"

    def held(number: int) -> list[tuple[str, float, float, int, int]]:
        rows = ask(editor, f"SELECT {shown} FROM s{number}.{table}")
        return sorted((k, (s - DAY) / MINUTE, (e - DAY) / MINUTE, n, t) for k, s, e, n, t in rows)

    # Two sessions of a touch: 00:10 and 00:21 are more than ten minutes apart.
    assert held(0) == [("a", 21, 31, 1, 4), ("b", 20, 30, 1, 2), ("c", 20, 30, 1, 3)]
    assert [row[:2] for row in ask(editor, f"DESCRIBE s0.{table}")] == [
        ("city", "STRING"),
        ("session", "BIGINT"),
        ("session_start", "BIGINT"),
        ("session_end", "BIGINT"),
        ("COUNT(*)", "BIGINT"),
        ("SUM(price)", "BIGINT"),
        ("partition_id", "INT"),
    ]
    ask(editor, f"SET 'tidemill.savepoint.target' = '{tmp_path}/s1'")
    for change, why in (
        (f"SET session_end = {DAY}", "must be 600000 ms or more after 'session_start'"),
        (f"SET session_start = {DAY}, session_end = {DAY + 15 * MINUTE}, `COUNT(*)` = 2", "has passed"),
    ):
        with pytest.raises(ValidationError, match=f"column 'session_end' {why}.*The row: .*city"):
            editor.execute_sql(f"UPDATE s0.{table} {change} WHERE city = 'a'").wait()
    with pytest.raises(NotSupportedError, match="UPDATE of the column 'session', which tells rows apart"):
        editor.execute_sql(f"UPDATE s0.{table} SET session = 1")
    with pytest.raises(NotSupportedError, match=r"Rows of 'window_aggregate_1_sessions'.*cannot be written"):
        editor.execute_sql(f"DELETE FROM s0.{table}_sessions WHERE city = 'a'").wait()
    editor.execute_sql(f"UPDATE s0.{table} SET `SUM(price)` = 400 WHERE city = 'a'").wait()
    ask(editor, f"SET 'tidemill.savepoint.target' = '{tmp_path}/s2'")
    editor.execute_sql(f"DELETE FROM s1.{table} WHERE city = 'b'").wait()
    ask(
        editor,
        f"SET 'tidemill.savepoint.target' = '{tmp_path}/s3'",
        f"""CREATE TEMPORARY VIEW more AS SELECT * FROM (VALUES
         ('c', {DAY + 20 * MINUTE}, {DAY + 32 * MINUTE}, CAST(2 AS BIGINT), CAST(33 AS BIGINT)),
         ('d', {DAY + 25 * MINUTE}, {DAY + 35 * MINUTE}, CAST(1 AS BIGINT), CAST(44 AS BIGINT)))
         AS t(city, s, e, n, total)""",
    )
    editor.execute_sql(f"""MERGE INTO s2.{table} AS t USING more AS m
     ON t.city = m.city AND t.session_start = m.s
     WHEN MATCHED THEN UPDATE SET session_end = m.e, `COUNT(*)` = m.n, `SUM(price)` = m.total
     WHEN NOT MATCHED THEN INSERT (city, session_start, session_end, `COUNT(*)`, `SUM(price)`)
      VALUES (m.city, m.s, m.e, m.n, m.total)""").wait()
    assert held(3) == [("a", 21, 31, 1, 400), ("c", 20, 32, 2, 33), ("d", 25, 35, 1, 44)]

    (tmp_path / "o" / "2.csv").write_text(stamped("d 5 00:34", "c 6 00:45", "b 7 00:22", "z 0 02:00"))
    second = session(
        tmp_path,
        execution__checkpointing__dir=str(tmp_path / "two"),
        execution__state_recovery__path=str(tmp_path / "s3"),
    )
    ask(second, "SET 'parallelism.default' = '3'")
    job = second.execute_sql(f"INSERT INTO found {QUERY}").job
    assert job is not None
    until(lambda: len(files_of(tmp_path / "found")) > 1)
    job.cancel()
    ask(second, "SET 'execution.runtime-mode' = 'batch'")
    rows = ask(second, "SELECT city, CAST(s AS STRING), CAST(e AS STRING), n, total FROM found")
    assert sorted((k, s[11:16], e[11:16], n, t) for k, s, e, n, t in rows) == [
        ("a", "00:10", "00:20", 1, 1),
        ("a", "00:21", "00:31", 1, 400),
        ("c", "00:20", "00:32", 2, 33),
        ("c", "00:45", "00:55", 1, 6),
        ("d", "00:25", "00:44", 2, 49),
    ], "b's row at 00:22 is late: its session is gone, and time had come to 00:45"
