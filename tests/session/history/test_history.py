"""Jobs that have ended: what is kept of each, by whom it is found, and that nothing more runs for it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tidemill.client import main, shell
from tidemill.config.option import Configuration
from tidemill.errors import TidemillError
from tidemill.session.environment import TableEnvironment
from tidemill.session.history.keeper import Keeper, own_records
from tidemill.session.history.records import Records


def kept(job: str, begun: float) -> dict[str, Any]:
    texts = {"id": job, "name": "n", "mode": "batch", "status": "FINISHED", "error": ""}
    return {**texts, "begun": begun, "ended": begun}


def test_files_by_the_time_of_their_begin(tmp_path: Path) -> None:
    records = Records(str(tmp_path / "kept"), 3)
    assert records.last(5) == []
    assert records.find("a") is None
    for begun, job in ((2.0, "ab"), (1.0, "ac"), (10.0, "ab"), (3.0, "b")):
        records.add(begun, job, kept(job, begun))
    assert [one["begun"] for one in records.last(5)] == [10.0, 3.0, 2.0]
    assert [one["begun"] for one in records.last(1)] == [10.0]
    assert records.find("ab") == kept("ab", 10.0)
    assert records.find("ac") is None
    names = sorted(os.listdir(records.folder))
    Path(records.folder, names[-1]).write_text("{")
    assert [one["id"] for one in records.last(5)] == ["b", "ab"]
    others: tuple[Any, ...] = ({}, [], "x", None, 5, kept("zz", 1.0) | {"status": None})
    for number, odd in enumerate(others):
        Path(records.folder, f"99999999999999-zz{number}.json").write_text(json.dumps(odd))
    assert [one["id"] for one in records.last(9)] == ["b", "ab"]
    assert records.find("zz") is None
    assert oct(os.stat(Path(records.folder, names[0])).st_mode & 0o777) == "0o600"


def test_the_prompt_keeps_its_lines_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    typed = shell._history()
    typed.store_string("SELECT 1;")
    records = own_records(Configuration())
    records.add(1.0, "ab", kept("ab", 1.0))
    assert [one["id"] for one in records.last(5)] == ["ab"]
    assert list(shell._history().load_history_strings()) == ["SELECT 1;"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("history")


@pytest.fixture(scope="module")
def session(spark: SparkSession, folder: Path) -> TableEnvironment:
    made = new_session(parallelism__default="2", table__dml_sync="true")
    made.context.history = Keeper(records=Records(str(folder / "kept"), 100))
    facts = ", ".join(f"({n}, {n % 3})" for n in range(30))
    ask(
        made,
        "CREATE TABLE facts (n INT, k INT) PARTITIONED BY (k) WITH "
        f"('connector' = 'filesystem', 'path' = '{folder}/facts', 'format' = 'parquet')",
        f"INSERT INTO facts VALUES {facts}",
    )
    return made


def last(session: TableEnvironment) -> dict[str, Any]:
    assert session.context.history is not None
    return session.context.history.records.last(1)[0]


def jobs(spark: SparkSession) -> int:
    """The number of the last one."""
    java: Any = spark.sparkContext._jsc
    known = java.sc().statusStore().jobsList(None)
    return max((int(known.apply(place).jobId()) for place in range(known.size())), default=-1)


def test_a_streaming_job(session: TableEnvironment) -> None:
    found = last(session)
    assert (found["mode"], found["status"], found["epochs_done"]) == ("streaming", "FINISHED", 1)
    assert found["name"] == "insert-into_default_catalog.default_database.facts"
    assert [node["role"] for node in found["plan"]] == ["source", "sink"]
    assert found["statement"].startswith("INSERT INTO facts VALUES (0, 0)")
    assert found["options"]["parallelism.default"] == "2"
    assert found["plan"][-1]["table"] == "default_catalog.default_database.facts"
    assert found["stages"]
    assert all(stage["status"] == "COMPLETE" for stage in found["stages"])


def test_a_batch_job(session: TableEnvironment, spark: SparkSession) -> None:
    session.execute_sql("SET 'execution.runtime-mode' = 'batch'")
    query = "SELECT n % 5 AS r, COUNT(*) AS c FROM facts WHERE k < 2 GROUP BY n % 5"
    assert sorted(ask(session, query)) == [(r, 4) for r in range(5)]
    found, ran = last(session), jobs(spark)
    assert (found["mode"], found["status"], found["error"]) == ("batch", "FINISHED", "")
    assert found["begun"] <= found["ended"]
    assert (found["statement"], found["rows_in"], found["rows_out"]) == (query, 20, 5)
    counted = {operator["name"]: operator["rows"] for operator in found["operators"]}
    assert (counted["Scan parquet"], counted["HashAggregate"]) == (20, 5 * 2)  # of the first of two phases
    assert found["plan"][0]["table"] == "default_catalog.default_database.facts"
    names = [node["name"] for node in found["plan"]]
    assert names[0] == "TableSourceScan"
    assert any(name.endswith("Aggregate") for name in names)
    table = "default_catalog.default_database.facts"
    assert found["partitions"] == [{"table": table, "read": 2, "of": 3}]
    first, *_, final = found["stages"]
    assert first["bytes_read"] > 0
    assert first["shuffle_written"] > 0
    assert final["shuffle_read"] == first["shuffle_written"]
    session.context.history, kept = None, session.context.history
    ask(session, query)
    session.context.history = kept
    alone = jobs(spark)
    ask(session, query)
    assert jobs(spark) - alone == alone - ran
    assert len({one["id"] for one in [found, last(session)]}) == 2


def test_a_job_that_fails(session: TableEnvironment) -> None:
    session.execute_sql("SET 'execution.runtime-mode' = 'batch'")
    with pytest.raises(TidemillError, match="zero"):
        ask(session, "SELECT 1 / (n - 3) AS x FROM facts")
    found = last(session)
    assert found["status"] == "FAILED"
    assert "zero" in found["error"]
    assert found["stages"][-1]["failed"] > 0


def test_a_folder_that_cannot_be_written_fails_no_job(
    session: TableEnvironment, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    kept, session.context.history = session.context.history, Keeper(records=Records(f"{tmp_path}/file", 1))
    try:
        assert ask(session, "SELECT COUNT(*) AS c FROM facts") == [(30,)]
    finally:
        session.context.history = kept
    assert "could not be kept" in caplog.text


def test_the_command_line(session: TableEnvironment, capsys: pytest.CaptureFixture[str]) -> None:
    session.execute_sql("SET 'execution.runtime-mode' = 'batch'")
    ask(session, "SELECT COUNT(*) AS c FROM facts")
    found = last(session)
    assert session.context.history is not None
    place = ["--directory", session.context.history.records.folder]
    assert main.main(["history", *place, "--last", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"{found['id']}  FINISHED   batch")
    assert main.main(["history", found["id"][:12], *place]) == 0
    shown = capsys.readouterr().out
    assert "+- TableSourceScan(table=[[default_catalog, default_database, facts" in shown
    assert " spilled   skew  name" in shown
    assert main.main(["history", "--json", found["id"], *place]) == 0
    assert json.loads(capsys.readouterr().out) == found
    assert main.main(["history", "nothing", *place]) == 1
    assert "no history of a job 'nothing'" in capsys.readouterr().err
