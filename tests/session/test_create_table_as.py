"""CREATE TABLE AS with columns of its own, CREATE OR REPLACE TABLE AS, REPLACE TABLE AS."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.session.environments import ask, new_session
from tidemill.errors import SqlSyntaxError, TidemillError, ValidationError
from tidemill.session.environment import TableEnvironment

SOURCE = (
    "CREATE TABLE src (a INT NOT NULL, b STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) "
    "WITH ('connector'='datagen','number-of-rows'='3')"
)
INTO = "WITH ('connector'='blackhole') AS SELECT a, b, ts FROM src"


@pytest.fixture
def session() -> TableEnvironment:
    made = new_session(execution__runtime_mode="batch")
    made.execute_sql(SOURCE)
    return made


def columns(session: TableEnvironment, table: str) -> list[str]:
    """The lines of columns of SHOW CREATE TABLE."""
    text = str(ask(session, f"SHOW CREATE TABLE {table}")[0][0])
    return [line.strip().rstrip(",") for line in text.split("(\n")[1].split("\n)")[0].splitlines()]


def test_rows_go_where_the_columns_are(session: TableEnvironment, tmp_path: Path) -> None:
    into = f"WITH ('connector'='filesystem','path'='{tmp_path}','format'='json')"
    query = "SELECT * FROM (VALUES (1, 'x', 5), (2, 'y', 6)) AS v(a, b, c)"
    ask(session, f"CREATE TABLE t (z STRING, c BIGINT, d AS c + 1) {into} AS {query}")
    assert columns(session, "t") == [
        "`z` VARCHAR(2147483647)",
        "`c` BIGINT",
        "`d` AS `c` + 1",
        "`a` INT NOT NULL",
        "`b` CHAR(1) NOT NULL",
    ]
    assert sorted(ask(session, "SELECT z, c, d, a, b FROM t")) == [(None, 5, 6, 1, "x"), (None, 6, 7, 2, "y")]


def test_columns(session: TableEnvironment) -> None:
    ask(session, f"CREATE TABLE plain {INTO}")
    assert columns(session, "plain") == ["`a` INT NOT NULL", "`b` VARCHAR(2147483647)", "`ts` TIMESTAMP(3)"]
    ask(session, f"CREATE TABLE listed (ts, a, b) {INTO}")
    assert columns(session, "listed")[0] == "`ts` TIMESTAMP(3)"
    schema = "z AS a + 1, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND, PRIMARY KEY (a) NOT ENFORCED"
    ask(session, f"CREATE TABLE full_schema ({schema}) {INTO}")
    assert columns(session, "full_schema") == [
        "`z` AS `a` + 1",
        "`a` INT NOT NULL",
        "`b` VARCHAR(2147483647)",
        "`ts` TIMESTAMP(3)",
        "WATERMARK FOR `ts` AS `ts` - INTERVAL '1' SECOND",
        "CONSTRAINT `PK_a` PRIMARY KEY (`a`) NOT ENFORCED",
    ]


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        (
            f"CREATE TABLE t (a STRING) {INTO}",
            ValidationError,
            "sink column 'a' at position 1. The so",
        ),
        (f"CREATE TABLE t (a, b) {INTO}", ValidationError, "must match the number of columns in the source"),
        (f"CREATE TABLE t (a, b, n) {INTO}", ValidationError, "Column 'n' not found in the source schema"),
        (f"CREATE TABLE t (a, b, b) {INTO}", ValidationError, "Column 'b' is listed twice"),
        (
            f"CREATE TABLE t (a AS 1) {INTO}",
            ValidationError,
            "A column named 'a' already exists in the",
        ),
        (f"CREATE TABLE t (z INT NOT NULL) {INTO}", ValidationError, "'z' .*does not allow NULLs"),
        (f"CREATE TABLE t (b STRING NOT NULL) {INTO}", ValidationError, "target column has type 'STRING NOT"),
        (f"CREATE TABLE t (PRIMARY KEY (b) NOT ENFORCED) {INTO}", ValidationError, "Column 'b' is nullable"),
        (f"CREATE TEMPORARY TABLE t {INTO}", SqlSyntaxError, "not support to create temporary table yet"),
        (f"CREATE OR REPLACE TEMPORARY TABLE t {INTO}", SqlSyntaxError, "not support temporary table yet"),
        (f"CREATE OR REPLACE TABLE IF NOT EXISTS t {INTO}", SqlSyntaxError, "IF NOT EXISTS"),
        ("CREATE TABLE t LIKE src AS SELECT a FROM src", SqlSyntaxError, "near the keyword 'AS'"),
        (f"REPLACE TABLE t {INTO}", ValidationError, "`t` to be replaced doesn't exist"),
        ("REPLACE TABLE t (a INT)", SqlSyntaxError, "AS"),
    ],
)
def test_what_cannot_be_made(
    session: TableEnvironment, statement: str, error: type[TidemillError], message: str
) -> None:
    with pytest.raises(error, match=message):
        session.execute_sql(statement)
    assert ask(session, "SHOW TABLES") == [("src",)]


def test_a_table_is_replaced(session: TableEnvironment) -> None:
    ask(session, "CREATE OR REPLACE TABLE t WITH ('connector'='blackhole') AS SELECT a FROM src")
    assert columns(session, "t") == ["`a` INT NOT NULL"]
    ask(session, f"CREATE OR REPLACE TABLE t {INTO}")
    assert len(columns(session, "t")) == 3
    ask(session, "REPLACE TABLE t (b, a) WITH ('connector'='blackhole') AS SELECT a, b FROM src")
    assert columns(session, "t") == ["`b` VARCHAR(2147483647)", "`a` INT NOT NULL"]
    ask(session, "CREATE VIEW v AS SELECT 1 AS a")
    for refused, message in [
        ("CREATE OR REPLACE TABLE t WITH ('connector'='nope') AS SELECT a FROM src", "identifier 'nope'"),
        ("REPLACE TABLE t WITH ('connector'='blackhole') AS SELECT nope FROM src", "'nope' not found"),
        (f"REPLACE TABLE v {INTO}", "Table with identifier .*v' does not exist"),
    ]:
        with pytest.raises(ValidationError, match=message):
            session.execute_sql(refused)
    assert columns(session, "t") == ["`b` VARCHAR(2147483647)", "`a` INT NOT NULL"]
    explained = ask(session, "EXPLAIN REPLACE TABLE u WITH ('connector'='blackhole') AS SELECT a FROM src")
    assert "default_catalog.default_database.u" in str(explained)
