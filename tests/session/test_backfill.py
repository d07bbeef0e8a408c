"""ALTER JOB ... AS with a backfill: the sinks have what the new query gives from the beginning."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from pyspark.sql import SparkSession

from tests.session.environments import ask
from tests.session.test_alter_job import COUNTED, SUMS, folder, put, session, shows

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
