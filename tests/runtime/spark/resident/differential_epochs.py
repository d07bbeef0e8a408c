"""Epochs in resident workers write what the same epochs write as Spark jobs, change by change."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.runtime.running import Crash, Session, crash_at
from tests.runtime.spark.resident.jobs import ROWS, changes, heard, inserts, make_input, options, ran, sinks

_TUMBLE = "TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '10' SECOND)"
CASES: dict[str, tuple[str, ...]] = {
    "stateless": ("SELECT id AS x, v + 1 AS y FROM a WHERE v > 3",),
    "chained aggregations": (
        "SELECT n AS x, COUNT(*) AS y FROM (SELECT k, v, COUNT(*) AS n FROM a GROUP BY k, v) GROUP BY n",
    ),
    "join": ("SELECT a.id AS x, b.id AS y FROM a JOIN b ON a.k = b.k AND a.v = b.v",),
    "interval join": (
        "SELECT a.id AS x, b.id AS y FROM a JOIN b ON a.k = b.k "
        "AND a.ts BETWEEN b.ts - INTERVAL '5' SECOND AND b.ts",
    ),
    "tumble": (f"SELECT k AS x, SUM(v) AS y FROM TABLE({_TUMBLE}) GROUP BY window_start, window_end, k",),
    "session": (
        "SELECT k AS x, COUNT(*) AS y FROM TABLE(SESSION(TABLE a PARTITION BY k, DESCRIPTOR(ts), "
        "INTERVAL '4' SECOND)) GROUP BY window_start, window_end, k",
    ),
    "top-n": (
        "SELECT id AS x, v AS y FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) AS p"
        " FROM a) WHERE p <= 3",
    ),
    "over": ("SELECT id AS x, SUM(v) OVER (PARTITION BY k ORDER BY ts) AS y FROM a",),
    "temporal join": ("SELECT a.id AS x, r.rate AS y FROM a JOIN r FOR SYSTEM_TIME AS OF a.ts ON a.k = r.k",),
    "several sinks": (
        "SELECT k AS x, COUNT(*) AS y FROM a GROUP BY k",
        "SELECT id AS x, v AS y FROM a",
        f"SELECT k AS x, MAX(v) AS y FROM TABLE({_TUMBLE}) GROUP BY window_start, window_end, k",
    ),
}


SPARK_JOBS = ("temporal join",)
"""The JVM evaluates an expression of theirs, so far."""


@pytest.mark.parametrize("case", CASES)
def test_the_changes_are_the_same(case: str, spark: SparkSession, tmp_path: Path) -> None:
    chance, queries = Random(case), CASES[case]
    tables = make_input(tmp_path / "input", chance)
    rows = chance.choice((11, 16))
    spark_jobs = ran(Session(options(rows, resident=False)), tables, tmp_path / "spark", queries)
    with heard() as found:
        resident = ran(Session(options(rows, resident=True)), tables, tmp_path / "resident", queries)
    assert resident == spark_jobs
    assert any(resident)
    assert (len(found.resident) >= 2) is (case not in SPARK_JOBS)
    assert found.failures == []


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", CASES)
def test_a_job_goes_on_in_the_other_way(case: str, seed: int, spark: SparkSession, tmp_path: Path) -> None:
    """It crashes at a random step of a random epoch, and goes on with epochs of another size."""
    chance, queries = Random(f"{case} {seed}"), CASES[case]
    tables = make_input(tmp_path / "input", chance)
    begins = chance.choice((True, False))
    first, second = chance.choice((7, 11)), chance.choice((5, 13, 20))
    step, epoch = chance.choice(("planned", "ran", "committed", "published")), chance.choice((2, 3))
    found = []
    for name, ways in (("spark", (False, False)), ("other", (begins, not begins))):
        folder, checkpoint = tmp_path / name, tmp_path / f"{name}-checkpoint"
        made = Session(options(first, resident=ways[0], checkpoint=checkpoint), crash_at(step, epoch))
        made.execute(*tables, *sinks(folder, len(queries)))
        with pytest.raises(Crash):
            made.execute(inserts(queries))
        again = Session(options(second, resident=ways[1], checkpoint=checkpoint))
        found.append(ran(again, tables, folder, queries))
    assert found[0] == found[1] == changes(tmp_path / "other", len(queries))
    assert any(found[0])


def test_state_that_expires(spark: SparkSession, tmp_path: Path) -> None:
    """By a clock that tells the same time to both."""
    queries = ("SELECT k AS x, COUNT(*) AS y FROM a GROUP BY k",)
    tables, found = make_input(tmp_path / "input", Random(5)), []
    for resident in (False, True):
        session = Session({**options(10, resident=resident), "table.exec.state.ttl": "8 s"})
        moments = map(float, range(1_000, 1_000_000))
        session.environment.context.clock = partial(next, moments)
        found.append(ran(session, tables, tmp_path / str(resident), queries))
    assert found[0] == found[1]
    after = [change["after"] for change in map(json.loads, found[0][0]) if change["after"]]
    last = {row["x"]: row["y"] for row in after}
    assert sum(last.values()) < ROWS  # a count that expired has begun again
