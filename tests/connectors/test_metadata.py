"""Metadata columns: keys that are not there, types that a key cannot become, casts of the others."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.connectors.sources import table
from tests.runtime.running import folded
from tests.session.environments import ask, new_session
from tidemill.connectors import registry
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.types import logical as t

FILES = {"connector": "filesystem", "path": "/tmp/x"}
JDBC = {"connector": "jdbc", "url": "jdbc:sqlite:/tmp/x", "table-name": "x"}
FILE_KEYS = "file.path\nfile.name\nfile.size\nfile.modification-time"
INSTANT = 1_600_000_000
MESSAGE = (
    '{"before":null,"after":{"a":1},"op":"c","ts_ms":1600000000000,"source":{"db":"shop","table":"0042"}}\n'
)


def refused(options: dict[str, str], key: str, kind: t.LogicalType = t.STRING, role: str = "source") -> str:
    declared = table({"a": t.INT}, options, metadata={key: kind})
    with pytest.raises(ValidationError) as caught:
        registry.validate(declared, options, role=role)
    return str(caught.value)


@pytest.mark.parametrize(
    ("format", "key", "nearest"),
    [
        ("json", "nokey", ""),
        ("json", "source.table", ""),
        ("json", "file.pth", "file.path"),
        ("debezium-json", "ingestion-timstamp", "ingestion-timestamp"),
        ("debezium-json", "value.source.database", "source.database"),
        ("canal-json", "primary-keys", ""),
        ("parquet", "offset", ""),
    ],
)
def test_unknown_keys_are_refused(format: str, key: str, nearest: str) -> None:
    message = refused(FILES | {"format": format}, key)
    assert f"Invalid metadata key '{key}' in column '{key}' of table 'c.d.t'." in message
    assert FILE_KEYS in message.split("supports the following metadata keys for reading:\n")[1]
    assert ("schema\ningestion-timestamp\nsource.timestamp\n" in message) == (format == "debezium-json")
    assert f"Did you mean '{nearest}'" in message or not nearest


@pytest.mark.parametrize("options", [JDBC, {"connector": "datagen"}])
def test_connectors_without_metadata(options: dict[str, str]) -> None:
    assert "doesn't implement the SupportsReadingMetadata interface" in refused(options, "x")


@pytest.mark.parametrize("options", [{"connector": "print"}, FILES | {"format": "debezium-json"}, JDBC])
def test_no_sink_stores_metadata(options: dict[str, str]) -> None:
    message = refused(options, "source.table", role="sink")
    assert "SupportsWritingMetadata" in message
    assert "VIRTUAL" in message


def test_a_stored_column_may_hold_null_where_its_key_does_not() -> None:
    kafka = {"connector": "kafka", "topic": "t", "properties.bootstrap.servers": "h:1", "format": "json"}
    headers = t.MapType(key=t.STRING, value=t.VarBinaryType())
    registry.validate(table({"a": t.INT}, kafka, metadata={"headers": headers}), kafka, role="sink")
    local = table({"a": t.INT}, kafka, metadata={"timestamp": t.TimestampType(precision=3)})
    with pytest.raises(NotSupportedError, match=r"'timestamp' of type TIMESTAMP\(3\)"):
        registry.validate(local, kafka, role="sink")


def test_the_column_must_be_castable_from_the_key() -> None:
    kind = t.MapType(key=t.STRING, value=t.STRING)
    assert (
        "Invalid data type for metadata column 'source.table' of table 'c.d.t'. The column cannot be "
        "declared as 'MAP<STRING, STRING>' because the type must be castable from metadata type 'STRING'."
    ) in refused(FILES | {"format": "debezium-json"}, "source.table", kind)


def test_an_unknown_key_fails_whatever_is_selected(spark: SparkSession, tmp_path: Path) -> None:
    session = new_session()
    session.execute_sql(
        "CREATE TABLE t (a INT, x MAP<STRING, STRING> METADATA FROM 'source.table') "
        f"WITH ('connector'='filesystem', 'path'='{tmp_path}', 'format'='debezium-json')"
    )
    with pytest.raises(ValidationError, match=r"column 'x' with metadata key 'source\.table'"):
        session.execute_sql("SELECT a FROM t")


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_file_metadata_is_cast(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    (tmp_path / "x.csv").write_text("1\n")
    os.utime(tmp_path / "x.csv", (INSTANT, INSTANT))
    session = new_session(execution__runtime_mode=mode)
    session.execute_sql(
        "CREATE TABLE t (s1 STRING METADATA FROM 'file.size', a INT,"
        " s2 DECIMAL(5, 2) METADATA FROM 'file.size', m STRING METADATA FROM 'file.modification-time',"
        " d DATE METADATA FROM 'file.modification-time',"
        " n CHAR(3) METADATA FROM 'file.name') "
        f"WITH ('connector'='filesystem', 'path'='{tmp_path}', 'format'='csv')"
    )
    [row] = ask(session, "SELECT CAST(d AS STRING), n, m, s2, a, s1 FROM t")
    assert row == ("2020-09-13", "x.c", "2020-09-13 12:26:40.000", Decimal("2.00"), 1, "2")


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_rows_are_counted_by_their_file(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    (tmp_path / "x.csv").write_text("1\n2\n")
    (tmp_path / "y.csv").write_text("3\n")
    session = new_session(execution__runtime_mode=mode)
    session.execute_sql(
        "CREATE TABLE t (a INT, n STRING METADATA FROM 'file.name', size BIGINT METADATA FROM 'file.size') "
        f"WITH ('connector'='filesystem', 'path'='{tmp_path}', 'format'='csv')"
    )

    def last(query: str) -> list[tuple[Any, ...]]:
        found = [(row.kind.short, tuple(row)) for row in session.execute_sql(query).collect()]
        return sorted(folded(found))

    assert last("SELECT n, COUNT(*), SUM(a) FROM t GROUP BY n") == [("x.csv", 2, 3), ("y.csv", 1, 3)]
    assert last("SELECT DISTINCT n FROM t WHERE size = 4") == [("x.csv",)]
    assert last("SELECT MAX(size), COUNT(*) FROM t WHERE n = 'y.csv'") == [(2, 1)]


def test_format_metadata_is_cast(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(MESSAGE)
    session = new_session()
    session.execute_sql(
        "CREATE TABLE t (a INT, n INT METADATA FROM 'source.table',"
        " db STRING METADATA FROM 'source.database', ts STRING METADATA FROM 'ingestion-timestamp',"
        " p STRING METADATA FROM 'source.properties') "
        f"WITH ('connector'='filesystem', 'path'='{tmp_path}', 'format'='debezium-json')"
    )
    [row] = ask(session, "SELECT * FROM t")
    assert row == (1, 42, "shop", "2020-09-13 12:26:40.000", "{db=shop, table=0042}")
