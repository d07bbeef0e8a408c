"""STOP JOB ... WITH SAVEPOINT: the job goes on from the copy, or what waits for time comes out before."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests import visible
from tests.session.environments import ask
from tidemill.errors import SqlSyntaxError, StateError, ValidationError
from tidemill.session.environment import TableEnvironment
from tidemill.session.jobs.job import JobHandle

LONG = 300.0
NUMBERS = """CREATE TABLE g (id INT, ts AS TO_TIMESTAMP_LTZ(id * 100, 3), WATERMARK FOR ts AS ts)
 WITH ('connector'='datagen', 'rows-per-second'='100',
 'fields.id.kind'='sequence', 'fields.id.start'='1', 'fields.id.end'='1000000')"""


def session(folder: Path, checkpoint: str, **more: str) -> TableEnvironment:
    made = TableEnvironment.create(
        {
            "parallelism.default": "2",
            "execution.checkpointing.dir": str(folder / checkpoint),
            "execution.checkpointing.savepoint-dir": str(folder / "savepoints"),
            **{key.replace("__", "."): value for key, value in more.items()},
        }
    )
    sink = f"WITH ('connector'='filesystem', 'path'='{folder}/sink', 'format'='csv')"
    ask(made, NUMBERS, f"CREATE TABLE sink (a BIGINT, b BIGINT) {sink}")
    return made


def rows(folder: Path) -> list[list[int]]:
    return sorted([int(n) for n in line.split(",")] for line in visible.lines(folder / "sink"))


def until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


def grow(folder: Path) -> None:
    before = len(rows(folder))
    until(lambda: len(rows(folder)) > before)


def test_a_job_goes_on_from_a_savepoint(spark: SparkSession, tmp_path: Path) -> None:
    insert = "INSERT INTO sink SELECT id, SUM(id) OVER (ORDER BY ts) FROM g"
    first = session(tmp_path, "first")
    job = first.execute_sql(insert).job
    assert job is not None
    until(lambda: len(rows(tmp_path)) > 20)
    ((path,),) = ask(first, f"STOP JOB '{job.job_id}' WITH SAVEPOINT")
    assert job.status == "FINISHED"
    shutil.rmtree(tmp_path / "first")
    ids = [job.job_id]
    for checkpoint in ("second", "second"):
        again = session(tmp_path, checkpoint, **{"execution.state-recovery.path": path})
        going_on = again.execute_sql(insert).job
        assert going_on is not None
        ids.append(going_on.job_id)
        grow(tmp_path)
        going_on.cancel()
    assert ids[0] != ids[1] == ids[2], "a job of its own, which goes on in its directory"
    got = rows(tmp_path)
    assert got == [[n, n * (n + 1) // 2] for n in range(1, len(got) + 1)]
    with pytest.raises(StateError, match="is not a savepoint"):
        session(tmp_path, "third", **{"execution.state-recovery.path": str(tmp_path)}).execute_sql(insert)
    other = session(tmp_path, "fourth", **{"execution.savepoint.path": path})
    with pytest.raises(StateError, match=f"The savepoint '{path}' belongs to another query"):
        other.execute_sql("INSERT INTO sink SELECT id, id FROM g")


def test_a_savepoint_is_written_while_the_job_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    sums = "SELECT id AS {}, SUM(id) OVER (ORDER BY ts) AS {} FROM g"
    first = session(tmp_path, "first")
    job = first.execute_sql("INSERT INTO sink " + sums.format("a", "b")).job
    assert job is not None
    until(lambda: len(rows(tmp_path)) > 20)
    ((path,),) = ask(first, f"CREATE SAVEPOINT FOR JOB '{job.job_id}'")
    named = str(tmp_path / "named")
    assert ask(first, f"CREATE SAVEPOINT '{named}' FOR JOB '{job.job_id}'") == [(named,)]
    with pytest.raises(StateError, match=f"'{named}' cannot be written: the directory is not empty"):
        first.execute_sql(f"CREATE SAVEPOINT '{named}' FOR JOB '{job.job_id}'")
    grow(tmp_path)
    job.cancel()
    shutil.rmtree(tmp_path / "first")
    assert [row[:2] for row in ask(first, "SHOW SAVEPOINTS")] == [(path, job.job_id)]
    assert [row[0] for row in ask(first, f"SHOW SAVEPOINTS IN '{tmp_path}'")] == [named]
    described = ask(first, f"DESCRIBE SAVEPOINT '{path}'")
    assert [row[0] for row in described] == ["job", "fact", "source", "operator"]
    assert described[-1][2].startswith("OverAggregate(")
    assert int(described[-1][3]) > 0
    # An alias and the sink may be others.
    recovery = {"execution.state-recovery.path": path, "execution.state-recovery.claim-mode": "claim"}
    again = session(tmp_path / "other", "second", **recovery)
    going_on = again.execute_sql("INSERT INTO sink " + sums.format("x", "y")).job
    assert going_on is not None
    until(lambda: len(rows(tmp_path / "other")) > 20)
    going_on.cancel()
    got = rows(tmp_path / "other")
    begin = got[0][0]
    assert begin > 20
    assert got == [[n, n * (n + 1) // 2] for n in range(begin, begin + len(got))]
    assert ask(first, "SHOW SAVEPOINTS") == [], "the job has claimed it"
    ask(first, f"DROP SAVEPOINT '{named}'", f"DROP SAVEPOINT IF EXISTS '{named}'")
    assert not Path(named).exists()
    with pytest.raises(StateError, match="is not a savepoint: there is nothing"):
        first.execute_sql(f"DROP SAVEPOINT '{named}'")


def test_a_drained_job_lets_go_of_its_windows(spark: SparkSession, tmp_path: Path) -> None:
    made = session(tmp_path, "first")
    job = made.execute_sql(
        "INSERT INTO sink SELECT COUNT(*), MAX(id)"
        " FROM TABLE(TUMBLE(TABLE g, DESCRIPTOR(ts), INTERVAL '5' SECOND)) GROUP BY window_start, window_end"
    ).job
    assert job is not None
    until(lambda: len(rows(tmp_path)) > 1)
    with pytest.raises(SqlSyntaxError, match="WITH DRAIN could only be used after WITH SAVEPOINT"):
        made.execute_sql(f"STOP JOB '{job.job_id}' WITH DRAIN")
    ask(made, f"STOP JOB '{job.job_id}' WITH SAVEPOINT WITH DRAIN")
    got = rows(tmp_path)
    assert sum(count for count, _ in got) == max(last for _, last in got)
    with pytest.raises(ValidationError, match="does not run"):
        made.execute_sql(f"STOP JOB '{job.job_id}' WITH SAVEPOINT")


DRAINED = {
    "sessions": """SELECT COUNT(*), MAX(id) FROM
        TABLE(SESSION(TABLE files, DESCRIPTOR(ts), INTERVAL '5' SECOND)) GROUP BY window_start, window_end""",
    "windows of windows": """WITH seconds AS (SELECT MAX(id) AS id, window_time AS ts FROM
        TABLE(TUMBLE(TABLE files, DESCRIPTOR(ts), INTERVAL '1' SECOND))
        GROUP BY window_start, window_end, window_time) SELECT COUNT(*), MAX(id) FROM
        TABLE(TUMBLE(TABLE seconds, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY window_start, window_end""",
    "rows of a join": """SELECT COUNT(*), MAX(a.id) FROM (SELECT f.id FROM files AS f LEFT JOIN files AS o
        ON f.id = o.id + 100 AND o.ts BETWEEN f.ts AND f.ts + INTERVAL '1' HOUR) AS a""",
}


@pytest.mark.parametrize("query", DRAINED)
def test_a_drained_job_lets_go_of_what_waits_for_a_source_without_new_rows(
    spark: SparkSession, tmp_path: Path, query: str
) -> None:
    """No task of such a source tells operators that time has ended."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("1,1000\n2,2500\n3,3000\n")
    made, job = following_files(tmp_path, DRAINED[query])
    until(lambda: bool(list((tmp_path / "first").rglob("1.commit.json"))))
    ask(made, f"STOP JOB '{job.job_id}' WITH SAVEPOINT WITH DRAIN")
    assert [json.loads(line)["after"] for line in visible.lines(tmp_path / "found")][-1] == {"a": 3, "b": 3}
    # All that comes now would be late. A job that goes on says so, and loses nothing.
    (tmp_path / "in" / "2.csv").write_text("4,9000\n")
    _, again = following_files(tmp_path, DRAINED[query])
    with pytest.raises(
        StateError,
        match=r"^default_catalog\.default_database\.files has new rows, but its",
    ):
        again.wait(LONG)


def following_files(folder: Path, query: str) -> tuple[TableEnvironment, JobHandle]:
    made = session(folder, "first")
    ask(
        made,
        f"""CREATE TABLE files (id INT, s BIGINT, ts AS TO_TIMESTAMP_LTZ(s, 3), WATERMARK FOR ts AS ts)
         WITH ('connector'='filesystem', 'path'='{folder}/in', 'format'='csv',
         'source.monitor-interval'='1 s')""",
        f"CREATE TABLE found (a BIGINT, b BIGINT) WITH ('connector'='filesystem', 'path'='{folder}/found',"
        " 'format'='debezium-json')",
    )
    job = made.execute_sql(f"INSERT INTO found {query}").job
    assert job is not None
    return made, job


def test_a_savepoint_needs_a_place(spark: SparkSession) -> None:
    made = TableEnvironment.create({"parallelism.default": "1"})
    ask(made, NUMBERS, "CREATE TABLE b (id INT) WITH ('connector'='blackhole')")
    job = made.execute_sql("INSERT INTO b SELECT id FROM g").job
    assert job is not None
    with pytest.raises(ValidationError, match=r"'execution.checkpointing.savepoint-dir' is not set"):
        made.execute_sql(f"STOP JOB '{job.job_id}' WITH SAVEPOINT")
    job.cancel()


def test_going_back_loses_nothing_of_what_an_earlier_life_had_published(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The sinks have seen epochs of these numbers before."""
    database, source = tmp_path / "s.db", tmp_path / "in"
    source.mkdir()
    with sqlite3.connect(database) as open_:
        open_.execute("CREATE TABLE counts (k INTEGER PRIMARY KEY, n INTEGER)")

    def run(checkpoint: str, more: int, **options: str) -> dict[int, int]:
        (source / f"{more}.csv").write_text("".join(f"{n % 3}\n" for n in range(more)))
        made = session(tmp_path, checkpoint, **{"tidemill.epoch.max-rows": "10", **options})
        jdbc = f"'connector'='jdbc', 'url'='jdbc:sqlite:{database}', 'table-name'='counts'"
        files = f"'connector'='filesystem', 'path'='{source}', 'format'='csv'"
        ask(
            made,
            f"CREATE TABLE t (k INT) WITH ({files})",
            f"CREATE TABLE counts (k INT PRIMARY KEY NOT ENFORCED, n BIGINT) WITH ({jdbc})",
        )
        made.execute_sql(
            "EXECUTE STATEMENT SET BEGIN INSERT INTO counts SELECT k, COUNT(*) FROM t GROUP BY k; "
            "INSERT INTO sink SELECT k, 0 FROM t; END"
        ).wait()
        with sqlite3.connect(database) as open_:
            return dict(open_.execute("SELECT k, n FROM counts").fetchall())

    assert run("first", 30) == {0: 10, 1: 10, 2: 10}
    shutil.copytree(tmp_path / "first", tmp_path / "kept")
    assert run("first", 33) == {0: 21, 1: 21, 2: 21}
    before = set((tmp_path / "sink").glob("part-*"))
    back = {"execution.state-recovery.path": str(tmp_path / "kept"), "tidemill.epoch.max-rows": "1000"}
    assert run("second", 3, **back) == {0: 22, 1: 22, 2: 22}
    assert before < set((tmp_path / "sink").glob("part-*")), "no file of the earlier life is replaced"
    assert len(rows(tmp_path)) == 30 + 33 + (33 + 3)


@pytest.mark.thorough
def test_a_reader_may_take_the_files_that_were_published(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    for number in (1, 2):
        (source / f"{number}.csv").write_text(f"{number}\n")
        made = session(tmp_path, "first")
        files = f"'connector'='filesystem', 'path'='{source}', 'format'='csv'"
        ask(made, f"CREATE TABLE t (k INT) WITH ({files})")
        made.execute_sql("INSERT INTO sink SELECT k, k FROM t").wait()
        assert rows(tmp_path) == [[number, number]]
        for file in (tmp_path / "sink").glob("part-*"):
            file.unlink()
