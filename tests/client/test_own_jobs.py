"""Jobs of a process, asked for from another one."""

from __future__ import annotations

import re
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tidemill.client import own_jobs
from tidemill.client.main import main
from tidemill.errors import ConnectorError
from tidemill.files.private import own_directory
from tidemill.session.environment import TableEnvironment
from tidemill.session.jobs.job import EndedJob

pytestmark = pytest.mark.usefixtures("processes")

NUMBERS = """CREATE TABLE g (id INT) WITH ('connector'='datagen', 'rows-per-second'='50',
 'fields.id.kind'='sequence', 'fields.id.start'='1', 'fields.id.end'='1000000')"""


def test_jobs_are_listed_and_ended(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tmp_path = _own_folder(tmp_path_factory, monkeypatch)
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
        assert main(["stop", first[:12], "--savepoint-dir", str(tmp_path / "savepoints")]) == 0
        savepoint = Path(capsys.readouterr().out.strip())
        assert (savepoint / "savepoint.json").is_file()
        assert not (savepoint / "job-2").exists()  # the second job keeps its own below the first one's
        assert main(["stop", first, "--savepoint-dir", str(tmp_path / "savepoints")]) == 1
        assert "does not run: it is FINISHED" in capsys.readouterr().err
        assert main(["savepoint", "create", second]) == 1
        assert "--path or --savepoint-dir" in capsys.readouterr().err
        other = tmp_path / "savepoints" / "of the second"
        assert main(["savepoint", "create", second[:12], "--path", str(other)]) == 0
        assert capsys.readouterr().out == f"{other}\n"
        assert main(["savepoint", "list", str(tmp_path / "savepoints")]) == 0
        assert [re.split("  ", line)[1] for line in capsys.readouterr().out.splitlines()] == [first, second]
        assert main(["savepoint", "describe", str(other), "--verify"]) == 0
        assert re.search(r"source +scan-.*row.*\n.*as it was written\.$", capsys.readouterr().out)
        assert main(["savepoint", "diff", str(other), str(other)]) == 0
        assert main(["savepoint", "diff", str(savepoint), str(other)]) == 1
        assert re.search(rf"job +{first} .* -> \(none\)", capsys.readouterr().out)
        assert main(["savepoint", "delete", str(other)]) == 0
        assert not other.exists()
        assert main(["savepoint", "describe", str(other)]) == 1
        assert "is not a savepoint" in capsys.readouterr().err
        assert main(["cancel", second]) == 0
        assert [job.status for job in jobs if job is not None] == ["FINISHED", "CANCELED"]
    assert own_jobs.own_jobs() == []
    # What a killed process left refuses, and goes.
    left = Path(own_directory("jobs")) / "1-x.sock"
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(left))
    assert own_jobs.own_jobs() == []
    assert not left.exists()
    assert main(["cancel", first]) == 1
    said = capsys.readouterr().err
    assert f"No process of this user has a job '{first}'. The gateway 127.0.0.1:1 does not answer" in said
    assert "'tidemill history'" in said


def test_beginnings_of_ids(
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _own_folder(tmp_path_factory, monkeypatch)
    session = new_session()
    for job_id in ("ab1", "ab2", "abc"):
        session.context.jobs.put_back(EndedJob(job_id, "a job", "FINISHED"), datetime.now(UTC))
    with own_jobs.answered_for(session.context):
        assert main(["stop", "abc", "--savepoint-dir", "s"]) == 1
        assert "Job abc does not run: it is FINISHED" in capsys.readouterr().err
        assert main(["cancel", "ab"]) == 1
        said = capsys.readouterr().err
        assert "The ids of several jobs begin with 'ab'" in said
        assert "Expected one of: ab1, ab2, abc" in said
        assert main(["cancel", "ab2"]) == 0
        assert main(["cancel", "b2"]) == 1
        assert "No process of this user has a job 'b2'." in capsys.readouterr().err


def test_a_process_answers_before_it_ends(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that is stopped may be the last work of its process, whose end takes the threads that answer."""
    _own_folder(tmp_path_factory, monkeypatch)
    asked, ending, order = threading.Event(), threading.Event(), list[str]()
    wait = own_jobs._Answers.wait

    def stopped(self: EndedJob, directory: str, *, drain: bool = False) -> str:
        asked.set()
        assert ending.wait(60)
        order.append("answered")
        return f"{directory}/savepoint"

    def waiting(self: own_jobs._Answers, seconds: float) -> None:
        ending.set()
        wait(self, seconds)
        order.append("ended")

    monkeypatch.setattr(EndedJob, "stop_with_savepoint", stopped)
    monkeypatch.setattr(own_jobs._Answers, "wait", waiting)
    session = new_session()
    session.context.jobs.put_back(EndedJob("a", "a job", "RUNNING"), datetime.now(UTC))
    with ThreadPoolExecutor(1) as pool:
        with own_jobs.answered_for(session.context):
            (job,) = own_jobs.own_jobs()
            path = pool.submit(job.stop, "/there", drain=False)
            assert asked.wait(60)
        assert path.result(60) == "/there/savepoint"
    assert order == ["answered", "ended"]


def test_a_process_that_breaks_off_is_told(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    _own_folder(tmp_path_factory, monkeypatch)
    with socket.socket(socket.AF_UNIX) as listening, ThreadPoolExecutor(1) as pool:
        place = Path(own_directory("jobs")) / "1-y.sock"
        listening.bind(str(place))
        listening.listen()
        done = pool.submit(own_jobs.OwnJob(place, "a", "a job", "RUNNING", "").cancel)
        listening.accept()[0].close()
        with pytest.raises(ConnectorError, match=r"ended before it answered|does not answer"):
            done.result(60)


def _own_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of this test's for sockets, and no gateway."""
    tmp_path = tmp_path_factory.mktemp("j")  # a socket's path must be short
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.delenv("TIDEMILL_GATEWAY", raising=False)
    monkeypatch.setattr("tidemill.client.jobs.DEFAULT_GATEWAY", "http://127.0.0.1:1")
    return tmp_path
