"""Another query that starts on what a job has left, with a backfill: as if it had run from the beginning."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask
from tests.session.test_alter_job import COUNTED, SUMS, folder, put, session, shows
from tests.session.test_backfill import COUNTED_WINDOWS, EVENTS, WINDOWS, events, until
from tidemill.errors import NotSupportedError, StateError
from tidemill.files.storage import Storage
from tidemill.runtime.checkpoint.directory import CheckpointDirectory
from tidemill.runtime.checkpoint.records import Records
from tidemill.session.environment import TableEnvironment
from tidemill.session.jobs.job import JobHandle

__all__ = ["folder"]
BACKFILL = {"tidemill__evolution": "backfill"}
FILTERED = COUNTED.replace("FROM t", "FROM t WHERE v > 5")


@contextmanager
def running(made: TableEnvironment, sql: str) -> Iterator[JobHandle]:
    job = made.execute_sql(sql).job
    assert job is not None
    try:
        yield job
    finally:
        job.cancel()


def changes(folder: Path) -> None:
    """From now on the sink's table says what is done to it, in the table ``said``."""
    with sqlite3.connect(folder / "db") as db:
        db.execute("CREATE TABLE said (k INT, s BIGINT)")
        for verb, row in (("UPDATE", "new"), ("INSERT", "new"), ("DELETE", "old")):
            db.execute(
                f"CREATE TRIGGER on_{verb} AFTER {verb} ON totals "
                f"BEGIN INSERT INTO said VALUES ({row}.k, {row}.s); END"
            )


def said(folder: Path) -> list[tuple[int, int]]:
    with sqlite3.connect(folder / "db") as db:
        found = sorted(db.execute("SELECT * FROM said").fetchall())
        db.execute("DELETE FROM said")
    return found


def test_a_changed_insert_in_the_jobs_own_directory(spark: SparkSession, folder: Path) -> None:
    with running(session(folder), SUMS) as first:
        put(folder, "a", (1, 10), (2, 20), (3, 5))
        put(folder, "b", (1, 1), (3, 6))
        shows(folder, (1, 11, None), (2, 20, None), (3, 11, None))
    with pytest.raises(StateError, match="belongs to another query") as refused:
        session(folder).execute_sql(FILTERED)
    assert "With 'tidemill.evolution' = 'backfill' the query is computed" in refused.value.hint
    changes(folder)
    put(folder, "c", (4, 9))
    filtered = FILTERED.replace("COUNT(*)", "NULLIF(COUNT(*), 1)")
    with running(session(folder, **BACKFILL), filtered) as second:
        assert second.job_id == first.job_id
        shows(folder, (1, 10, None), (2, 20, None), (3, 6, None), (4, 9, None))
        assert said(folder) == [(1, 10), (3, 6), (4, 9)]
        put(folder, "d", (2, 7), (3, 1))
        shows(folder, (1, 10, None), (2, 27, 2), (3, 6, None), (4, 9, None))
    # Another change on top, and the one after that starts where it stopped.
    none = filtered.replace("v > 5", "v > 9")
    for name, kept in (("e", 20), ("f", 20)):
        with running(session(folder, **BACKFILL), none):
            shows(folder, (1, 10, None), (2, kept, None))
            put(folder, name, (2, 1))
    assert not (folder / "state" / "replays").exists()


def test_a_changed_insert_from_a_savepoint(spark: SparkSession, folder: Path) -> None:
    made = session(folder)
    job = made.execute_sql(SUMS).job
    assert job is not None
    put(folder, "a", (1, 10), (2, 20), (3, 5))
    shows(folder, (1, 10, None), (2, 20, None), (3, 5, None))
    early = job.create_savepoint(path=str(folder / "early"))
    put(folder, "b", (1, 1), (3, 6))
    shows(folder, (1, 11, None), (2, 20, None), (3, 11, None))
    late = job.stop_with_savepoint(str(folder / "kept"))
    before = {p: p.read_bytes() for p in Path(late).rglob("*") if p.is_file()}
    changes(folder)
    # The job went on after the first one: its sink has more than that says.
    with pytest.raises(StateError, match="has not the rows that the query of the savepoint gives"):
        started(folder, "early", early)
    assert not (folder / "at-early" / "origin.json").exists()
    assert said(folder) == []
    with running(*started_in(folder, "late", late)) as second:
        assert second.job_id != job.job_id
        shows(folder, (1, 10, 1), (2, 20, 1), (3, 6, 1))
        put(folder, "c", (2, 7), (3, 1))
        shows(folder, (1, 10, 1), (2, 27, 2), (3, 6, 1))
        assert said(folder) == [(1, 10), (2, 20), (2, 27), (3, 6)]
    assert {p: p.read_bytes() for p in Path(late).rglob("*") if p.is_file()} == before
    # Back to the savepoint: the sink has the second query's rows, to which no difference is known.
    with pytest.raises(StateError, match="has not the rows"):
        started(folder, "again", late)
    # The second job is one from the beginning: a third goes on from it, where it is and elsewhere.
    third = SUMS.replace("FROM t", "FROM t WHERE v > 6")
    with running(session(folder, "at-late", **BACKFILL), third):
        shows(folder, (1, 10, None), (2, 27, None))
    fourth = SUMS.replace("FROM t", "FROM t WHERE v > 9")
    with running(*started_in(folder, "fourth", str(folder / "at-late"), fourth)):
        shows(folder, (1, 10, None), (2, 20, None))


def started_in(
    folder: Path, name: str, savepoint: str, sql: str = FILTERED, **more: str
) -> tuple[TableEnvironment, str]:
    how = {"execution__state-recovery__path": savepoint, **BACKFILL, **more}
    return session(folder, f"at-{name}", **how), sql


def started(folder: Path, name: str, savepoint: str, sql: str = FILTERED, **more: str) -> None:
    made, sql = started_in(folder, name, savepoint, sql, **more)
    made.execute_sql(sql)


def test_a_refusal_leaves_a_claimed_savepoint_to_others(spark: SparkSession, folder: Path) -> None:
    with running(session(folder), SUMS) as job:
        put(folder, "a", (1, 10), (2, 20))
        shows(folder, (1, 10, None), (2, 20, None))
        savepoint = job.stop_with_savepoint(str(folder / "kept"))
    claims = {"execution__state-recovery__claim-mode": "CLAIM"}
    with sqlite3.connect(folder / "db") as db:
        db.execute("UPDATE totals SET s = 11 WHERE k = 1")
    with pytest.raises(StateError, match="has not the rows"):
        started(folder, "one", savepoint, **claims)
    with sqlite3.connect(folder / "db") as db:
        db.execute("UPDATE totals SET s = 10 WHERE k = 1")
    with running(*started_in(folder, "two", savepoint, **claims)):
        shows(folder, (1, 10, 1), (2, 20, 1))
    assert not Path(savepoint).exists()


def test_what_the_old_query_was_must_be_known(spark: SparkSession, folder: Path) -> None:
    with running(session(folder), SUMS):
        put(folder, "a", (1, 10), (2, 20))
        put(folder, "b", (1, 1))
        shows(folder, (1, 11, None), (2, 20, None))
    state = folder / "state"
    shutil.copytree(state, folder / "unknown")
    record = Records.open(Storage(str(folder / "unknown")))
    fields = record.read("job.json", "the record")
    assert fields is not None
    assert fields["query"]["inserts"] == [SUMS]
    record.remove("job.json")
    kept = {k: v for k, v in fields.items() if k not in ("version", "checksum", "query")}
    record.put("job.json", kept)
    with pytest.raises(StateError, match=r"does not say what its query was \(it was made by an earlier"):
        session(folder, "unknown", **BACKFILL).execute_sql(FILTERED)
    # A source of which something is gone.
    (folder / "in" / "a.csv").rename(folder / "a")
    before = CheckpointDirectory(Storage(str(state))).last_commit()
    with pytest.raises(StateError, match=r"The history of table .*\bt\b.* is gone: .*a\.csv"):
        session(folder, **BACKFILL).execute_sql(FILTERED)
    (folder / "a").rename(folder / "in" / "a.csv")
    assert CheckpointDirectory(Storage(str(state))).last_commit() == before
    shows(folder, (1, 11, None), (2, 20, None))
    # State that was once taken over without a backfill: no one query has given what the sink has.
    with running(session(folder), COUNTED):
        put(folder, "c", (1, 3))
        shows(folder, (1, 14, 1), (2, 20, None))
    with pytest.raises(StateError, match="needs a job whose query has run from the beginning"):
        session(folder, **BACKFILL).execute_sql(FILTERED)


def stored(folder: Path, name: str, table: str, key: str = ", PRIMARY KEY (k) NOT ENFORCED") -> str:
    """The statement for the sink ``name`` into ``table`` of the database."""
    return (
        f"CREATE TABLE {name} (k INT, s BIGINT, n BIGINT{key}) WITH "
        f"('connector'='jdbc', 'url'='jdbc:sqlite:{folder}/db', 'table-name'='{table}')"
    )


def test_a_table_that_has_become_another_is_refused(spark: SparkSession, folder: Path) -> None:
    with running(session(folder), SUMS):
        put(folder, "a", (1, 10), (2, 2))
        shows(folder, (1, 10, None), (2, 2, None))
    made = session(folder, **BACKFILL)
    ask(
        made,
        "DROP TABLE totals",
        stored(folder, "totals", "others"),
    )
    with pytest.raises(NotSupportedError, match="or with other options"):
        made.execute_sql(FILTERED)


def test_a_table_that_only_an_earlier_query_wrote_is_refused(spark: SparkSession, folder: Path) -> None:
    others = stored(folder, "others", "others")
    with sqlite3.connect(folder / "db") as db:
        db.execute("CREATE TABLE others (k INTEGER PRIMARY KEY, s BIGINT, n BIGINT)")
    both = f"EXECUTE STATEMENT SET BEGIN {SUMS}; {SUMS.replace('totals', 'others')}; END"
    made = session(folder)
    ask(made, others)
    with running(made, both):
        put(folder, "a", (1, 10), (2, 2))
        shows(folder, (1, 10, None), (2, 2, None))
    with running(session(folder, **BACKFILL), FILTERED):
        shows(folder, (1, 10, 1))
    # Whatever has come meanwhile, the other table has rows that the last query does not tell.
    for state, more in (("state", {}), ("copy", {"execution__state-recovery__path": str(folder / "state")})):
        made = session(folder, state, **BACKFILL, **more)
        ask(made, others)
        with pytest.raises(StateError, match=r"others has rows of an earlier query of the job"):
            made.execute_sql(both)
    with running(session(folder), FILTERED):
        shows(folder, (1, 10, 1))


@pytest.mark.parametrize("key", ["", ", PRIMARY KEY (k, s) NOT ENFORCED"])
def test_another_primary_key_of_a_sink_is_refused(spark: SparkSession, folder: Path, key: str) -> None:
    with running(session(folder), SUMS):
        put(folder, "a", (1, 10), (2, 2))
        shows(folder, (1, 10, None), (2, 2, None))
    made = session(folder, **BACKFILL)
    ask(
        made,
        "DROP TABLE totals",
        stored(folder, "totals", "totals", key),
    )
    with pytest.raises(NotSupportedError, match="or another primary key"):
        made.execute_sql("INSERT INTO totals SELECT k, v, v FROM t")
    shows(folder, (1, 10, None), (2, 2, None))


@pytest.mark.thorough
def test_a_statement_set_with_a_window_and_a_sink_by_another_key(spark: SparkSession, folder: Path) -> None:
    def made() -> TableEnvironment:
        made = session(folder, **BACKFILL)
        ask(made, EVENTS.format(folder), WINDOWS.format(folder, "log", "debezium-json"))
        return made

    def both(windows: str = "", largest: str = "") -> str:
        by_value = "SELECT CAST(MAX(v) AS INT) AS k, CAST(k AS BIGINT) AS s, COUNT(*) AS n FROM e"
        counted = COUNTED_WINDOWS.format("log", windows)
        return (
            f"EXECUTE STATEMENT SET BEGIN {counted}; INSERT INTO totals {by_value} {largest} GROUP BY k; END"
        )

    with running(made(), both()):
        events(folder, "a", (1, 1, 1), (1, 9, 2), (2, 3, 3), (1, 7, 11))
        until(folder, "log", (1, "00", 2), (2, "00", 1))
        shows(folder, (3, 2, 1), (9, 1, 3))
    # The query's key is k, the table's is the largest value: a row goes from one key to another one.
    with running(made(), both(largest="WHERE v < 8")):
        shows(folder, (3, 2, 1), (7, 1, 2))
        events(folder, "b", (2, 5, 21))
        until(folder, "log", (1, "00", 2), (2, "00", 1), (1, "10", 1))
        shows(folder, (5, 2, 2), (7, 1, 2))
    # Both change, one of them back to what it was; the window from 20 on is open.
    with running(made(), both(windows="WHERE v > 5 ")):
        until(folder, "log", (1, "00", 1), (1, "10", 1))
        shows(folder, (5, 2, 2), (9, 1, 3))
        events(folder, "c", (2, 6, 24), (1, 10, 31))
        until(folder, "log", (1, "00", 1), (1, "10", 1), (2, "20", 1))
        shows(folder, (6, 2, 3), (10, 1, 4))
