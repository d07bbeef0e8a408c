"""Random queries that become other random queries by a backfill: what their sink has is what a batch query
gives over the same rows, and so it is after more rows."""

from __future__ import annotations

import random
import re
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask
from tests.session.test_backfill import start_of
from tidemill.runtime.replay.backfill import Backfill
from tidemill.session.environment import TableEnvironment

SECONDS = 120.0
CALLS = (
    "SUM(a)",
    "COUNT(*)",
    "COUNT(DISTINCT b)",
    "MAX(a)",
    "MIN(b)",
    "AVG(a)",
    "COUNT(a) FILTER (WHERE b > 1)",
)
FILTERS = ("", "WHERE a > 2", "WHERE b <> 1", "WHERE a IS NULL OR b = 2")
INPUTS = (
    "t",
    "(SELECT k, b, MAX(a) AS a FROM t GROUP BY k, b)",
    "(SELECT t.k, t.a, u.b FROM t JOIN t AS u ON t.k = u.b)",
    "(SELECT t.k, t.a, u.a AS b FROM t LEFT JOIN (SELECT b, SUM(a) AS a FROM t GROUP BY b) AS u "
    "ON t.k = u.b)",
    "(SELECT k, a, b FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY b ORDER BY a DESC, k) AS r FROM t) "
    "WHERE r <= 2)",
)
HAVINGS = ("", "HAVING COUNT(*) > 1", "HAVING MAX(k) < 3")


def query(chance: random.Random) -> str:
    calls = [f"CAST({call} AS BIGINT) AS c{n}" for n, call in enumerate(chance.sample(CALLS, 2))]
    source, filtered = chance.choice(INPUTS), chance.choice(FILTERS)
    return f"SELECT k, {', '.join(calls)} FROM {source} {filtered} GROUP BY k {chance.choice(HAVINGS)}"


def put(folder: Path, name: str, chance: random.Random) -> None:
    rows = [
        (chance.randrange(4), chance.choice(["", *map(str, range(-2, 7))]), chance.randrange(4))
        for _ in range(8)
    ]
    (folder / "in" / f".{name}").write_text("".join(f"{k},{a},{b}\n" for k, a, b in rows))
    (folder / "in" / f".{name}").rename(folder / "in" / f"{name}.csv")


def session(
    folder: Path,
    chance: random.Random,
    partitions: Sequence[int] = (1, 2, 3),
    kind: str = "BIGINT",
    **more: str,
) -> TableEnvironment:
    """``kind``: the type of the source's column ``a``."""
    made = TableEnvironment.create(
        {
            "parallelism.default": str(chance.choice(partitions)),
            "tidemill.epoch.max-rows": str(chance.choice([3, 5, 100])),
            "table.exec.mini-batch.enabled": chance.choice(["true", "false"]),
            "table.exec.mini-batch.allow-latency": "1 ms",
            "table.exec.mini-batch.size": "1000",
            **{key.replace("__", "."): value for key, value in more.items()},
        }
    )
    csv = f"'connector'='filesystem', 'path'='{folder}/in', 'format'='csv', 'csv.null-literal'=''"
    ask(
        made,
        f"CREATE TABLE t (k INT, a {kind}, b BIGINT) WITH ({csv}, 'source.monitor-interval'='100 ms')",
        f"CREATE TABLE now (k INT, a BIGINT, b BIGINT) WITH ({csv})",
        "CREATE TABLE s (k INT, x BIGINT, y BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector'='jdbc', "
        f"'url'='jdbc:sqlite:{folder}/db', 'table-name'='s')",
    )
    return made


def agree(made: TableEnvironment, folder: Path, sql: str) -> list[Any]:
    """Waits until the sink has what a batch query gives over the files."""
    ask(made, "SET 'execution.runtime-mode' = 'batch'")
    over = re.sub(r"\bt\b", "now", sql)
    wanted = sorted(map(tuple, ask(made, over)))
    ask(made, "RESET 'execution.runtime-mode'")
    has(folder, wanted, sql)
    return wanted


def has(folder: Path, wanted: list[Any], what: object) -> None:
    """Waits until the sink has these rows, by their keys."""
    end, got = time.monotonic() + SECONDS, list[Any]()
    while got != wanted:
        assert time.monotonic() < end, (what, got, wanted)
        time.sleep(0.05)
        with sqlite3.connect(folder / "db") as db:
            got = db.execute("SELECT * FROM s ORDER BY k").fetchall()


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(4))
def test_a_query_that_becomes_another(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    (tmp_path / "in").mkdir()
    with sqlite3.connect(tmp_path / "db") as db:
        db.execute("CREATE TABLE s (k INTEGER PRIMARY KEY, x BIGINT, y BIGINT)")
    put(tmp_path, "m", chance)
    former = None
    for name in ("b", "z"):
        made, sql = session(tmp_path, chance), query(chance)
        start = start_of(made, tmp_path, f"INSERT INTO s {sql}", [])
        if former is not None:
            Backfill.of(former, start).switch()
        job = start()
        agree(made, tmp_path, sql)
        put(tmp_path, name, chance)
        agree(made, tmp_path, sql)
        job.cancel()
        former = start
