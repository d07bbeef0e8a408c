"""The jdbc connector on a real PostgreSQL server and on SQLite."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.connectors.postgres import Server, server
from tests.connectors.sinks import sink, stage, write
from tests.connectors.sources import rows, source, table
from tests.session.environments import new_session
from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import ALL_KINDS, INSERT_ONLY, UPSERT
from tidemill.connectors.api import ReadLimit, SourceRequest
from tidemill.connectors.filters import AllOf, AnyOf, ColumnFilter, Comparison, Nullness
from tidemill.connectors.jdbc.connector import CONNECTOR
from tidemill.connectors.jdbc.sink import JdbcSink
from tidemill.connectors.jdbc.source import slices
from tidemill.connectors.jdbc.sqlite import binder
from tidemill.connectors.registry import validate
from tidemill.connectors.worker_errors import find_error
from tidemill.errors import ConnectorError, NotSupportedError, ValidationError
from tidemill.types import logical as t

PAIR = {"k": t.INT, "v": t.STRING}


@pytest.fixture
def lite(tmp_path: Path) -> str:
    return f"jdbc:sqlite:{tmp_path}/x.db"


@pytest.fixture
def url(database: str) -> str:
    return database


def run(url: str, sql: str) -> list[tuple[Any, ...]]:
    engine = CONNECTOR.source(_request(url)).reader.database.engine
    with engine.begin() as open:
        result = open.exec_driver_sql(sql)
        return [tuple(r) for r in result] if result.returns_rows else []


def _request(url: str) -> SourceRequest:
    declared = declare(url)
    return SourceRequest(
        table=declared,
        options=declared.options,
        fields=(),
        metadata={},
        sequence=False,
        parallelism=1,
        time_zone="UTC",
        streaming=False,
    )


def declare(
    url: str,
    columns: dict[str, t.LogicalType] | None = None,
    *,
    append: bool = False,
    options: dict[str, str] | None = None,
) -> CatalogTable:
    keys = () if append else ("k",)
    given = {"connector": "jdbc", "url": url, "table-name": "target"} | (options or {})
    return replace(table(columns or PAIR, given), primary_key=keys)


def made(declared: CatalogTable, tmp_path: Path, **kwargs: Any) -> JdbcSink:
    declared.options.setdefault("sink.staging-path", str(tmp_path / "staged"))
    target = sink(declared, **kwargs)
    assert isinstance(target, JdbcSink)
    return target


def changes(spark: SparkSession, *values: tuple[int, str | None, int]) -> DataFrame:
    return spark.createDataFrame(list(values), "k INT, v STRING, `$kind` TINYINT").coalesce(1)


def content(url: str, name: str = "target") -> list[tuple[Any, ...]]:
    return run(url, f"SELECT * FROM {name} ORDER BY 1, 2")


def test_upserts_and_deletes_by_key(spark: SparkSession, url: str, tmp_path: Path) -> None:
    run(url, "CREATE TABLE target (k INT PRIMARY KEY, v VARCHAR(20))")
    target = made(declare(url), tmp_path, kinds=UPSERT)
    odd = "tab\t'\"\\ü\n"
    write(target, changes(spark, (1, "a", 0), (2, odd, 0), (3, None, 0), (1, "b", 2)), 1)
    assert content(url) == [(1, "b"), (2, odd), (3, None)]
    write(target, changes(spark, (2, odd, 3), (1, "b", 3), (1, "c", 0), (9, "x", 3)), 2)
    assert content(url) == [(1, "c"), (3, None)]


def test_an_epoch_is_applied_once(spark: SparkSession, url: str, tmp_path: Path) -> None:
    run(url, "CREATE TABLE target (k INT, v VARCHAR(20))")
    declared = declare(url, append=True)
    target = made(declared, tmp_path)
    frame = spark.createDataFrame([(1, "a")], "k INT, v STRING")
    first = stage(target, frame, 1)
    assert content(url) == []
    target.publish(1, first)
    target.publish(1, first)
    made(declared, tmp_path).publish(1, stage(made(declared, tmp_path), frame, 1))
    assert content(url) == [(1, "a")]
    write(target, frame, 2)
    assert content(url) == [(1, "a"), (1, "a")]
    write(made(declared, tmp_path, job="another"), frame, 1)
    assert len(content(url)) == 3


def test_a_failing_row_leaves_nothing_of_the_epoch(spark: SparkSession, url: str, tmp_path: Path) -> None:
    run(url, "CREATE TABLE target (k INT PRIMARY KEY, v VARCHAR(20) NOT NULL)")
    target = made(declare(url), tmp_path, kinds=UPSERT)
    tokens = stage(target, changes(spark, (1, "a", 0), (2, None, 0)), 1)
    with pytest.raises(ConnectorError, match="target"):
        target.publish(1, tokens)
    assert content(url) == []
    run(url, "DROP TABLE target")
    run(url, "CREATE TABLE target (k INT PRIMARY KEY, v VARCHAR(20))")
    target.publish(1, tokens)
    assert content(url) == [(1, "a"), (2, None)]


@pytest.mark.parametrize(
    ("kind", "stored", "expected"),
    [
        (t.INT, "1.5", "1.5 is no whole number"),
        (t.BIGINT, "1e400", "cannot convert float infinity to integer"),
        (t.INT, "2.0", 2),
        (t.DATE, "17", "the number 17 is no DATE"),
        (t.TimestampType(), "17", "the number 17 is no TIMESTAMP"),
        (t.TimeType(), "1.5", "the number 1.5 is no TIME"),
        (t.BOOLEAN, "'no'", "'no' is neither TRUE nor FALSE"),
        (t.BOOLEAN, "'False'", False),
        (t.BOOLEAN, "1", True),
        (t.STRING, "x'6162'", "b'ab' is no text"),
    ],
)
def test_a_value_of_another_kind_becomes_no_other_value(
    spark: SparkSession, lite: str, kind: t.LogicalType, stored: str, expected: object
) -> None:
    """SQLite keeps any value in any column."""
    run(lite, "CREATE TABLE target (k INT, v)")
    run(lite, f"INSERT INTO target VALUES (1, {stored})")
    declared = declare(lite, {"k": t.INT, "v": kind})
    if not isinstance(expected, str):
        assert [row[1] for row in rows(spark, source(declared))] == [expected]
        return
    with pytest.raises(Exception, match=f"Table 'target': a value does not fit: .*{expected}"):
        rows(spark, source(declared))


def test_sqlite_does_not_turn_a_nan_into_null(spark: SparkSession, lite: str, tmp_path: Path) -> None:
    run(lite, "CREATE TABLE target (k INT PRIMARY KEY, v DOUBLE)")
    target = made(declare(lite, {"k": t.INT, "v": t.DOUBLE}), tmp_path, kinds=UPSERT)
    frame = spark.sql("SELECT 1 AS k, DOUBLE('-Infinity') AS v, TINYINT(0) AS `$kind`")
    write(target, frame, 1)
    assert content(lite) == [(1, float("-inf"))]
    with pytest.raises(Exception, match="Column 'v' of table 'target' got a NaN") as raised:
        stage(target, frame.selectExpr("2 AS k", "DOUBLE('NaN') AS v", "`$kind`"), 2)
    assert isinstance(find_error(str(raised.value)), ConnectorError)


def test_a_year_in_sqlite_has_four_digits() -> None:
    to_text = binder(t.TimestampType())
    assert to_text(datetime(9, 1, 2, 3, 4, 5)) == "0009-01-02 03:04:05"
    assert to_text(datetime(2024, 1, 2, 3, 4, 5, 6000)) == "2024-01-02 03:04:05.006000"


def test_between_tasks_an_upsert_wins(spark: SparkSession, url: str, tmp_path: Path) -> None:
    run(url, "CREATE TABLE target (k INT PRIMARY KEY, v VARCHAR(20))")
    target = made(declare(url), tmp_path, kinds=UPSERT)
    values = [(1, "new", 0), (1, "old", 3), (2, "x", 0), (2, "x", 2)]
    separate = spark.sparkContext.parallelize(values, len(values))
    write(target, spark.createDataFrame(separate, "k INT, v STRING, `$kind` TINYINT"), 1)
    assert content(url) == [(1, "new"), (2, "x")]


def test_sinks_of_a_group_commit_together(spark: SparkSession, url: str, tmp_path: Path) -> None:
    run(url, "CREATE TABLE target (k INT PRIMARY KEY, v VARCHAR(20))")
    run(url, "CREATE TABLE other (k INT PRIMARY KEY, v VARCHAR(20) NOT NULL)")
    one = made(declare(url), tmp_path, kinds=UPSERT)
    two = made(
        declare(url, options={"table-name": "other", "sink.staging-path": str(tmp_path / "two")}),
        tmp_path,
        kinds=UPSERT,
    )
    assert one.group == two.group
    bad = [
        (one, stage(one, changes(spark, (1, "a", 0)), 1)),
        (two, stage(two, changes(spark, (1, None, 0)), 1)),
    ]
    with pytest.raises(ConnectorError):
        one.publish_group(1, bad)
    assert content(url) == []
    good = [(one, bad[0][1]), (two, stage(two, changes(spark, (1, "b", 0)), 1))]
    one.publish_group(1, good)
    assert (content(url), content(url, "other")) == ([(1, "a")], [(1, "b")])


TYPES: dict[str, t.LogicalType] = {
    "k": t.BIGINT,
    "b": t.BOOLEAN,
    "d": t.DOUBLE,
    "n": t.DecimalType(precision=10, scale=2),
    "dt": t.DATE,
    "tm": t.TimeType(precision=3),
    "ts": t.TimestampType(precision=3),
    "tz": t.LocalZonedTimestampType(precision=3),
    "by": t.BYTES,
}
DDL = {
    "sqlite": "k INT PRIMARY KEY, b INT, d REAL, n NUMERIC, dt TEXT, tm TEXT, ts TEXT, tz TEXT, by BLOB",
    "postgresql": "k BIGINT PRIMARY KEY, b BOOLEAN, d FLOAT8, n NUMERIC(10,2), dt DATE, tm TIME,"
    " ts TIMESTAMP, tz TIMESTAMPTZ, by BYTEA",
}


def test_every_type_goes_and_comes_back(spark: SparkSession, url: str, tmp_path: Path) -> None:
    run(url, f"CREATE TABLE target ({DDL[url.split(':')[1]]})")
    frame = spark.sql(
        "SELECT * FROM VALUES (1L, true, 1e-9D, CAST(1.5 AS DECIMAL(10,2)), DATE '2020-01-02', 3723004,"
        " TIMESTAMP_NTZ '2020-01-02 03:04:05.678', TIMESTAMP '2020-01-02 03:04:05.678', X'0aff'),"
        " (2L, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) AS t(k, b, d, n, dt, tm, ts, tz, by)"
    ).coalesce(1)
    declared = declare(url, TYPES)
    write(made(declared, tmp_path, kinds=UPSERT), frame, 1)
    found = source(declared).read_all(spark).orderBy("k").toArrow().to_pylist()
    moment = datetime(2020, 1, 2, 3, 4, 5, 678000)
    assert list(found[0].values()) == [
        1,
        True,
        1e-9,
        Decimal("1.50"),
        date(2020, 1, 2),
        3723004,
        moment,
        moment.replace(tzinfo=UTC),
        b"\x0a\xff",
    ]
    assert list(found[1].values()) == [2, *[None] * 8]


def test_scan_by_ranges_reads_everything_once(spark: SparkSession, url: str) -> None:
    run(url, "CREATE TABLE target (k INT, v VARCHAR(20))")
    run(url, "INSERT INTO target VALUES (-5, 'a'), (1, 'b'), (50, 'c'), (99, 'd'), (NULL, 'e')")
    bounds = {"scan.partition.lower-bound": "1", "scan.partition.upper-bound": "60"}
    declared = declare(url, options={"scan.partition.column": "k", "scan.partition.num": "3"} | bounds)
    read = source(declared, fields=("v",))
    assert read.read_all(spark).rdd.getNumPartitions() == 3
    assert sorted(rows(spark, read)) == [("a",), ("b",), ("c",), ("d",), ("e",)]
    end = read.next_offset(None, ReadLimit(rows=1))
    assert read.is_finished(end)
    assert read.read(spark, end, end).count() == 0


PUSHED: dict[str, t.LogicalType] = {"k": t.INT, "v": t.STRING, "d": t.DATE, "odd:v0": t.INT}


def test_a_database_looks_at_conditions(spark: SparkSession, url: str) -> None:
    """Rows that it leaves out are not read: one that does not fit is no error then."""
    run(url, 'CREATE TABLE target (k INT, v VARCHAR(20), d DATE, "odd:v0" BIGINT)')
    run(url, "INSERT INTO target VALUES (1, 'a', '2024-01-01', 7), (2, 'B', '2024-01-02', 9999999999)")
    run(url, "INSERT INTO target VALUES (3, NULL, NULL, NULL), (NULL, 'a''b', '2024-01-03', 8)")
    declared = declare(url, PUSHED)

    def asked(*filters: ColumnFilter) -> list[object]:
        return [row[0] for row in rows(spark, source(declared, filters=filters))]

    with pytest.raises(Exception, match="does not fit"):
        asked()
    few = Comparison("odd:v0", "<", 100)
    assert asked(few) == [1, None]
    assert asked(few, Comparison("v", "=", "a'b")) == [None]
    assert asked(few, AnyOf((Comparison("k", "=", 1), Comparison("v", "=", "a'b")))) == [1, None]
    assert asked(few, AnyOf((Comparison("k", "=", 1), Comparison("v", "<", "a")))) == [1, None]
    assert asked(few, AllOf((Comparison("k", ">=", 1), Comparison("v", "<>", "a")))) == [1]
    assert asked(few, Nullness("k", False)) == [1]
    assert asked(few, Nullness("k", True)) == [1, None]
    assert asked(few, Comparison("k", "=", 2**70)) == [1, None]
    assert asked(few, Comparison("v", "=", "a\0")) == [1, None]


def test_limit_goes_to_the_database(lite: str) -> None:
    """A row that cannot be read is behind the limit of each slice."""
    run(lite, "CREATE TABLE target (k INT, v TEXT)")
    run(lite, "INSERT INTO target VALUES (1, 'a'), (2, 'b'), (3, 'c'), (7, 'd'), (8, 'e'), ('x', 'f')")
    session = new_session(execution__runtime_mode="batch", parallelism__default="1")
    bounds = "'scan.partition.lower-bound' = '1', 'scan.partition.upper-bound' = '8'"
    session.execute_sql(
        f"CREATE TABLE t (k INT, v STRING) WITH ('connector' = 'jdbc', 'url' = '{lite}', 'table-name' = "
        f"'target', 'scan.partition.column' = 'k', 'scan.partition.num' = '2', {bounds})"
    )

    def read(query: str) -> int:
        found = [row[0] for row in session.execute_sql(query).collect()]
        assert len(set(found)) == len(found)
        return len(found)

    assert read("SELECT k + 1 FROM t LIMIT 1 OFFSET 1") == 1
    assert "limit=[2]" in session.explain_sql("SELECT k + 1 FROM t LIMIT 1 OFFSET 1")
    for query in ("SELECT k FROM t WHERE k > 0 LIMIT 1", "SELECT k FROM t ORDER BY k LIMIT 1"):
        assert "limit=[" not in session.explain_sql(query)
    with pytest.raises(Exception, match="does not fit"):
        read("SELECT k FROM t")


def test_slices_cover_everything() -> None:
    found = slices("k", 0, 9, 4)
    assert [(s.low, s.high) for s in found] == [(None, 2), (2, 5), (5, 7), (7, None)]
    assert len(slices("k", 1, 2, 10)) == 2


@pytest.mark.usefixtures("postgres")
def test_postgres_that_comes_back_gets_the_epoch(spark: SparkSession, tmp_path: Path) -> None:
    with server() as own:
        run(own.url, "CREATE TABLE target (k INT PRIMARY KEY, v VARCHAR(20))")
        declared = declare(own.url, options={"connection.max-retry-timeout": "0 s"})
        target = made(declared, tmp_path, kinds=UPSERT)
        tokens = stage(target, changes(spark, (1, "a", 0)), 1)
        own.stop()
        with pytest.raises(ConnectorError, match=str(own.port)):
            target.publish(1, tokens)
        with pytest.raises(ConnectorError):
            made(declared, tmp_path, kinds=UPSERT)
        own.start()
        made(declared, tmp_path, kinds=UPSERT).publish(1, tokens)
        assert content(own.url) == [(1, "a")]


def test_postgres_arrays(spark: SparkSession, postgres: Server, tmp_path: Path) -> None:
    postgres.clear()
    run(postgres.url, "CREATE TABLE target (k INT PRIMARY KEY, v TEXT[])")
    declared = declare(postgres.url, {"k": t.INT, "v": t.ArrayType(element=t.STRING)})
    frame = spark.sql("SELECT 1 AS k, ARRAY('a,\"b\\\\\\\\', NULL, '', 'NULL') AS v")
    write(made(declared, tmp_path, kinds=UPSERT), frame, 1)
    assert rows(spark, source(declared)) == [(1, frame.collect()[0].v)]


def test_tables_that_do_not_fit_are_named(lite: str, tmp_path: Path) -> None:
    with pytest.raises(ConnectorError, match="Table 'target' does not exist"):
        made(declare(lite), tmp_path)
    sqlite3.connect(lite.removeprefix("jdbc:sqlite:")).execute("CREATE TABLE target (k INT, w INT)")
    with pytest.raises(ConnectorError, match="has no column 'v'") as caught:
        made(declare(lite), tmp_path)
    assert caught.value.hint == "Expected: k INT, v STRING.\nFound: k INTEGER, w INTEGER."


def test_an_upsert_needs_a_constraint_to_name(url: str, tmp_path: Path) -> None:
    run(url, "CREATE TABLE target (k INT, v VARCHAR(20), PRIMARY KEY (v, k))")
    with pytest.raises(ConnectorError, match=r"no primary key or unique constraint on \(k\)") as caught:
        made(declare(url), tmp_path)
    assert caught.value.hint == "Found: (v, k)."
    made(declare(url, append=True), tmp_path)
    run(url, "CREATE UNIQUE INDEX by_k ON target (k)")
    made(declare(url), tmp_path)


def test_columns_of_the_wrong_type_are_named(postgres: Server, tmp_path: Path) -> None:
    postgres.clear()
    run(postgres.url, "CREATE TABLE target (k INT PRIMARY KEY, v DATE)")
    with pytest.raises(ConnectorError, match="column 'v' of type DATE, which cannot hold STRING") as caught:
        made(declare(postgres.url), tmp_path)
    assert caught.value.hint == "Expected: k INT, v STRING.\nFound: k INTEGER, v DATE."


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"url": "jdbc:oracle:thin:x"}, NotSupportedError, "'oracle' is not supported"),
        ({"url": "postgresql://x"}, ValidationError, "not a JDBC URL"),
        ({"scan.partition.num": "3"}, ValidationError, "Either all or none"),
        ({"colour": "red"}, ValidationError, "colour"),
    ],
)
def test_options(change: dict[str, str], error: type[Exception], message: str, lite: str) -> None:
    declared = declare(lite)
    declared.options.update(change)
    with pytest.raises(error, match=message):
        validate(declared, declared.options, role="source")


def test_messages_keep_the_password(tmp_path: Path) -> None:
    url = "jdbc:postgresql://127.0.0.1:1/none?user=u&password=secret"
    with pytest.raises(ConnectorError, match=r"127\.0\.0\.1") as caught:
        made(declare(url), tmp_path)
    assert "secret" not in str(caught.value)


def test_a_source_names_its_database(spark: SparkSession) -> None:
    url = "jdbc:postgresql://127.0.0.1:1/none?user=u&password=secret"
    with pytest.raises(Exception, match="tidemill") as caught:
        source(declare(url)).read_all(spark).collect()
    error = find_error(str(caught.value))
    assert error is not None
    assert error.message.startswith("Database jdbc:postgresql://127.0.0.1:1/none, table 'target': connection")
    assert "secret" not in error.message


def test_kinds(lite: str) -> None:
    keyed, plain = declare(lite), declare(lite, append=True)
    assert CONNECTOR.sink_kinds(keyed, keyed.options, ALL_KINDS) == UPSERT
    assert CONNECTOR.sink_kinds(plain, plain.options, ALL_KINDS) == INSERT_ONLY
    with pytest.raises(NotSupportedError, match="MAP"):
        CONNECTOR.validate(declare(lite, {"k": t.MapType(key=t.STRING, value=t.INT)}), keyed.options)
