"""CREATE MATERIALIZED TABLE: the table, the job that keeps it, and what becomes of both."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tidemill.catalog.table import CatalogTable, CatalogView
from tidemill.errors import (
    ConnectorError,
    NotSupportedError,
    SqlSyntaxError,
    StateError,
    TidemillError,
    ValidationError,
)
from tidemill.session import inserts
from tidemill.session.catalogs.documents import object_documents
from tidemill.session.catalogs.reading import read
from tidemill.session.environment import TableEnvironment
from tidemill.session.statements import jobs

ENDLESS = (
    "CREATE TABLE src (shop INT, amount BIGINT, ts TIMESTAMP(3)) "
    "WITH ('connector'='datagen','rows-per-second'='5')"
)
DAILY = (
    "CREATE MATERIALIZED TABLE daily COMMENT 'by day' PARTITIONED BY (d) WITH ('connector'='blackhole') "
    "START_MODE = FROM_BEGINNING FRESHNESS = INTERVAL '10' SECOND REFRESH_MODE = CONTINUOUS "
    "AS SELECT shop, CAST(ts AS DATE) AS d, amount * 2 AS twice FROM src"
)


@pytest.fixture
def session() -> TableEnvironment:
    made = new_session(execution__checkpointing__interval="100 ms")
    made.execute_sql(ENDLESS)
    return made


def test_rows_of_the_query_are_in_the_table(tmp_path: Path) -> None:
    session = new_session()
    place = f"'connector'='filesystem','path'='{tmp_path}/{{}}','format'='json'"
    ask(
        session,
        f"CREATE TABLE sales (shop INT, amount BIGINT) WITH ({place.format('sales')})",
        f"CREATE MATERIALIZED TABLE big WITH ({place.format('big')}) "
        "AS SELECT shop, amount FROM (VALUES (1, 5), (2, 50), (1, 500)) AS v(shop, amount) WHERE amount > 5",
    )
    (job,) = session.context.jobs.all()
    job.job.wait(60)
    session.execute_sql("SET 'execution.runtime-mode' = 'batch'")
    assert sorted(ask(session, "SELECT * FROM big")) == [(1, 500), (2, 50)]


def test_from_create_to_drop(session: TableEnvironment) -> None:
    ask(session, DAILY)
    assert session.context.warnings == [
        "The job that keeps `default_catalog`.`default_database`.`daily` ends with this process; "
        "a gateway's goes on."
    ]
    (started,) = session.context.jobs.all()
    assert started.job.is_running()
    assert ask(session, "SHOW TABLES") == [("daily",), ("src",)]
    assert ask(session, "SHOW MATERIALIZED TABLES") == [("daily",)]
    assert ask(session, "SHOW CREATE MATERIALIZED TABLE daily") == [
        (
            "CREATE MATERIALIZED TABLE `default_catalog`.`default_database`.`daily` (\n"
            "  `shop` INT,\n  `d` DATE,\n  `twice` BIGINT\n)\n"
            "COMMENT 'by day'\nPARTITIONED BY (`d`)\nWITH (\n  'connector' = 'blackhole'\n)\n"
            "START_MODE = FROM_BEGINNING\nFRESHNESS = INTERVAL '10' SECOND\nREFRESH_MODE = CONTINUOUS\n"
            "AS SELECT `src`.`shop`, CAST(`src`.`ts` AS DATE) AS `d`, `src`.`amount` * 2 AS `twice`\n"
            "FROM `default_catalog`.`default_database`.`src` AS `src`\n",
        )
    ]
    for statement, said in {
        "SHOW CREATE TABLE daily": "use SHOW CREATE MATERIALIZED TABLE",
        "SHOW CREATE MATERIALIZED TABLE src": "`src` is a table",
        "SHOW CREATE MATERIALIZED TABLE nosuch": "`nosuch` does not exist",
        "DROP TABLE daily": "'default_catalog.default_database.daily' does not exist",
        "DROP MATERIALIZED TABLE src": "Materialized Table .*src' does not exist",
        "ALTER TABLE daily SET ('a' = 'b')": "materialized table",
        DAILY: "already exists",
    }.items():
        with pytest.raises(ValidationError, match=said):
            ask(session, statement)
    ask(session, "DROP TABLE IF EXISTS daily", "DROP MATERIALIZED TABLE IF EXISTS nosuch")
    assert started.job.is_running()
    ask(session, "DROP MATERIALIZED TABLE daily")
    assert started.job.status == "CANCELED"
    assert ask(session, "SHOW TABLES") == [("src",)]


def test_what_cannot_be_started_leaves_no_table(
    session: TableEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise ConnectorError("no place")

    monkeypatch.setattr(inserts, "run_inserts", fails)
    with pytest.raises(ConnectorError, match="no place"):
        ask(session, DAILY)
    assert ask(session, "SHOW TABLES") == [("src",)]


def test_a_database_takes_the_jobs_of_its_tables_along(session: TableEnvironment) -> None:
    ask(session, "CREATE DATABASE d", DAILY.replace("TABLE daily", "TABLE d.daily"))
    (started,) = session.context.jobs.all()
    with pytest.raises(ValidationError, match="not empty"):
        ask(session, "DROP DATABASE d")
    assert started.job.is_running()
    ask(session, "DROP DATABASE d CASCADE")
    assert started.job.status == "CANCELED"


def test_a_drop_that_is_refused_leaves_the_job(session: TableEnvironment) -> None:
    ask(session, DAILY, "CREATE TEMPORARY TABLE daily (a INT) WITH ('connector'='datagen')")
    (started,) = session.context.jobs.all()
    with pytest.raises(ValidationError, match="Drop it first"):
        ask(session, "DROP MATERIALIZED TABLE daily")
    assert started.job.is_running()
    ask(session, "DROP TEMPORARY TABLE daily", "DROP MATERIALIZED TABLE daily")
    assert started.job.status == "CANCELED"


def test_a_minute_is_three_unless_it_is_said(session: TableEnvironment) -> None:
    ask(session, "CREATE MATERIALIZED TABLE t WITH ('connector'='blackhole') AS SELECT shop FROM src")
    assert "FRESHNESS = INTERVAL '3' MINUTE\n" in ask(session, "SHOW CREATE MATERIALIZED TABLE t")[0][0]
    ask(session, "DROP MATERIALIZED TABLE t")


def test_a_store_keeps_what_it_is(session: TableEnvironment) -> None:
    ask(session, DAILY)
    catalogs = session.context.catalogs
    entry = catalogs.find(catalogs.qualify(("daily",)))
    assert entry is not None
    (document,) = object_documents([entry])
    kept = json.loads(json.dumps([document]))
    assert read(tuple[CatalogTable | CatalogView, ...], kept, "objects") == (entry,)
    ask(session, "DROP MATERIALIZED TABLE daily")


@pytest.mark.parametrize(
    ("clauses", "kind", "said"),
    [
        ("FRESHNESS = INTERVAL '1' MONTH", ValidationError, "only supports SECOND, MINUTE, HOUR, DAY, WEEK"),
        ("FRESHNESS = INTERVAL '-1' SECOND", ValidationError, "positive integer type values. But was: -1"),
        ("FRESHNESS = INTERVAL '0' DAY", ValidationError, "But was: 0"),
        ("REFRESH_MODE = FULL", NotSupportedError, "REFRESH_MODE = FULL"),
        ("START_MODE = FROM_NOW", NotSupportedError, "START_MODE = FROM_NOW"),
    ],
)
def test_clauses_that_are_refused(
    session: TableEnvironment, clauses: str, kind: type[TidemillError], said: str
) -> None:
    with pytest.raises(kind, match=said) as raised:
        ask(
            session,
            f"CREATE MATERIALIZED TABLE t WITH ('connector'='blackhole') {clauses} AS SELECT shop FROM src",
        )
    assert raised.value.position is not None
    assert ask(session, "SHOW TABLES") == [("src",)]


@pytest.mark.parametrize(
    ("statement", "kind", "said"),
    [
        (
            "CREATE TEMPORARY MATERIALIZED TABLE t AS SELECT 1",
            SqlSyntaxError,
            "CREATE TEMPORARY MATERIALIZED",
        ),
        ("CREATE OR REPLACE MATERIALIZED TABLE t AS SELECT 1", NotSupportedError, "CREATE OR REPLACE"),
        ("CREATE OR ALTER TABLE t AS SELECT shop FROM src", SqlSyntaxError, "MATERIALIZED"),
        ("CREATE OR ALTER TEMPORARY MATERIALIZED TABLE t AS SELECT 1", SqlSyntaxError, "MATERIALIZED"),
        ("CREATE OR ALTER MATERIALIZED TABLE IF NOT EXISTS t AS SELECT 1", SqlSyntaxError, "AS"),
        (
            "CREATE OR ALTER MATERIALIZED TABLE src AS SELECT shop FROM src",
            ValidationError,
            r"Table default_catalog.default_database.src is not a materialized table. Only materialized "
            r"table support create or alter operation",
        ),
        ("ALTER MATERIALIZED TABLE t SUSPEND", NotSupportedError, "ALTER MATERIALIZED"),
        ("CREATE MATERIALIZED TABLE t (a INT)", SqlSyntaxError, "AS"),
        (
            "CREATE MATERIALIZED TABLE t PARTITIONED BY (z) AS SELECT shop FROM src",
            ValidationError,
            "'z' not defined in the table schema. Available columns: \\['shop'\\]",
        ),
    ],
)
def test_statements_that_are_refused(
    session: TableEnvironment, statement: str, kind: type[TidemillError], said: str
) -> None:
    with pytest.raises(kind, match=said):
        ask(session, statement)
    assert ask(session, "SHOW TABLES") == [("src",)]


def test_batch_mode_has_none(session: TableEnvironment) -> None:
    with pytest.raises(NotSupportedError, match="batch mode"):
        ask(session, "SET 'execution.runtime-mode' = 'batch'", DAILY)


def test_the_query_of_a_table_is_changed(spark: SparkSession, tmp_path: Path) -> None:
    session = new_session(execution__checkpointing__dir=str(tmp_path / "state"))
    place = f"'connector'='filesystem','path'='{tmp_path}/{{}}','format'='json'"
    (tmp_path / "sales").mkdir()
    (tmp_path / "sales" / "a.json").write_text('{"shop": 1, "amount": 5}\n{"shop": 2, "amount": 50}\n')
    watched = f"{place.format('sales')}, 'source.monitor-interval'='100 ms'"
    ask(
        session,
        f"CREATE TABLE sales (shop INT, amount BIGINT) WITH ({watched})",
        f"CREATE MATERIALIZED TABLE big WITH ({place.format('big')}) AS SELECT * FROM sales WHERE amount > 9",
    )
    (started,) = session.context.jobs.all()
    wait_for(tmp_path / "big", {(2, 50)})
    for statement, kind, said in (
        ("ALTER MATERIALIZED TABLE big AS SELECT shop FROM sales", NotSupportedError, "with other columns"),
        ("ALTER MATERIALIZED TABLE sales AS SELECT * FROM sales", ValidationError, "`sales` is none"),
        ("ALTER MATERIALIZED TABLE big AS SELECT * FROM sales WHERE amount > 3", StateError, "another query"),
    ):
        with pytest.raises(kind, match=said):
            session.execute_sql(statement)
    assert "> 9" in ask(session, "SHOW CREATE MATERIALIZED TABLE big")[0][0]
    ask(
        session,
        "SET 'tidemill.evolution' = 'backfill'",
        "ALTER MATERIALIZED TABLE big AS SELECT * FROM sales WHERE amount > 3",
    )
    assert "> 3" in ask(session, "SHOW CREATE MATERIALIZED TABLE big")[0][0]
    wait_for(tmp_path / "big", {(1, 5), (2, 50)})
    (tmp_path / "sales" / "b.json").write_text('{"shop": 3, "amount": 4}\n')
    wait_for(tmp_path / "big", {(1, 5), (2, 50), (3, 4)})
    # The same statement makes a table where there is none, and gives it another query where there is one.
    again = f"CREATE OR ALTER MATERIALIZED TABLE big WITH ({place.format('big')}) AS SELECT * FROM sales"
    for clauses, part in (
        (again.replace("'json'", "'csv'"), "options"),
        (again.replace("big WITH", "big PARTITIONED BY (shop) WITH"), "partitions"),
        (again.replace("*", "shop"), "columns"),
    ):
        with pytest.raises(NotSupportedError, match=f"with other {part} than .*`big` has"):
            session.execute_sql(clauses)
    freshness = "COMMENT 'all' WITH", "FRESHNESS = INTERVAL '9' SECOND AS SELECT"
    ask(session, again.replace("WITH", freshness[0]).replace("AS SELECT", freshness[1]))
    shown = ask(session, "SHOW CREATE MATERIALIZED TABLE big")[0][0]
    assert "> 3" not in shown
    assert "INTERVAL '3' MINUTE" in shown
    (tmp_path / "sales" / "c.json").write_text('{"shop": 4, "amount": 1}\n')
    wait_for(tmp_path / "big", {(1, 5), (2, 50), (3, 4), (4, 1)})
    assert session.context.jobs.find(started.job.job_id) is started
    started.job.cancel()


def wait_for(folder: Path, rows: set[tuple[int, int]]) -> None:
    end, got = time.monotonic() + 120, list[tuple[int, ...]]()
    while sorted(got) != sorted(rows):
        assert time.monotonic() < end, got
        time.sleep(0.05)
        lines = (line for path in folder.glob("part-*") for line in path.read_text().splitlines())
        got = [tuple(json.loads(line).values()) for line in lines]


def test_create_or_alter_gives_the_job_the_insert(
    session: TableEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Job:
        job_id = "j"

    class Started:
        job = Job()

    given: list[str] = []
    monkeypatch.setattr(inserts, "run_inserts", lambda *_, **__: Started)
    monkeypatch.setattr(jobs, "altered_job", lambda *_: Job)
    monkeypatch.setattr(
        inserts, "alter_job", lambda context, job, sinks, written: given.append(written[0].text)
    )
    made = "CREATE OR ALTER MATERIALIZED TABLE daily COMMENT 'by day' WITH ('connector'='blackhole') "
    ask(session, made + "FRESHNESS = INTERVAL '10' SECOND AS SELECT shop, amount FROM src")
    assert not given
    ask(session, made.replace("by day", "by night") + "AS SELECT shop, amount * 2 AS amount FROM src")
    into = "INSERT INTO `default_catalog`.`default_database`.`daily`"
    assert given == [f"{into} SELECT shop, amount * 2 AS amount FROM src"]
    shown = ask(session, "SHOW CREATE MATERIALIZED TABLE daily")[0][0]
    assert "COMMENT 'by day'" in shown
    assert "INTERVAL '10' SECOND" in shown
    assert "* 2" in shown
    for changed, part in {
        made.replace("blackhole", "print") + "AS SELECT shop, amount FROM src": "options",
        made.replace("WITH", "PARTITIONED BY (shop) WITH") + "AS SELECT shop, amount FROM src": "partitions",
        made + "AS SELECT shop FROM src": "columns",
    }.items():
        with pytest.raises(NotSupportedError, match=f"with other {part} than .*`daily` has"):
            ask(session, changed)
    assert len(given) == 1
