"""A job that is altered several times, and jobs that go back to a savepoint in between."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask
from tests.session.test_alter_job import COUNTED, SUMS, folder, put, session, shows
from tidemill.errors import StateError

__all__ = ["folder"]
LARGE, SMALL = (COUNTED.replace("FROM t", f"FROM t WHERE v {condition}") for condition in (">= 10", "< 10"))


@pytest.mark.thorough
def test_going_back_to_a_savepoint_of_a_backfilled_query(spark: SparkSession, folder: Path) -> None:
    made = session(folder)
    job = made.execute_sql(SUMS).job
    assert job is not None
    put(folder, "a", (1, 10), (2, 20), (1, 1))
    shows(folder, (1, 11, None), (2, 20, None))
    ask(made, "SET 'tidemill.evolution' = 'backfill'", f"ALTER JOB '{job.job_id}' AS {LARGE}")
    shows(folder, (1, 10, 1), (2, 20, 1))
    savepoint = str(folder / "savepoint")
    ask(
        made, f"CREATE SAVEPOINT '{savepoint}' FOR JOB '{job.job_id}'", f"ALTER JOB '{job.job_id}' AS {SMALL}"
    )
    shows(folder, (1, 1, 1))
    ask(made, f"ALTER JOB '{job.job_id}' AS {COUNTED}")
    shows(folder, (1, 11, 2), (2, 20, 1))
    assert [row[1] for row in ask(made, f"VERIFY JOB '{job.job_id}'")] == ["equal", "equal"]
    put(folder, "b", (3, 3), (1, 100))
    shows(folder, (1, 111, 3), (2, 20, 1), (3, 3, 1))
    job.cancel()
    origin = {"execution__state-recovery__path": savepoint}
    bundles = {"enabled": "true", "allow-latency": "1 ms", "size": "1000"}
    more = {f"table__exec__mini-batch__{key}": value for key, value in bundles.items()}
    back = session(folder, "back", **origin, **more).execute_sql(LARGE).job
    assert back is not None
    shows(folder, (1, 110, 2), (2, 20, 1), (3, 3, 1))
    back.cancel()
    # The sink has rows of later lives: their difference to the new query is not known.
    again = session(folder, "again", tidemill__evolution="backfill", **origin)
    with pytest.raises(StateError, match="has not the rows that the query of the savepoint gives"):
        again.execute_sql(COUNTED)
    assert not (folder / "again" / "job.json").exists()
