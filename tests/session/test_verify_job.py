"""VERIFY JOB: equal, or the rows that differ, of a job that runs and of one that has stopped."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask
from tests.session.test_alter_job import COUNTED, SUMS, folder, put, session, shows
from tidemill.errors import NotSupportedError, StateError, ValidationError

__all__ = ["folder"]
TABLE = "default_catalog.default_database.totals"


def test_a_sink_that_somebody_else_has_changed_is_told(spark: SparkSession, folder: Path) -> None:
    made = session(folder)
    job = made.execute_sql(COUNTED).job
    assert job is not None
    put(folder, "b", (1, 10), (2, 20))
    shows(folder, (1, 10, 1), (2, 20, 1))
    put(folder, "a", (1, 1), (3, 3))
    shows(folder, (1, 11, 2), (2, 20, 1), (3, 3, 1))
    verify = f"VERIFY JOB '{job.job_id}'"
    assert ask(made, verify) == [(TABLE, "equal", None, None), ("group_aggregate_1", "equal", None, None)]
    assert job.is_running()
    with sqlite3.connect(folder / "db") as db:
        db.execute("UPDATE totals SET s = 12 WHERE k = 1")
        db.execute("DELETE FROM totals WHERE k = 2")
        db.execute("INSERT INTO totals VALUES (4, 4, 4)")
    job.cancel()
    assert ask(made, verify) == [
        (TABLE, "the job", "k=1", "s=12, n=2"),
        (TABLE, "the query", "k=1", "s=11, n=2"),
        (TABLE, "only the query", "k=2", "s=20, n=1"),
        (TABLE, "only the job", "k=4", "s=4, n=4"),
        ("group_aggregate_1", "equal", None, None),
    ]
    (folder / "in" / "b.csv").unlink()
    with pytest.raises(
        StateError, match=r"The history of table \S+\.t is gone: file .*b\.csv, of .*, was removed"
    ):
        made.execute_sql(verify)


def test_what_cannot_be_verified(spark: SparkSession, folder: Path) -> None:
    made = session(folder)
    with pytest.raises(ValidationError, match="There is no job 'x'"):
        made.execute_sql("VERIFY JOB 'x'")
    job = made.execute_sql(COUNTED.replace("FROM t", "FROM t WHERE RAND() < 2")).job
    assert job is not None
    twice = made.execute_sql(f"EXECUTE STATEMENT SET BEGIN {SUMS}; {COUNTED}; END").job
    assert twice is not None
    with pytest.raises(NotSupportedError, match=r"VERIFY JOB of two INSERTs into one table \(\S+totals\)"):
        made.execute_sql(f"VERIFY JOB '{twice.job_id}'")
    twice.cancel()
    with pytest.raises(NotSupportedError, match="RAND gives another answer when the query runs again"):
        made.execute_sql(f"VERIFY JOB '{job.job_id}'")
    job.cancel()
