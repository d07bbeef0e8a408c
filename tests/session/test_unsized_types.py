"""Types written without a size: VARCHAR and VARBINARY hold any length, CHAR and BINARY one."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session


def test_casts_keep_the_whole_value(spark: SparkSession) -> None:
    session = new_session(execution__runtime_mode="batch")
    sql = (
        "SELECT CAST('hello' AS VARCHAR), CAST(x'0aff' AS VARBINARY), CAST('hello' AS CHAR),"
        " TRY_CAST('abc' AS VARCHAR), CAST(ARRAY['abc'] AS ARRAY<VARCHAR>)[1],"
        """ JSON_VALUE('{"a":"hello"}', '$.a' RETURNING VARCHAR)"""
    )
    assert ask(session, sql) == [("hello", b"\x0a\xff", "h", "abc", "abc", "hello")]


def test_columns_keep_the_whole_value(spark: SparkSession, tmp_path: Path) -> None:
    session = new_session()
    ask(
        session,
        "CREATE TABLE t (a VARCHAR, r ROW<x VARCHAR, y CHAR>) "
        f"WITH ('connector'='filesystem', 'path'='{tmp_path}', 'format'='json')",
    )
    (tmp_path / "rows.json").write_text('{"a": "hello", "r": {"x": "world", "y": "z"}}\n')
    assert ask(session, "SELECT a, t.r.x, t.r.y FROM t") == [("hello", "world", "z")]
    described = {row[0]: row[1] for row in ask(session, "DESCRIBE t")}
    assert described == {"a": "STRING", "r": "ROW<`x` STRING, `y` CHAR(1)>"}
