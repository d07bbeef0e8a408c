"""Audits beside a running job: equal, a table that somebody else has changed, a history that is gone."""

from __future__ import annotations

import queue
import sqlite3
import threading
from pathlib import Path

from pyspark.sql import SparkSession

from tests.session.test_alter_job import COUNTED, SECONDS, make_folder, put, session, shows
from tidemill.runtime.events import JobAudited, JobEvent

EVERY = {"tidemill.audit.every": "200 ms"}


def test_audits_tell_what_verify_job_tells(spark: SparkSession, tmp_path: Path) -> None:
    make_folder(tmp_path)
    put(tmp_path, "a", (1, 10), (2, 20))
    made, audits = session(tmp_path, **EVERY), queue.SimpleQueue[JobAudited]()

    def heard(event: JobEvent) -> None:
        if isinstance(event, JobAudited):
            audits.put(event)

    made.context.on_event = heard
    job = made.execute_sql(COUNTED).job
    assert job is not None
    shows(tmp_path, (1, 10, 1), (2, 20, 1))
    found = audits.get(timeout=SECONDS)
    assert (found.differences, found.error, made.context.warnings) == (0, "", [])
    with sqlite3.connect(tmp_path / "db") as db:
        db.execute("UPDATE totals SET s = 11 WHERE k = 1")
    while not found.differences:
        found = audits.get(timeout=SECONDS)
    assert (found.job_id, found.differences) == (job.job_id, 2)
    assert found.first == "default_catalog.default_database.totals the job k=1 s=11, n=1"
    assert any("found 2 rows that differ" in warning for warning in made.context.warnings)
    put(tmp_path, "b", (2, 1))
    shows(tmp_path, (1, 11, 1), (2, 21, 2))
    (tmp_path / "in" / "a.csv").unlink()
    while not found.error:
        found = audits.get(timeout=SECONDS)
    assert "The history of table" in found.error
    assert job.is_running()
    job.cancel()


def test_a_job_that_cannot_be_audited_says_so(spark: SparkSession, tmp_path: Path) -> None:
    make_folder(tmp_path)
    made = session(tmp_path, **EVERY)
    job = made.execute_sql(COUNTED.replace("FROM t", "FROM t WHERE RAND() < 2")).job
    assert job is not None
    (warning,) = made.context.warnings
    assert warning.startswith(f"Job {job.job_id} is not audited.")
    assert "RAND gives another answer" in warning
    job.cancel()


def test_an_altered_job_is_audited_as_its_session_says_now(spark: SparkSession, tmp_path: Path) -> None:
    make_folder(tmp_path)
    put(tmp_path, "a", (1, 10), (2, 20))
    made, audits = session(tmp_path), queue.SimpleQueue[JobAudited]()
    made.context.on_event = lambda event: audits.put(event) if isinstance(event, JobAudited) else None
    job = made.execute_sql(COUNTED).job
    assert job is not None
    shows(tmp_path, (1, 10, 1), (2, 20, 1))
    assert audits.empty()
    made.execute_sql("SET 'tidemill.audit.every' = '100 ms'")
    altered = f"ALTER JOB '{job.job_id}' AS {COUNTED}"
    made.execute_sql(altered)
    assert audits.get(timeout=SECONDS).error == ""
    made.execute_sql("RESET 'tidemill.audit.every'")
    made.execute_sql(altered)
    threads = [t for t in threading.enumerate() if t.name.startswith("tidemill-audits")]
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive()
    assert job.is_running()
    job.cancel()
