"""The next process of a gateway knows what this one was told, and goes on with its jobs."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests import visible
from tests.gateway.asking import BATCH, LONG, NUMBERS, SLOW, Client, options, until
from tidemill.errors import SetupError
from tidemill.gateway.api import OperationStatus
from tidemill.gateway.start import GatewayProcess
from tidemill.runtime.job.start import InsertsStart
from tidemill.runtime.restarts.job import RestartingJob


def test_the_next_process_knows_what_this_one_was_told(spark: SparkSession, tmp_path: Path) -> None:
    first = GatewayProcess(options(tmp_path / "gateway"))
    first.start()
    client = Client(first.gateway, my__key="v")
    client.ask(NUMBERS)
    file = f"'connector'='filesystem', 'path'='{tmp_path}/out', 'format'='csv'"
    client.ask(f"CREATE TABLE target (id INT, twice AS id * 2) WITH ({file})")
    client.ask("CREATE TEMPORARY VIEW small AS SELECT id FROM g WHERE id < 3")
    client.ask("SET 'pipeline.name' = 'mine'")
    done = client.submit("SELECT k, SUM(v) AS t FROM (VALUES ('a', 1), ('a', 3)) AS x(k, v) GROUP BY k")
    rows = client.rows(done)
    ended = client.submit("SELECT * FROM (VALUES (DATE '2020-01-01', ARRAY[1])) AS x(a, b)", BATCH)
    bad = client.submit("SELECT * FROM nosuch")
    client.ask("BEGIN STATEMENT SET")
    client.ask("INSERT INTO target SELECT id FROM g")
    ((job,),) = client.ask("END")
    until(lambda: visible.lines(tmp_path / "out"))
    client.ask(f"ALTER JOB '{job}' SET ('parallelism.default' = '3')")
    running = client.submit(SLOW, BATCH)
    until(lambda: first.gateway.operation_info(client.session, running).status is OperationStatus.RUNNING)
    first.gateway.wait(client.session, ended, LONG)
    first.vanish()

    second = GatewayProcess(options(tmp_path / "gateway"))
    second.start()
    with pytest.raises(SetupError, match="Another gateway uses the directory"):
        GatewayProcess(options(tmp_path / "gateway"))
    assert stat.S_IMODE((tmp_path / "gateway" / "store").stat().st_mode) == 0o700
    try:
        client.gateway = second.gateway
        assert client.rows(done) == rows
        assert client.rows(ended)[0][1] == [1]
        info = second.gateway.result_info(client.session, done)
        assert info is not None
        assert [str(f.type) for f in info.fields] == ["CHAR(1) NOT NULL", "INT NOT NULL"]
        assert "Object 'nosuch' not found" in str(second.gateway.operation_info(client.session, bad).error)
        assert "restarted" in str(second.gateway.operation_info(client.session, running).error)
        assert client.ask("SHOW TABLES") == [("g",), ("small",), ("target",)]
        assert second.gateway.session_config(client.session)["my.key"] == "v"
        assert client.ask(f"DESCRIBE JOB '{job}'")[0][1:3] == ("mine", "RUNNING")
        resumed = second.jobs("").all()[-1].job
        assert isinstance(resumed, RestartingJob)
        assert isinstance(resumed.restart, InsertsStart)
        assert resumed.restart.request.config["parallelism.default"] == "3"
        written = len(read_ids(tmp_path / "out"))
        until(lambda: len(read_ids(tmp_path / "out")) > written)
        client.ask(f"STOP JOB '{job}'")
        ids = read_ids(tmp_path / "out")
        assert sorted(ids) == list(range(1, len(ids) + 1))
        second.gateway.close_session(client.session)
    finally:
        second.vanish()
    third = GatewayProcess(options(tmp_path / "gateway"))
    third.start()
    assert third.gateway.list_sessions(user=None) == []
    assert [(s.job.job_id, s.job.status) for s in third.jobs("").all()] == [(job, "CANCELED")]
    # What was seen of the job is there still: in both processes that it ran in.
    look = third.gateway.watch("").look(job)
    assert look is not None
    assert [node.name for node in look.plan] == ["g", "target"]
    assert look.resumed is not None
    assert sum(epoch.rows_out for epoch in look.epochs) > 0
    third.close()


def test_the_job_of_a_materialized_table_outlives_its_gateway(spark: SparkSession, tmp_path: Path) -> None:
    first = GatewayProcess(options(tmp_path / "gateway"))
    first.start()
    client = Client(first.gateway)
    client.ask(NUMBERS)
    file = f"'connector'='filesystem', 'path'='{tmp_path}/out', 'format'='csv'"
    client.ask(f"CREATE MATERIALIZED TABLE kept WITH ({file}) AS SELECT id FROM g")
    until(lambda: visible.lines(tmp_path / "out"))
    first.vanish()

    second = GatewayProcess(options(tmp_path / "gateway"))
    second.start()
    try:
        client.gateway = second.gateway
        assert client.ask("SHOW MATERIALIZED TABLES") == [("kept",)]
        written = len(read_ids(tmp_path / "out"))
        until(lambda: len(read_ids(tmp_path / "out")) > written)
        client.ask("DROP MATERIALIZED TABLE kept")
        (job,) = second.jobs("").all()
        assert job.job.status == "CANCELED"
        ids = read_ids(tmp_path / "out")
        assert sorted(ids) == list(range(1, len(ids) + 1))
        assert client.ask("SHOW TABLES") == [("g",)]
    finally:
        second.vanish()


def read_ids(folder: Path) -> list[int]:
    return [int(line) for line in visible.lines(folder)]
