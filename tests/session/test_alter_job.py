"""A job whose query changes: ALTER JOB while it runs, and another query on a savepoint or a checkpoint."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask
from tidemill.errors import ConnectorError, NotSupportedError, StateError, ValidationError
from tidemill.session.environment import TableEnvironment

SECONDS = 600.0
SUMS = "INSERT INTO totals SELECT k, SUM(v) AS s, CAST(NULL AS BIGINT) AS n FROM t GROUP BY k"
COUNTED = "INSERT INTO totals SELECT k, SUM(v) AS s, COUNT(*) AS n FROM t GROUP BY k"


def session(folder: Path, checkpoint: str = "state", **more: str) -> TableEnvironment:
    made = TableEnvironment.create(
        {
            "parallelism.default": "2",
            "execution.checkpointing.dir": str(folder / checkpoint),
            "tidemill.epoch.small-bytes": "0",
            **{key.replace("__", "."): value for key, value in more.items()},
        }
    )
    ask(
        made,
        f"CREATE TABLE t (k INT, v BIGINT) WITH ('connector'='filesystem', 'path'='{folder}/in', "
        "'format'='csv', 'source.monitor-interval'='100 ms')",
        "CREATE TABLE totals (k INT, s BIGINT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH "
        f"('connector'='jdbc', 'url'='jdbc:sqlite:{folder}/db', 'table-name'='totals')",
    )
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_folder(tmp_path)
    return tmp_path


def make_folder(folder: Path) -> None:
    """Where the source's files and the sink's table are."""
    (folder / "in").mkdir()
    with sqlite3.connect(folder / "db") as db:
        db.execute("CREATE TABLE totals (k INTEGER PRIMARY KEY, s BIGINT, n BIGINT)")


def put(folder: Path, name: str, *rows: tuple[int, int]) -> None:
    (folder / "in" / f".{name}").write_text("".join(f"{k},{v}\n" for k, v in rows))
    (folder / "in" / f".{name}").rename(folder / "in" / f"{name}.csv")


def shows(folder: Path, *wanted: tuple[Any, ...]) -> None:
    """Waits until the sink has these rows."""
    end, got = time.monotonic() + SECONDS, None
    while got != list(wanted):
        assert time.monotonic() < end, got
        time.sleep(0.05)
        with sqlite3.connect(folder / "db") as db:
            got = db.execute("SELECT * FROM totals ORDER BY k").fetchall()


def test_a_running_job_goes_on_as_another_query(spark: SparkSession, folder: Path) -> None:
    made = session(folder)
    job = made.execute_sql(SUMS).job
    assert job is not None
    put(folder, "a", (1, 10), (2, 20))
    shows(folder, (1, 10, None), (2, 20, None))
    with pytest.raises(StateError, match=r"The state of job \w+ belongs to another query .*v, 10") as refused:
        made.execute_sql(f"ALTER JOB '{job.job_id}' AS {SUMS.replace('FROM t', 'FROM t WHERE v > 10')}")
    assert "With 'tidemill.evolution' = 'backfill' the query is computed" in refused.value.hint
    ask(
        made,
        f"CREATE TABLE nowhere WITH ('url'='jdbc:sqlite:{folder}/none/db') LIKE totals (OVERWRITING OPTIONS)",
    )
    largest = "INSERT INTO nowhere SELECT k, MAX(v) AS m, CAST(NULL AS BIGINT) AS n FROM t GROUP BY k"
    with pytest.raises(ConnectorError):
        made.execute_sql(f"ALTER JOB '{job.job_id}' AS {largest}")
    put(folder, "b", (1, 1))
    shows(folder, (1, 11, None), (2, 20, None))
    ask(made, f"ALTER JOB '{job.job_id}' AS {COUNTED}")
    assert job.is_running()
    ask(made, f"ALTER JOB '{job.job_id}' SET ('parallelism.default' = '5')")
    with pytest.raises(NotSupportedError, match=r"SET of 'pipeline.name' is not supported"):
        made.execute_sql(f"ALTER JOB '{job.job_id}' SET ('pipeline.name' = 'x')")
    put(folder, "c", (1, 2), (3, 3), *((k, 0) for k in range(4, 40)))
    more = [(k, 0, 1) for k in range(4, 40)]
    shows(folder, (1, 13, 1), (2, 20, None), (3, 3, 1), *more)
    assert {path.name for path in (folder / "state" / "state").glob("*/*")} == set("01234")
    job.cancel()
    assert job.status == "CANCELED"
    with pytest.raises(ValidationError, match="does not run: it is CANCELED"):
        made.execute_sql(f"ALTER JOB '{job.job_id}' AS {COUNTED}")
    # The checkpoint is that of the second query now; a third begins with it, here and elsewhere.
    third = COUNTED.replace("SUM(v) AS s", "MAX(v) AS s")
    explained = ask(made, f"EXPLAIN EVOLUTION FROM '{folder}/state' {third}")
    assert [row[1:3] for row in explained] == [
        (None, "kept"),
        ("MAX(v)", "replaced"),
        ("COUNT(*)", "kept"),
        ("SUM(v)", "dropped"),
    ]
    assert explained[1][3] == "s was SUM(v), now it is MAX(v); it begins with NULL in epoch 4"
    drops = {"execution.state-recovery.ignore-unclaimed-state": "true"}
    elsewhere = {"execution.state-recovery.path": str(folder / "state"), **drops}
    with pytest.raises(StateError, match=r"s was SUM\(v\), now it is MAX\(v\)"):
        session(folder).execute_sql(third)
    going_on = session(folder, "other", **elsewhere).execute_sql(third).job
    assert going_on is not None
    put(folder, "d", (1, 7))
    shows(folder, (1, 7, 2), (2, 20, None), (3, 3, 1), *more)
    going_on.cancel()


@pytest.mark.thorough
def test_wider_keys_and_values_go_on_in_other_partitions(spark: SparkSession, folder: Path) -> None:
    keys, wide = range(40), 1 << 40

    def started(kind: str, partitions: str, sql: str) -> Any:
        made = session(folder, parallelism__default=partitions)
        place = f"'connector'='filesystem', 'path'='{folder}/in', 'format'='csv'"
        ask(
            made,
            "DROP TABLE t",
            "DROP TABLE totals",
            f"CREATE TABLE t (k {kind}, v {kind}) WITH ({place}, 'source.monitor-interval'='100 ms')",
            f"CREATE TABLE totals (k {kind}, s BIGINT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH "
            f"('connector'='jdbc', 'url'='jdbc:sqlite:{folder}/db', 'table-name'='totals')",
        )
        return made.execute_sql(sql).job

    largest = "INSERT INTO totals SELECT k, CAST(MAX(v) AS BIGINT) AS s, COUNT(*) AS n FROM t GROUP BY k"
    job = started("INT", "2", largest)
    put(folder, "a", *((k, k) for k in keys))
    shows(folder, *((k, k, 1) for k in keys))
    job.cancel()
    again = started("BIGINT", "3", largest)
    put(folder, "b", *((k, wide if k % 2 else -1) for k in keys), (wide, 7))
    shows(folder, *((k, wide if k % 2 else k, 2) for k in keys), (wide, 7, 1))
    again.cancel()
