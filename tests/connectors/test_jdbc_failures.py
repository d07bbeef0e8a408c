"""Publishing into a database that refuses rows, goes away and comes back: nothing is lost or doubled."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from tests.connectors.postgres import Server
from tests.connectors.sinks import stage
from tests.connectors.test_jdbc import changes, content, declare, made, run
from tidemill.changelog.rowkind import UPSERT
from tidemill.connectors.jdbc.sink import JdbcSink
from tidemill.errors import CommitUnknownError, ConnectorError

# A sequence counts tries: unlike rows, it is not rolled back.
DIES_ON_THE_FIRST_TRY = """
CREATE SEQUENCE tries;
CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF nextval('tries') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; RETURN NULL;
END $$;
"""


def staged(spark: SparkSession, url: str, tmp_path: Path, **options: str) -> tuple[JdbcSink, list[str]]:
    target = made(declare(url, options=options), tmp_path, kinds=UPSERT)
    return target, stage(target, changes(spark, (1, "a", 0), (2, "b", 0)), 1)


@pytest.mark.parametrize("when", ["AFTER INSERT ON target", "AFTER INSERT ON tidemill_epochs"])
@pytest.mark.parametrize("deferred", ["", "DEFERRABLE INITIALLY DEFERRED"])
def test_a_connection_lost_in_the_middle_is_tried_again(
    spark: SparkSession, postgres: Server, tmp_path: Path, when: str, deferred: str
) -> None:
    """Deferred: at COMMIT."""
    postgres.clear()
    run(postgres.url, "CREATE TABLE target (k INT PRIMARY KEY, v VARCHAR(20))")
    target, tokens = staged(spark, postgres.url, tmp_path)
    with postgres.connect() as open:
        open.execute(DIES_ON_THE_FIRST_TRY)
        kind = "CONSTRAINT TRIGGER" if deferred else "TRIGGER"
        open.execute(f"CREATE {kind} dies {when} {deferred} FOR EACH ROW EXECUTE FUNCTION die()".encode())
    target.publish(1, tokens)
    assert content(postgres.url) == [(1, "a"), (2, "b")]
    assert run(postgres.url, "SELECT last_value > 1 FROM tries") == [(True,)]
    assert run(postgres.url, "SELECT epoch FROM tidemill_epochs") == [(1,)]


@pytest.mark.parametrize("happens", [True, False])
@pytest.mark.parametrize("returns", [True, False])
def test_a_commit_without_an_answer(
    spark: SparkSession,
    database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    happens: bool,
    returns: bool,
) -> None:
    """The answer to the first COMMIT is lost; whether it happened is what ``tidemill_epochs`` says."""
    run(database, "CREATE TABLE target (k INT, v VARCHAR(20))")
    patience = {} if returns else {"connection.max-retry-timeout": "0 s"}
    target = made(declare(database, append=True, options=patience), tmp_path)
    tokens = stage(target, spark.createDataFrame([(1, "a")], "k INT, v STRING"), 1)
    commit = Connection.commit
    lost: list[Connection] = []

    def commit_without_answer(self: Connection) -> None:
        if not lost:
            lost.append(self)
            if happens:
                commit(self)
            cause = _operational(database)
            raise OperationalError("COMMIT", None, cause)
        commit(self)

    monkeypatch.setattr(Connection, "commit", commit_without_answer)
    if returns:
        target.publish(1, tokens)
    else:
        with pytest.raises(CommitUnknownError, match="not known whether the database has epoch 1"):
            target.publish(1, tokens)
        assert len(content(database)) == int(happens)
        target.publish(1, tokens)
    assert content(database) == [(1, "a")]


def _operational(url: str) -> Exception:
    kind = sqlite3.OperationalError if url.startswith("jdbc:sqlite") else psycopg.OperationalError
    return kind("server closed the connection unexpectedly")


VIOLATIONS = [
    ("v VARCHAR(20) NOT NULL", None, ['null value in column "v"', "Failing row contains (2, null)"]),
    ("v VARCHAR(20) CHECK (v <> 'b')", "b", ["target_v_check", "Failing row contains (2, b)"]),
    ("v VARCHAR(20) UNIQUE", "a", ["target_v_key", "Key (v)=(a) already exists"]),
    ("v VARCHAR(3)", "long", ["character varying(3)", 'column v: "long"']),
]


@pytest.mark.parametrize(("column", "value", "expected"), VIOLATIONS)
def test_a_refused_row_is_named(
    spark: SparkSession,
    postgres: Server,
    tmp_path: Path,
    column: str,
    value: str | None,
    expected: list[str],
) -> None:
    postgres.clear()
    run(postgres.url, f"CREATE TABLE target (k INT PRIMARY KEY, {column})")
    target = made(declare(postgres.url), tmp_path, kinds=UPSERT)
    tokens = stage(target, changes(spark, (1, "a", 0), (2, value, 0)), 1)
    with pytest.raises(ConnectorError, match="table 'target', epoch 1: ") as caught:
        target.publish(1, tokens)
    for part in (*expected, postgres.url.partition("?")[0]):
        assert part in str(caught.value)
    assert content(postgres.url) == []


def test_sqlite_names_the_column(spark: SparkSession, tmp_path: Path) -> None:
    url = f"jdbc:sqlite:{tmp_path}/x.db"
    run(url, "CREATE TABLE target (k INT PRIMARY KEY, v TEXT UNIQUE)")
    target = made(declare(url), tmp_path, kinds=UPSERT)
    with pytest.raises(ConnectorError, match=r"epoch 1: UNIQUE constraint failed: target\.v"):
        target.publish(1, stage(target, changes(spark, (1, "a", 0), (2, "a", 0)), 1))
    assert content(url) == []


@pytest.mark.parametrize("ordered", [True, False])
def test_changes_of_a_key_in_two_tasks(
    spark: SparkSession, database: str, tmp_path: Path, ordered: bool
) -> None:
    """In order of arrival the later task counts; after an exchange the key's row has moved."""
    run(database, "CREATE TABLE target (k INT PRIMARY KEY, v VARCHAR(20))")
    target = made(declare(database), tmp_path, kinds=UPSERT, ordered=ordered)
    values = [(1, "came", 0), (1, "came", 3), (2, "old", 0), (2, "new", 2)]
    separate = spark.sparkContext.parallelize(values, len(values))
    frame = spark.createDataFrame(separate, "k INT, v STRING, `$kind` TINYINT")
    target.publish(1, stage(target, frame, 1))
    assert content(database) == ([] if ordered else [(1, "came")]) + [(2, "new")]


def test_one_place_in_different_words(spark: SparkSession, postgres: Server, tmp_path: Path) -> None:
    """Two sinks of a job whose URLs differ are one group, and neither stands for the other's epoch."""
    postgres.clear()
    run(postgres.url, "CREATE TABLE target (k INT PRIMARY KEY, v VARCHAR(20))")
    run(postgres.url, "CREATE TABLE other (k INT PRIMARY KEY, v VARCHAR(20))")
    plain, _, query = postgres.url.partition("?")
    worded = {"url": plain, "username": query.removeprefix("user="), "table-name": "other"}
    one = made(declare(postgres.url), tmp_path, kinds=UPSERT)
    two = made(
        declare(plain, options=worded | {"sink.staging-path": str(tmp_path / "two")}),
        tmp_path,
        kinds=UPSERT,
        ordinal=1,
    )
    assert one.group == two.group
    for target in (one, two):
        target.publish(1, stage(target, changes(spark, (1, "a", 0)), 1))
    assert content(postgres.url) == content(postgres.url, "other") == [(1, "a")]
