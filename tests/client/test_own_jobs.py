"""Jobs of a process, asked for from another one."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask
from tidemill.client import own_jobs
from tidemill.client.main import main
from tidemill.files.private import own_directory
from tidemill.session.environment import TableEnvironment

NUMBERS = """CREATE TABLE g (id INT) WITH ('connector'='datagen', 'rows-per-second'='50',
 'fields.id.kind'='sequence', 'fields.id.start'='1', 'fields.id.end'='1000000')"""


def test_jobs_are_listed_and_ended(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tmp_path = tmp_path_factory.mktemp("j")  # a socket's path must be short
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.delenv("TIDEMILL_GATEWAY", raising=False)
    monkeypatch.setattr("tidemill.client.jobs.DEFAULT_GATEWAY", "http://127.0.0.1:1")
    session = TableEnvironment.create({"execution.checkpointing.dir": str(tmp_path / "checkpoint")})
    ask(session, NUMBERS, "CREATE TABLE b (id INT) WITH ('connector'='blackhole')")
    with own_jobs.answered_for(session.context):
        assert main(["jobs"]) == 0
        assert capsys.readouterr().out == ""
        jobs = [session.execute_sql("INSERT INTO b SELECT id FROM g").job for _ in range(2)]
        first, second = (job.job_id for job in jobs if job is not None)
        assert main(["jobs"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [re.sub(r"  20\d\d-\d\d-\d\d [\d:+]+", "", line) for line in lines] == [
            f"{job}  RUNNING     insert-into_default_catalog.default_database.b" for job in (first, second)
        ]
        assert main(["stop", first]) == 1
        assert "--savepoint-dir" in capsys.readouterr().err
        assert main(["stop", first, "--savepoint-dir", str(tmp_path / "savepoints")]) == 0
        savepoint = Path(capsys.readouterr().out.strip())
        assert (savepoint / "savepoint.json").is_file()
        assert not (savepoint / "job-2").exists()  # the second job keeps its own below the first one's
        assert main(["stop", first, "--savepoint-dir", str(tmp_path / "savepoints")]) == 1
        assert "does not run: it is CANCELED" in capsys.readouterr().err
        assert main(["cancel", second]) == 0
        assert [job.status for job in jobs if job is not None] == ["CANCELED", "CANCELED"]
    assert own_jobs.own_jobs() == []
    # What a killed process left refuses, and goes.
    left = Path(own_directory("jobs")) / "1-x.sock"
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(left))
    assert own_jobs.own_jobs() == []
    assert not left.exists()
    assert main(["cancel", first]) == 1
    assert "does not answer" in capsys.readouterr().err
