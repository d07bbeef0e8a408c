"""Rows that come too late, in a table of their own: every one once, with the epoch that found it."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.connectors.kafka import Broker
from tests.connectors.lake import delta_rows
from tests.runtime.running import Crash, Session, crash_at
from tests.runtime.test_event_time import session
from tidemill.errors import NotSupportedError, ValidationError

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
    return collected(made, f"'connector' = 'filesystem', 'path' = '{tmp_path / 'late'}', 'format' = 'csv'")


def collected(made: Session, options: str, by: str = "") -> Session:
    made.execute(
        "CREATE TABLE too_late (operator STRING, reached TIMESTAMP_LTZ(3), line STRING)"
        f" {by} WITH ({options})",
        "SET 'tidemill.late-rows.table' = 'too_late'",
    )
    return made


def test_late_rows_are_written(tmp_path: Path, spark: SparkSession) -> None:
    made = with_table(session(tmp_path, 2), tmp_path)
    made.changes(COUNTS)
    expected = [
        ("window", "2024-05-01 00:00:06Z", {"k": "k1", "n": 3}),
        ("window", "2024-05-01 00:00:23Z", {"k": "k1", "n": 5}),
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


def test_partitioned_files(tmp_path: Path, spark: SparkSession) -> None:
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path / 'late'}', 'format' = 'json'"
    made = collected(session(tmp_path, 2), options, "PARTITIONED BY (operator)")
    made.changes(COUNTS)
    lines = [
        line
        for path in (tmp_path / "late").glob("operator=*/part-*")
        for line in path.read_text().splitlines()
    ]
    assert sorted(json.loads(json.loads(line)["line"])["n"] for line in lines) == [3, 5]


def test_a_delta_table(tmp_path: Path, spark: SparkSession) -> None:
    made = collected(session(tmp_path, 2), f"'connector' = 'delta', 'table-path' = '{tmp_path / 'late'}'")
    made.changes(COUNTS)
    assert sorted(json.loads(row["line"])["n"] for row in delta_rows(tmp_path / "late")) == [3, 5]


@pytest.mark.thorough
def test_an_iceberg_table(tmp_path: Path, spark: SparkSession) -> None:
    options = f"'connector' = 'iceberg', 'warehouse' = '{tmp_path / 'late'}'"
    made = collected(session(tmp_path, 2), options)
    made.changes(COUNTS)
    made.execute("SET 'execution.runtime-mode' = 'batch'", "RESET 'tidemill.late-rows.table'")
    rows = made.changes("SELECT line FROM too_late")
    assert sorted(json.loads(row[0])["n"] for _, row in rows) == [3, 5]


@pytest.mark.thorough
def test_a_topic(kafka: Broker, tmp_path: Path, spark: SparkSession) -> None:
    topic = kafka.topic(1)
    options = {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": kafka.servers,
        "format": "json",
    }
    made = collected(session(tmp_path, 2), ", ".join(f"'{k}' = '{v}'" for k, v in options.items()))
    made.changes(COUNTS)
    values = [json.loads(value or "") for _, value in kafka.records(topic)]
    assert sorted(json.loads(value["line"])["n"] for value in values) == [3, 5]


@pytest.mark.parametrize(
    "options",
    [
        "'connector' = 'print'",
        "'connector' = 'filesystem', 'path' = '{}', 'format' = 'json', 'sink.parallelism' = '2'",
    ],
)
def test_a_connector_that_does_not_fit(options: str, tmp_path: Path, spark: SparkSession) -> None:
    made = collected(session(tmp_path, 0), options.format(tmp_path / "late"))
    with pytest.raises(NotSupportedError, match="table of late rows") as error:
        made.changes(COUNTS)
    assert "kafka" in (error.value.hint or "")
