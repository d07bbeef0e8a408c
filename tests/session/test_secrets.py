"""A password shows nowhere: not in what a session prints, not in what a job keeps."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tidemill.errors import TidemillError

SECRET = "hunter2"


def test_a_session_and_its_jobs_keep_passwords_to_themselves(spark: SparkSession, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "d.db") as made:
        made.execute("CREATE TABLE t (a INT PRIMARY KEY)")
    kept = tmp_path / "checkpoint"
    session = new_session(execution__checkpointing__dir=str(kept))
    session.execute_sql(f"SET 'tidemill.spark.hadoop.fs.s3a.secret.key' = '{SECRET}'")
    session.execute_sql(
        "CREATE TABLE t (a INT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector'='jdbc', 'table-name'='t', "
        f"'url'='jdbc:sqlite:{tmp_path}/d.db', 'username'='u', 'password'='{SECRET}')"
    )
    session.execute_sql(
        "CREATE TABLE p (a INT) WITH ('connector'='jdbc', 'table-name'='t', "
        f"'url'='jdbc:postgresql://h/d?user=u&password={SECRET}')"
    )
    shown = [
        str(ask(session, statement))
        for statement in (
            "SHOW CREATE TABLE t",
            "SHOW CREATE TABLE p",
            "DESCRIBE t",
            "SET",
            "EXPLAIN INSERT INTO t SELECT a FROM p",
            f"EXPLAIN SELECT a FROM t /*+ OPTIONS('password'='{SECRET}') */",
        )
    ]
    assert "'password' = '******'" in shown[0]
    assert "user=u&password=******" in shown[1]
    session.execute_sql("INSERT INTO t VALUES (1), (2)").wait()
    with pytest.raises(TidemillError) as caught:
        _another_query(kept)
    shown.append(str(caught.value))
    assert [text for text in shown if SECRET in text] == []
    folders = [kept, *(path for path in kept.iterdir() if path.is_dir())]
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o700}
    files = [path for path in kept.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []


def _another_query(kept: Path) -> None:
    """Another query over the same checkpoint."""
    other = new_session(execution__checkpointing__dir=str(kept))
    other.execute_sql(
        "CREATE TABLE q (a INT) WITH ('connector'='jdbc', 'table-name'='t', "
        f"'url'='jdbc:sqlite:{kept.parent}/d.db', 'username'='u', 'password'='{SECRET}')"
    )
    other.execute_sql("CREATE TABLE b (a INT) WITH ('connector'='blackhole')")
    other.execute_sql("INSERT INTO b SELECT a FROM q").wait()
