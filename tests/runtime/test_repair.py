"""A job that failed at a bad record goes on, once the record is mended or the table is told to bear it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests import visible
from tests.runtime.running import Session
from tidemill.errors import StateError, TidemillError

GOOD = "".join(f"{'ab'[n % 2]},{n}\n" for n in range(9))
BAD = GOOD.replace("b,5\n", "b,five\n")


def run(tmp_path: Path, table_options: str = "", ttl: str = "0 ms") -> None:
    """Distinct rows of ``in.csv`` into files, two rows an epoch, from where an earlier run stopped."""
    made = Session(
        {
            "tidemill.epoch.max-rows": "2",
            "execution.checkpointing.dir": str(tmp_path / "checkpoint"),
            "table.exec.state.ttl": ttl,
        }
    )
    made.execute(
        "CREATE TABLE amounts (k STRING, n INT) WITH ('connector' = 'filesystem', 'format' = 'csv',"
        f" 'path' = '{tmp_path / 'in.csv'}'{table_options})",
        "CREATE TABLE doubled (k STRING, n INT) WITH ('connector' = 'filesystem',"
        f" 'format' = 'debezium-json', 'path' = '{tmp_path / 'out'}')",
        "INSERT INTO doubled SELECT k, 2 * n FROM (SELECT DISTINCT k, n FROM amounts) AS d",
    )


def written(tmp_path: Path) -> list[str]:
    return sorted("{k},{n}".format(**json.loads(line)["after"]) for line in visible.lines(tmp_path / "out"))


def failed(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(BAD)
    with pytest.raises(TidemillError, match="five"):
        run(tmp_path)
    assert written(tmp_path) == sorted(f"{'ab'[n % 2]},{2 * n}" for n in range(4))


def test_the_record_is_mended(tmp_path: Path, spark: SparkSession) -> None:
    failed(tmp_path)
    (tmp_path / "in.csv").write_text(GOOD + "a,70\n")
    run(tmp_path)
    assert written(tmp_path) == sorted([f"{'ab'[n % 2]},{2 * n}" for n in range(9)] + ["a,140"])


def test_the_table_bears_it(tmp_path: Path, spark: SparkSession) -> None:
    failed(tmp_path)
    run(tmp_path, ", 'csv.ignore-parse-errors' = 'true'")
    lines = written(tmp_path)
    assert [line for line in lines if line != "b,None"] == sorted(
        f"{'ab'[n % 2]},{2 * n}" for n in range(9) if n != 5
    )


def test_what_was_read_has_changed(tmp_path: Path, spark: SparkSession) -> None:
    failed(tmp_path)
    (tmp_path / "in.csv").write_text(GOOD.replace("a,0\n", "a,7\n"))
    with pytest.raises(TidemillError, match="has changed since it was read"):
        run(tmp_path)
    assert len(written(tmp_path)) == 4


def test_another_time_to_live_is_another_job(tmp_path: Path, spark: SparkSession) -> None:
    """A longer one would bring back some of what has expired: that which happens to lie in files still."""
    failed(tmp_path)
    with pytest.raises(StateError, match="other options, types or time-to-live"):
        run(tmp_path, ttl="1 h")
