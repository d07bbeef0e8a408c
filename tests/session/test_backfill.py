"""ALTER JOB ... AS with a backfill: the sinks have what the new query gives from the beginning."""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.running import Crash
from tests.session.environments import ask
from tests.session.test_alter_job import COUNTED, SECONDS, SUMS, folder, put, session, shows
from tidemill.errors import NotSupportedError, StateError
from tidemill.files.storage import Storage
from tidemill.runtime.checkpoint.directory import CheckpointDirectory
from tidemill.runtime.job.start import InsertsStart
from tidemill.runtime.replay.backfill import Backfill
from tidemill.session import binding, execution
from tidemill.session.environment import TableEnvironment
from tidemill.sql.parser import parse_statement
from tidemill.sql.statements import Insert

__all__ = ["folder"]


def test_a_job_goes_on_as_if_another_query_had_run_from_the_beginning(
    spark: SparkSession, folder: Path
) -> None:
    made = session(folder, tidemill__evolution="backfill")
    job = made.execute_sql(SUMS).job
    assert job is not None
    put(folder, "a", (1, 10), (2, 20), (3, 5))
    put(folder, "b", (1, 1), (3, 6))
    shows(folder, (1, 11, None), (2, 20, None), (3, 11, None))
    with sqlite3.connect(folder / "db") as db:
        db.execute("CREATE TABLE said (k INT, s BIGINT)")
        db.execute(
            "CREATE TRIGGER t AFTER UPDATE ON totals BEGIN INSERT INTO said VALUES (new.k, new.s); END"
        )
    # Another filter: a sum is another, a key has none any more, a count is new; 2 stays as it is.
    changed = COUNTED.replace("FROM t", "FROM t WHERE v > 5").replace("COUNT(*)", "NULLIF(COUNT(*), 1)")
    ask(made, f"ALTER JOB '{job.job_id}' AS {changed}")
    shows(folder, (1, 10, None), (2, 20, None), (3, 6, None))
    with sqlite3.connect(folder / "db") as db:
        assert sorted(db.execute("SELECT * FROM said").fetchall()) == [(1, 10), (3, 6)]
    put(folder, "c", (2, 7), (3, 1), (4, 9))
    shows(folder, (1, 10, None), (2, 27, 2), (3, 6, None), (4, 9, None))
    none = changed.replace("v > 5", "v > 9")
    ask(made, f"ALTER JOB '{job.job_id}' AS {none}")
    shows(folder, (1, 10, None), (2, 20, None))
    assert not (folder / "state" / "replays").exists()
    job.cancel()
    again = session(folder).execute_sql(none).job
    assert again is not None
    put(folder, "d", (2, 10))
    shows(folder, (1, 10, None), (2, 30, 2))
    again.cancel()


def start_of(made: TableEnvironment, folder: Path, sql: str, steps: list[str]) -> InsertsStart:
    """What starts the INSERT; it crashes at the first of ``steps``, which goes."""

    def fault(step: str) -> None:
        if steps and step == steps[0]:
            steps.pop(0)
            raise Crash(step)

    made.context.fault = fault
    statement = parse_statement(sql)
    assert isinstance(statement, Insert)
    sinks = [binding.bind_insert(made.context, statement)]
    return execution.starter(made.context, sinks, "job", str(folder / "state"))


@pytest.mark.thorough
def test_a_crash_leaves_the_old_query_or_the_new_one(spark: SparkSession, folder: Path) -> None:
    made = session(folder)
    old = start_of(made, folder, SUMS, [])
    put(folder, "a", (1, 10), (2, 20))
    job = old()
    shows(folder, (1, 10, None), (2, 20, None))
    job.cancel()
    steps = ["replayed", "staged", "linked", "renamed", "switched"]
    new = start_of(made, folder, COUNTED.replace("FROM t", "FROM t WHERE v > 10"), steps)
    directory = CheckpointDirectory(Storage(str(folder / "state")))
    before = directory.stored_identity(), directory.last_commit()
    while len(steps) > 1:
        with pytest.raises(Crash):
            Backfill.of(old, new).switch()
        assert (directory.stored_identity(), directory.last_commit()) == before
    shows(folder, (1, 10, None), (2, 20, None))
    # The old query goes on: nothing of the other one is left.
    again = old()
    put(folder, "b", (2, 1), (3, 30))
    shows(folder, (1, 10, None), (2, 21, None), (3, 30, None))
    again.cancel()
    found = directory.stored_identity()
    assert found is not None
    assert found.whole
    assert not (folder / "state" / "replays").exists()
    with pytest.raises(Crash):
        Backfill.of(old, new).switch()
    with pytest.raises(StateError, match="belongs to another query"):
        old()
    shows(folder, (1, 10, None), (2, 21, None), (3, 30, None))
    going_on = new()  # publishes what was staged
    shows(folder, (2, 20, 1), (3, 30, 1))
    put(folder, "c", (2, 100))
    shows(folder, (2, 120, 2), (3, 30, 1))
    going_on.cancel()


EVENTS = (
    "CREATE TABLE e (k INT, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ("
    "'connector'='filesystem', 'path'='{0}/in', 'format'='csv', 'source.monitor-interval'='100 ms')"
)
WINDOWS = (
    "CREATE TABLE {1} (k INT, w STRING, n BIGINT) WITH ('connector'='filesystem', 'path'='{0}/{1}', "
    "'format'='{2}')"
)
COUNTED_WINDOWS = (
    "INSERT INTO {} SELECT k, CAST(window_start AS STRING) AS w, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE e, "
    "DESCRIPTOR(ts), INTERVAL '10' SECOND)) {}GROUP BY k, window_start, window_end"
)


def events(folder: Path, name: str, *rows: tuple[int, int, int]) -> None:
    lines = (f"{k},{v},2024-01-01 00:00:{second:02}\n" for k, v, second in rows)
    (folder / "in" / f".{name}").write_text("".join(lines))
    (folder / "in" / f".{name}").rename(folder / "in" / f"{name}.csv")


def written(folder: Path, name: str) -> Counter[tuple[int, str, int]]:
    """What the changes in the files of a sink add up to: (k, second of the window's start, n)."""
    found: Counter[tuple[int, str, int]] = Counter()
    for path in sorted((folder / name).glob("part-*")):
        for line in path.read_text().splitlines():
            change = json.loads(line) if line.startswith("{") else {"op": "c", "after": line.split(",")}
            for side, weight in (("before", -1), ("after", 1)):
                row = change.get(side)
                if row is not None:
                    k, w, n = row.values() if isinstance(row, dict) else row
                    found[int(k), str(w).strip('"')[17:19], int(n)] += weight
    return +found


def until(folder: Path, name: str, *rows: tuple[int, str, int]) -> None:
    end = time.monotonic() + SECONDS
    while written(folder, name) != Counter(rows):
        assert time.monotonic() < end, written(folder, name)
        time.sleep(0.05)


@pytest.mark.thorough
def test_windows_go_on_and_sinks_that_keep_changes_add_up(spark: SparkSession, folder: Path) -> None:
    made = session(folder, tidemill__evolution="backfill")
    ask(
        made,
        EVENTS.format(folder),
        *(WINDOWS.format(folder, *pair) for pair in (("log", "debezium-json"), ("lines", "csv"))),
    )
    job = made.execute_sql(COUNTED_WINDOWS.format("log", "")).job
    assert job is not None
    # Of three windows two have ended; a row of the first came too late.
    events(folder, "b", (1, 1, 1), (1, 9, 2), (2, 1, 3), (1, 9, 11), (1, 1, 12))
    until(folder, "log", (1, "00", 2), (2, "00", 1))
    events(folder, "a", (1, 9, 21), (1, 9, 5), (2, 9, 22))
    until(folder, "log", (1, "00", 2), (2, "00", 1), (1, "10", 2))
    filtered = COUNTED_WINDOWS.format("log", "WHERE v > 5 ")
    ask(made, f"ALTER JOB '{job.job_id}' AS {filtered}")
    until(folder, "log", (1, "00", 1), (1, "10", 1))
    # Another INSERT gets what there is, and both go on in the windows that are open.
    both = f"EXECUTE STATEMENT SET BEGIN {filtered}; {COUNTED_WINDOWS.format('lines', '')}; END"
    ask(made, f"ALTER JOB '{job.job_id}' AS {both}")
    until(folder, "lines", (1, "00", 2), (2, "00", 1), (1, "10", 2))
    events(folder, "c", (2, 1, 23), (1, 9, 31))
    until(folder, "log", (1, "00", 1), (1, "10", 1), (1, "20", 1), (2, "20", 1))
    until(folder, "lines", (1, "00", 2), (2, "00", 1), (1, "10", 2), (1, "20", 1), (2, "20", 2))
    # Lines cannot be taken back; more of them can be added.
    fewer = both.replace(COUNTED_WINDOWS.format("lines", ""), COUNTED_WINDOWS.format("lines", "WHERE k = 1 "))
    with pytest.raises(NotSupportedError, match=r"lines takes additions alone"):
        made.execute_sql(f"ALTER JOB '{job.job_id}' AS {fewer}")
    assert job.is_running()
    found = ask(made, f"VERIFY JOB '{job.job_id}'")
    parts = {row[0].rpartition(".")[2]: row[1] for row in found}
    assert parts["lines"] == "equal"
    job.cancel()
