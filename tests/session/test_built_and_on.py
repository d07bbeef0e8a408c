"""Savepoints that were built, and their jobs, with what other savepoints serve for."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tests.session.test_built_savepoints import (
    BUYERS,
    JOB,
    LATER,
    RECORDS,
    TABLES,
    WHOLE,
    create,
    root,
    session,
)
from tidemill.client.main import main
from tidemill.errors import StateError

__all__ = ["root"]


def rows(place: Path) -> list[list[str]]:
    reading = new_session(execution__runtime_mode="batch")
    ask(reading, f"CREATE CATALOG s WITH ('type'='savepoint', 'path'='{place}')")
    found = []
    for table in TABLES:
        columns = [
            f"`{row[0]}`" for row in ask(reading, f"DESCRIBE s.state.{table}") if row[0] != "partition_id"
        ]
        found.append(sorted(map(repr, ask(reading, f"SELECT {', '.join(columns)} FROM s.state.{table}"))))
    return found


def test_an_export_serves_other_partitions(spark: SparkSession, root: Path) -> None:
    made = session(root)
    ask(made, create(root / "new", WHOLE, RECORDS, BUYERS))
    for arguments in (("export", "new", "exported"), ("import", "exported", "back")):
        assert main(["savepoint", arguments[0], *(str(root / a) for a in arguments[1:])]) == 0
    assert ask(made, f"DIFF SAVEPOINT '{root}/new' WITH '{root}/back'") == []
    (root / "in" / "b.csv").write_text(LATER)
    place = {"execution__checkpointing__dir": str(root / "read")}
    ask(session(root, **place), f"EXECUTE {JOB}")
    for name, partitions in (("seven", "7"), ("one", "1")):
        origin = root / ("back" if name == "seven" else "seven")
        running = session(
            root,
            execution__state_recovery__path=str(origin),
            execution__checkpointing__dir=str(root / name),
        )
        ask(running, f"SET 'parallelism.default' = '{partitions}'")
        job = running.execute_sql(f"EXECUTE {JOB}").job
        assert job is not None
        assert rows(root / name) == rows(root / "read")
        with pytest.raises(StateError, match="has state of another query or of a savepoint"):
            running.execute_sql(f"VERIFY JOB '{job.job_id}'")
    differences = ask(made, f"DIFF SAVEPOINT '{root}/new' WITH '{root}/one'")
    assert {(row[1], row[2]) for row in differences} == {
        ("group_aggregate_1", "CHANGED"),
        ("group_aggregate_1", "ONLY IN SECOND"),
        ("group_aggregate_1_distinct_buyer", "ONLY IN SECOND"),
        ("group_aggregate_2", "CHANGED"),
    }
