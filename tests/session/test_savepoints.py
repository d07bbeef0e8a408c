"""STOP JOB ... WITH SAVEPOINT: the job goes on from the copy, or what waits for time comes out before."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests import visible
from tests.session.environments import ask
from tidemill.errors import SqlSyntaxError, StateError, ValidationError
from tidemill.session.environment import TableEnvironment

LONG = 120.0
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
    for checkpoint in ("second", "second"):
        again = session(tmp_path, checkpoint, **{"execution.state-recovery.path": path})
        going_on = again.execute_sql(insert).job
        assert going_on is not None
        assert going_on.job_id == job.job_id
        grow(tmp_path)
        going_on.cancel()
    got = rows(tmp_path)
    assert got == [[n, n * (n + 1) // 2] for n in range(1, len(got) + 1)]
    with pytest.raises(StateError, match="is not a savepoint"):
        session(tmp_path, "third", **{"execution.state-recovery.path": str(tmp_path)}).execute_sql(insert)
    other = session(tmp_path, "fourth", **{"execution.state-recovery.path": path})
    with pytest.raises(StateError, match="belongs to another query"):
        other.execute_sql("INSERT INTO sink SELECT id, id FROM g")


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


def test_a_savepoint_needs_a_place(spark: SparkSession) -> None:
    made = TableEnvironment.create({"parallelism.default": "1"})
    ask(made, NUMBERS, "CREATE TABLE b (id INT) WITH ('connector'='blackhole')")
    job = made.execute_sql("INSERT INTO b SELECT id FROM g").job
    assert job is not None
    with pytest.raises(ValidationError, match=r"'execution.checkpointing.savepoint-dir' is not set"):
        made.execute_sql(f"STOP JOB '{job.job_id}' WITH SAVEPOINT")
    job.cancel()
