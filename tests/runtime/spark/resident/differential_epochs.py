"""Epochs in resident workers write what the same epochs write as Spark jobs, change by change."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.runtime.running import Crash, Session, crash_at
from tests.runtime.spark.resident.jobs import (
    ROWS,
    WAYS,
    changes,
    drawn_partitions,
    heard,
    inserts,
    make_input,
    make_types,
    options,
    ran,
    sinks,
)
from tidemill.client.json_output import json_rows

_TUMBLE = "TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '10' SECOND)"
_OF_BOTH = "TUMBLE(TABLE ab, DESCRIPTOR(ts), INTERVAL '10' SECOND)"
_TWICE = "TUMBLE(TABLE aa, DESCRIPTOR(ts), INTERVAL '10' SECOND)"
_BY_WINDOW = "GROUP BY window_start, window_end, k"
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
    "window rows": (f"SELECT id AS x, v AS y FROM TABLE({_TUMBLE}) WHERE v > 2",),
    "windows": (f"SELECT id AS x, EXTRACT(SECOND FROM window_start) AS y FROM TABLE({_TUMBLE})",),
    "union": ("SELECT id AS x, v AS y FROM a UNION ALL SELECT id + 100, v FROM b WHERE v > 3",),
    "union of a table with itself": (
        "SELECT x, COUNT(*) AS y FROM (SELECT k AS x FROM a UNION ALL SELECT v FROM a) GROUP BY x",
    ),
    "union of changes": ("SELECT k AS x, COUNT(*) AS y FROM a GROUP BY k UNION ALL SELECT id, v FROM b",),
    "aggregation of changes": (
        "SELECT y AS x, COUNT(*) AS y FROM (SELECT k AS x, COUNT(*) AS y FROM a GROUP BY k"
        " UNION ALL SELECT id, v FROM b) GROUP BY y",
    ),
    "windows of a union": (f"SELECT k AS x, SUM(v) AS y FROM TABLE({_OF_BOTH}) {_BY_WINDOW}",),
    "windows of a table twice": (f"SELECT k AS x, SUM(v) AS y FROM TABLE({_TWICE}) {_BY_WINDOW}",),
    "union of windows": (
        f"SELECT x, y FROM (SELECT k AS x, SUM(v) AS y FROM TABLE({_TUMBLE}) {_BY_WINDOW})"
        " UNION ALL SELECT v, id FROM b",
    ),
    "lookup join": ("SELECT p.id AS x, d.w AS y FROM p JOIN d FOR SYSTEM_TIME AS OF p.pt ON p.k = d.k",),
    "outer lookup join": (
        "SELECT p.id AS x, d.w AS y FROM p LEFT JOIN d FOR SYSTEM_TIME AS OF p.pt ON p.v = d.k",
    ),
    "aggregation of a lookup join": (
        "SELECT w AS x, COUNT(*) AS y FROM (SELECT d.w, p.v FROM p JOIN d FOR SYSTEM_TIME AS OF p.pt"
        " ON p.k = d.k) GROUP BY w",
    ),
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
    frames, one_task = (
        ran(Session(options(rows, way)), tables, tmp_path / way, queries) for way in ("frames", "one task")
    )
    with heard() as found, drawn_partitions(chance):
        resident = ran(Session(options(rows, "resident")), tables, tmp_path / "resident", queries)
    assert resident == one_task == frames
    assert any(resident)
    assert (len(found.resident) >= 2) is (case not in SPARK_JOBS)
    assert found.failures == []


SELECTS: dict[str, str] = {
    "rows": "SELECT ts, k, v, id FROM a",
    "changes": "SELECT k, COUNT(*) AS n, MAX(ts) AS last FROM a GROUP BY k",
    "union": "SELECT k, v FROM a WHERE v > 3 UNION ALL SELECT id, v FROM b",
    "dates": "SELECT d, l, m, z FROM types",
    "numbers": "SELECT b, i, f, d FROM types",
    "others": "SELECT x, o, y FROM types",
}
ONLY_AS_VALUES = ("others",)
"""Texts of bytes, rows and lists are made by the JVM."""


def shown(session: Session, query: str, rendered: bool) -> Iterable[object]:
    return json_rows(session.environment.execute_sql(query)) if rendered else session.changes(query)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
@pytest.mark.parametrize("rendered", [False, True])
@pytest.mark.parametrize("case", SELECTS)
def test_a_reader_gets_the_same(
    case: str, rendered: bool, zone: str, spark: SparkSession, tmp_path: Path
) -> None:
    """Values of the same Python types, or texts."""
    tables, got = [*make_input(tmp_path, Random(case)), make_types(tmp_path)], []
    for way in WAYS:
        session = Session({**options(11, way), "table.local-time-zone": zone})
        session.environment.context.rendered = rendered
        session.execute(*tables)
        with heard() as found:
            got.append(list(map(repr, shown(session, SELECTS[case], rendered))))
    assert got[0] == got[1] == got[2]
    assert got[0]
    instants = case == "dates" and zone != "UTC"
    assert (len(found.resident) >= 2) is not (rendered and (case in ONLY_AS_VALUES or instants))
    assert found.failures == []


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", CASES)
def test_a_job_goes_on_in_the_other_way(case: str, seed: int, spark: SparkSession, tmp_path: Path) -> None:
    """It crashes at a random step of a random epoch, and goes on with epochs of another size."""
    chance, queries = Random(f"{case} {seed}"), CASES[case]
    tables = make_input(tmp_path / "input", chance)
    begins, goes_on = chance.sample(list(WAYS), 2)
    first, second = chance.choice((7, 11)), chance.choice((5, 13, 20))
    step, epoch = chance.choice(("planned", "ran", "committed", "published")), chance.choice((2, 3))
    found = []
    for name, ways in (("frames", ("frames", "frames")), ("other", (begins, goes_on))):
        folder, checkpoint = tmp_path / name, tmp_path / f"{name}-checkpoint"
        made = Session(options(first, ways[0], checkpoint), crash_at(step, epoch))
        made.execute(*tables, *sinks(folder, len(queries)))
        with pytest.raises(Crash):
            made.execute(inserts(queries))
        again = Session(options(second, ways[1], checkpoint))
        found.append(ran(again, tables, folder, queries))
    assert found[0] == found[1] == changes(tmp_path / "other", len(queries))
    assert any(found[0])


def test_state_that_expires(spark: SparkSession, tmp_path: Path) -> None:
    """By a clock that tells the same time to all."""
    queries = ("SELECT k AS x, COUNT(*) AS y FROM a GROUP BY k",)
    tables, found = make_input(tmp_path / "input", Random(5)), []
    for way in WAYS:
        session = Session({**options(10, way), "table.exec.state.ttl": "8 s"})
        moments = map(float, range(1_000, 1_000_000))
        session.environment.context.clock = partial(next, moments)
        found.append(ran(session, tables, tmp_path / way, queries))
    assert found[0] == found[1] == found[2]
    after = [change["after"] for change in map(json.loads, found[0][0]) if change["after"]]
    last = {row["x"]: row["y"] for row in after}
    assert sum(last.values()) < ROWS  # a count that expired has begun again
