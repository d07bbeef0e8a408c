"""The catalog over Spark's own: its tables are read and written, everything else is left to Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tidemill.errors import ConnectorError, NotSupportedError, ValidationError


@pytest.fixture
def database(spark: SparkSession) -> Iterator[str]:
    spark.sql("CREATE DATABASE tidemill_own")
    spark.sql("CREATE TABLE tidemill_own.t (id INT, name STRING, seen TIMESTAMP) USING parquet")
    spark.sql("INSERT INTO tidemill_own.t VALUES (1, 'one', TIMESTAMP '2020-01-01 00:00:00Z')")
    spark.sql("CREATE VIEW tidemill_own.v AS SELECT id * 2 AS twice FROM tidemill_own.t")
    yield "tidemill_own"
    spark.sql("DROP DATABASE tidemill_own CASCADE")


def test_tables_are_read_and_written(database: str, spark: SparkSession) -> None:
    session = new_session(parallelism__default="1", execution__runtime_mode="batch")
    ask(session, "CREATE CATALOG s WITH ('type'='spark')", "USE CATALOG s", f"USE {database}")
    assert ask(session, "SHOW TABLES") == [("t",), ("v",)]
    assert (database,) in ask(session, "SHOW DATABASES")
    assert [row[:2] for row in ask(session, "DESCRIBE t")] == [
        ("id", "INT"),
        ("name", "STRING"),
        ("seen", "TIMESTAMP_LTZ(6)"),
    ]
    ask(session, "INSERT INTO t SELECT id + 1, 'two', seen FROM t")
    assert ask(session, "SELECT id, name FROM t ORDER BY id") == [(1, "one"), (2, "two")]
    assert ask(session, f"SELECT SUM(twice) AS s FROM s.{database}.v") == [(6,)]
    ask(session, "INSERT OVERWRITE t SELECT id, 'last', seen FROM t WHERE id = 2")
    spark.sql(f"REFRESH TABLE {database}.t")  # what another session has written Spark has to be told
    assert spark.table(f"{database}.t").select("id", "name").collect() == [(2, "last")]
    with pytest.raises(NotSupportedError, match="Catalog 's' is Spark's: changes of it"):
        ask(session, "CREATE TABLE x (a INT) WITH ('connector'='datagen')")
    with pytest.raises(NotSupportedError, match="changes of it"):
        ask(session, "DROP TABLE t")
    with pytest.raises(ValidationError, match=r"Unsupported options:\n\nx\n"):
        ask(session, "CREATE CATALOG y WITH ('type'='spark', 'x'='y')")


def test_what_spark_does_not_have(database: str, spark: SparkSession) -> None:
    session = new_session()
    ask(
        session,
        "CREATE CATALOG s WITH ('type'='spark')",
        "CREATE CATALOG x WITH ('type'='spark', 'catalog'='nope')",
    )
    for asked in ("SELECT * FROM x.d.t", "SHOW DATABASES IN x", "SHOW TABLES FROM x.d"):
        with pytest.raises(ConnectorError, match="Spark has no catalog 'nope'"):
            ask(session, asked)
    with pytest.raises(ValidationError, match=f"Object 'nosuch' not found within 's.{database}'"):
        ask(session, f"SELECT * FROM s.{database}.nosuch")
    with pytest.raises(ValidationError, match="Object 'nosuch' not found within 's'"):
        ask(session, "SELECT * FROM s.nosuch.t")
    spark.sql(f"DROP TABLE {database}.t")
    with pytest.raises(ConnectorError, match=r"Spark's catalog 'spark_catalog': \[TABLE_OR_VIEW_NOT_FOUND\]"):
        ask(session, f"SELECT * FROM s.{database}.v")
