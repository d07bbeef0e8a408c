"""What a database aggregates of its table, beside the same query over its rows."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from tests.session.environments import new_session, rows
from tidemill.connectors.jdbc.connector import JdbcConnector
from tidemill.connectors.jdbc.urls import Database
from tidemill.session.environment import TableEnvironment

COLUMNS = "k INT, v BIGINT, s STRING, d DATE, n DECIMAL(10, 2), f DOUBLE, w VARCHAR(3)"
STORED = (
    "k INT, v BIGINT, s VARCHAR(20), d DATE, n NUMERIC(9, 1), f DOUBLE PRECISION, w VARCHAR(3), other INT"
)
MOST = 2**63 - 1
ROWS = [
    (1, 10, "a", "2024-01-01", "1.5", 0.5, "x"),
    (1, -3, "A", "2024-01-02", "-2.5", 1.5, "x"),
    (2, None, "a ", None, None, None, None),
    (2, MOST, "a", "2023-12-31", "0.0", -0.0, "y"),
    (8, MOST, None, "2024-01-05", "99999999.9", 2.0, "y"),
    (None, 7, "ä", "1969-12-31", "1.0", 3.0, "z"),
]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each aggregation that a database was asked for, whether it makes it."""
    found: list[bool] = []
    grouped = JdbcConnector.grouped

    def spied(*args: Any) -> Any:
        made = grouped(*args)
        found.append(made is not None)
        return made

    monkeypatch.setattr(JdbcConnector, "grouped", spied)
    return found


@pytest.fixture
def session(database: str) -> TableEnvironment:
    """With ``t``, which is read in three ranges."""
    with Database(database).engine.begin() as open:
        open.exec_driver_sql(f"CREATE TABLE target ({STORED})")
        names = [f":c{i}" for i in range(len(ROWS[0]))]
        inserted = text(f"INSERT INTO target VALUES ({', '.join(names)}, 99)")
        for row in ROWS:
            open.execute(inserted, {f"c{i}": value for i, value in enumerate(row)})
    made = new_session(execution__runtime_mode="batch")
    made.execute_sql(f"CREATE TABLE t ({COLUMNS}) WITH ({options(database)})")
    return made


def options(url: str) -> str:
    bounds = "'scan.partition.lower-bound' = '1', 'scan.partition.upper-bound' = '9'"
    cut = f"'scan.partition.column' = 'k', 'scan.partition.num' = '3', {bounds}"
    return f"'connector' = 'jdbc', 'url' = '{url}', 'table-name' = 'target', {cut}"


EVERYWHERE = (
    "SELECT COUNT(*), COUNT(v), MIN(v), MAX(k), SUM(k) FROM t",
    "SELECT k, COUNT(*), SUM(v), MAX(v) FROM t GROUP BY k",
    "SELECT s, COUNT(s), COUNT(*), SUM(k) FROM t GROUP BY s",
    "SELECT w, SUM(v) FROM t GROUP BY w",
    "SELECT SUM(v), COUNT(*) FROM t WHERE k = 77",
    "SELECT k, COUNT(*) FROM t WHERE k = 77 GROUP BY k",
    "SELECT k + 1, SUM(v) + 1 FROM t WHERE s = 'a' AND k >= 1 GROUP BY k HAVING COUNT(*) > 0",
    "SELECT s, MIN(k) FROM t WHERE k IN (1, 8) OR k IS NULL GROUP BY s",
    "SELECT COUNT(*) FROM t WHERE k BETWEEN 1 AND 2 AND s IS NOT NULL",
    "SELECT DISTINCT s, k FROM t",
)
ONLY_POSTGRES = (
    "SELECT MIN(d), MAX(d), COUNT(d), SUM(n), MIN(n), MAX(n) FROM t",
    "SELECT d, n, COUNT(*) FROM t GROUP BY d, n",
    "SELECT COUNT(*) FROM t WHERE d > DATE '1970-01-01'",
)
NOWHERE = (
    "SELECT SUM(f), MIN(f) FROM t",
    "SELECT MIN(s), MAX(s) FROM t",
    "SELECT s, COUNT(*) FROM t WHERE s < 'b' GROUP BY s",
    "SELECT SUM(k) FROM t WHERE v + 0 > 3",
    "SELECT SUM(k + 1) FROM t",
    "SELECT COUNT(DISTINCT k) FROM t",
    "SELECT COUNT(*) FILTER (WHERE k > 1) FROM t",
    "SELECT AVG(k) FROM t",
)


@pytest.mark.parametrize("query", [*EVERYWHERE, *ONLY_POSTGRES, *NOWHERE])
def test_the_answer_is_that_over_the_rows(
    session: TableEnvironment, database: str, query: str, asked: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = sorted(rows(session.execute_sql(query)), key=str)
    makes = query in EVERYWHERE or (query in ONLY_POSTGRES and "postgresql" in database)
    # COUNT(DISTINCT k) is above the keys, which a database can tell.
    assert any(asked) == makes or "DISTINCT k" in query
    monkeypatch.setattr(JdbcConnector, "grouped", lambda *args: None)
    assert found == sorted(rows(session.execute_sql(query)), key=str)


def test_a_sum_of_a_bigint_goes_round(session: TableEnvironment) -> None:
    ((found,),) = rows(session.execute_sql("SELECT SUM(v) FROM t WHERE k >= 2"))
    assert found == -2


def test_what_is_inserted_is_aggregated_there_too(
    session: TableEnvironment, tmp_path: Path, asked: list[bool]
) -> None:
    files = f"'connector' = 'filesystem', 'path' = '{tmp_path}/out', 'format' = 'parquet'"
    session.execute_sql(f"CREATE TABLE o (k INT, n BIGINT) WITH ({files})")
    session.execute_sql("INSERT INTO o SELECT k, COUNT(*) FROM t GROUP BY k").wait()
    assert asked == [True]
    assert set(rows(session.execute_sql("SELECT * FROM o"))) == {(1, 2), (2, 2), (8, 1), (None, 1)}


@pytest.mark.parametrize("column", ["BIGINT", "NUMERIC(12, 1)", "NUMERIC", "DOUBLE PRECISION", "CHAR(5)"])
def test_a_wider_column_is_not_aggregated_there(postgres: Any, asked: list[bool], column: str) -> None:
    """It may hold values that are none of the declared type."""
    postgres.clear()
    declared = {"BIGINT": "INT", "CHAR(5)": "STRING"}.get(column, "DECIMAL(10, 2)")
    with Database(postgres.url).engine.begin() as open:
        open.exec_driver_sql(f"CREATE TABLE target (k INT, x {column})")
        open.exec_driver_sql("INSERT INTO target VALUES (1, '7')")
    session = new_session(execution__runtime_mode="batch")
    session.execute_sql(f"CREATE TABLE t (k INT, x {declared}) WITH ({options(postgres.url)})")
    assert rows(session.execute_sql("SELECT COUNT(x) FROM t")) == [(1,)]
    assert asked == [False]


def in_sqlite(folder: Path, created: str, values: str, declared: str) -> TableEnvironment:
    """A session with ``t``, a table of SQLite's with these rows."""
    with sqlite3.connect(folder / "x.db") as open:
        open.execute(f"CREATE TABLE target ({created})")
        open.execute(f"INSERT INTO target VALUES {values}")
    session = new_session(execution__runtime_mode="batch")
    given = f"'connector' = 'jdbc', 'url' = 'jdbc:sqlite:{folder}/x.db', 'table-name' = 'target'"
    session.execute_sql(f"CREATE TABLE t ({declared}) WITH ({given})")
    return session


@pytest.mark.thorough
@pytest.mark.parametrize("value", ["'text'", "x'00'", str(2**40)])
def test_a_value_of_another_type_in_sqlite_is_told_of(tmp_path: Path, asked: list[bool], value: str) -> None:
    """The rows are read, of which one does not fit."""
    session = in_sqlite(tmp_path, "k INT, s TEXT", f"(1, 'a'), ({value}, 'b')", "k INT, s STRING")
    assert rows(session.execute_sql("SELECT COUNT(*) FROM t")) == [(2,)]
    assert asked == [True]
    with pytest.raises(Exception, match="does not fit"):
        rows(session.execute_sql("SELECT MAX(k) FROM t"))


@pytest.mark.parametrize("query", ["SELECT MAX(k), SUM(k) FROM t", "SELECT k FROM t"])
def test_a_fraction_in_sqlite_is_no_whole_number(tmp_path: Path, query: str) -> None:
    session = in_sqlite(tmp_path, "k INT", "(1), (2.5), (2.75)", "k INT")
    with pytest.raises(Exception, match=r"2\.5 is no whole number"):
        rows(session.execute_sql(query))


def test_texts_of_sqlite_are_told_apart_by_their_bytes(tmp_path: Path) -> None:
    stored = "k INT, s TEXT COLLATE NOCASE"
    session = in_sqlite(tmp_path, stored, "(1, 'a'), (2, 'A')", "k INT, s STRING")
    found = rows(session.execute_sql("SELECT s, COUNT(*) FROM t GROUP BY s"))
    assert sorted(found) == [("A", 1), ("a", 1)]
    assert rows(session.execute_sql("SELECT COUNT(*) FROM t WHERE s = 'a'")) == [(1,)]


def test_bytes_in_sqlite_are_no_text(tmp_path: Path) -> None:
    session = in_sqlite(tmp_path, "k INT, s TEXT", "(1, 'a'), (2, x'37')", "k INT, s STRING")
    with pytest.raises(Exception, match="b'7' is no text"):
        rows(session.execute_sql("SELECT s, COUNT(*) FROM t GROUP BY s"))
