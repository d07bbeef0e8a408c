"""Rows that come too late, in a table of their own: every one once, with the epoch that found it."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.runtime.running import Crash, Session, crash_at
from tests.runtime.test_event_time import session
from tidemill.errors import ValidationError

COUNTS = (
    "SELECT k, window_end, COUNT(DISTINCT n) AS c, SUM(n) AS s FROM"
    " TABLE(TUMBLE(TABLE ticks, DESCRIPTOR(ts), INTERVAL '5' SECOND)) GROUP BY k, window_start, window_end"
)


def late_rows(folder: Path) -> list[tuple[str, str, dict[str, Any]]]:
    found = []
    for path in sorted(folder.glob("part-*")):
        with path.open() as lines:
            found += [(o.split("-")[0], w, json.loads(row)) for o, w, row in csv.reader(lines)]
    return found


def with_table(made: Session, tmp_path: Path) -> Session:
    made.execute(
        "CREATE TABLE too_late (operator STRING, reached TIMESTAMP(3), line STRING) WITH"
        f" ('connector' = 'filesystem', 'path' = '{tmp_path / 'late'}', 'format' = 'csv')",
        "SET 'tidemill.late-rows.table' = 'too_late'",
    )
    return made


def test_late_rows_are_written(tmp_path: Path, spark: SparkSession) -> None:
    made = with_table(session(tmp_path, 2), tmp_path)
    made.changes(COUNTS)
    expected = [
        ("window", "2024-05-01 00:00:06", {"k": "k1", "n": 3}),
        ("window", "2024-05-01 00:00:23", {"k": "k1", "n": 5}),
    ]
    found = late_rows(tmp_path / "late")
    assert sorted(found, key=lambda row: row[1]) == expected
    assert sum(p.late for p in made.progress) == 2


def test_a_crash_writes_none_twice(tmp_path: Path, spark: SparkSession) -> None:
    checkpoint = f"SET 'execution.checkpointing.dir' = '{tmp_path / 'checkpoint'}'"
    sink = (
        "CREATE TABLE counts (k STRING, e TIMESTAMP(3), c BIGINT, s INT) WITH"
        f" ('connector' = 'filesystem', 'path' = '{tmp_path / 'counts'}', 'format' = 'csv')"
    )
    for fault in (crash_at("ran", 3), crash_at("committed", 2), lambda _: None):
        made = with_table(session(tmp_path, 2), tmp_path)
        os.utime(tmp_path / "ticks.csv", (1_700_000_000, 1_700_000_000))
        made.environment.context.fault = fault
        made.execute(checkpoint, sink)
        try:
            made.execute(f"INSERT INTO counts {COUNTS}")
        except Crash:
            continue
    found = late_rows(tmp_path / "late")
    assert sorted(row["n"] for _, _, row in found) == [3, 5]


def test_a_table_that_does_not_fit(tmp_path: Path, spark: SparkSession) -> None:
    made = session(tmp_path, 0)
    made.execute("SET 'tidemill.late-rows.table' = 'nowhere'")
    with pytest.raises(ValidationError, match="there is no table 'nowhere'"):
        made.changes(COUNTS)
    made.execute("SET 'tidemill.late-rows.table' = 'ticks'")
    with pytest.raises(ValidationError, match="cannot take late rows"):
        made.changes(COUNTS)
