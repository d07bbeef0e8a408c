"""Distinct values shared between keys of known values: the plain plan's answers, from less state."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.running import Session, folded

OPTION = "table.optimizer.distinct-state-reuse"
IDS = 20_000
QUERIES = (
    "SELECT k, COUNT(DISTINCT id) AS n FROM visits WHERE k IN ('A', 'B', 'other') GROUP BY k",
    # Two keys of known values, one of others, which stands first; two names for one count.
    "SELECT s, b, a, COUNT(DISTINCT id) AS n, COUNT(DISTINCT id) AS m FROM ("
    "  SELECT id, c AS s, CASE WHEN k = 'A' THEN 'x' WHEN k = 'B' THEN 'yy' ELSE 'z' END AS a, c AS b "
    "  FROM visits) WHERE b = 1 OR b = 2 OR b = 7 GROUP BY s, b, a",
    "SELECT k, c, COUNT(DISTINCT id) AS n FROM visits "
    "WHERE (k = 'A' AND c = 1) OR (k = 'B' AND c BETWEEN 0 AND 2) GROUP BY k, c",
    # Rows go again: the greatest channel is another one when more rows have come.
    "SELECT k, COUNT(DISTINCT id) AS n FROM (SELECT id, c, MAX(k) AS k FROM visits GROUP BY id, c) "
    "WHERE k IN ('A', 'B', 'other', 'none') GROUP BY k",
    "SELECT k, b, GROUPING(k, b) AS g, COUNT(DISTINCT id) AS n FROM (SELECT id, k, "
    "CASE WHEN c = 1 THEN 'one' ELSE 'more' END AS b FROM visits WHERE k IN ('A', 'B', 'other')) "
    "GROUP BY ROLLUP (k, b)",
    "SELECT k, c, COUNT(DISTINCT id) AS n FROM visits WHERE k IN ('A', 'B', 'other') AND c IN (1, 2) "
    "GROUP BY GROUPING SETS ((k, c), (k), (c), (), ())",
    # More than a word's bits, of which most never come.
    "SELECT k, c, COUNT(DISTINCT id) AS n FROM visits WHERE k IN ('A', 'B', 'other', 'none') AND c IN ("
    + ", ".join(map(str, range(1, 21)))
    + ") GROUP BY k, c",
    "SELECT id, k, COUNT(DISTINCT c) AS n FROM visits WHERE k IN ('A', 'B', 'other') "
    "GROUP BY GROUPING SETS ((id, k), (id))",
    "SELECT k, COUNT(DISTINCT id) AS n FROM (SELECT id, c, MAX(k) AS k FROM visits GROUP BY id, c) "
    "WHERE k IN ('A', 'B', 'other', 'none') GROUP BY CUBE (k)",
)
SHARED = "each value once, with a "


def written(folder: Path, rows: Sequence[tuple[object, ...]]) -> str:
    file = folder / "visits.csv"
    file.write_text("".join(",".join("" if v is None else str(v) for v in row) + "\n" for row in rows))
    return (
        "CREATE TABLE visits (k STRING, c INT, id BIGINT) WITH ('connector' = 'filesystem', "
        f"'path' = '{file}', 'format' = 'csv', 'csv.null-literal' = '')"
    )


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = random.Random(7)
    channels = ("A", "B", "other", "else", None)
    rows = [
        (made.choice(channels), made.choice((0, 1, 2, 3, None)), made.choice((None, *range(25))))
        for _ in range(400)
    ]
    return written(tmp_path_factory.mktemp("few"), rows)


@pytest.mark.thorough
@pytest.mark.parametrize("query", QUERIES)
def test_the_plain_answers(spark: SparkSession, few: str, query: str) -> None:
    answers = []
    for mode, most in (("OFF", 1000), ("ON", 1000), ("ON", 37)):
        session = Session({OPTION: mode, "parallelism.default": "2", "tidemill.epoch.max-rows": str(most)})
        session.execute(few)
        (plan,) = session.changes(f"EXPLAIN {query}")
        assert (SHARED in str(plan)) == (mode == "ON")
        answers.append(folded(session.changes(query)))
    assert len(answers[0]) >= 2
    assert answers[0] == answers[1] == answers[2]


def test_when_it_is_done(spark: SparkSession, few: str) -> None:
    session = Session({"parallelism.default": "1"})
    session.execute(few)
    plain, retracting = QUERIES[0], QUERIES[3]
    many = ", ".join(f"'{n}'" for n in range(200))
    for query, option, value, done in (
        (plain, "", "", True),
        (plain, OPTION, "OFF", False),
        (plain, "table.exec.mini-batch.enabled", "false", False),
        (plain, "table.exec.state.ttl", "1 h", False),
        (retracting, "", "", False),
        (retracting, OPTION, "ON", True),
        (plain.replace("'A', 'B'", many), "", "", True),
        (plain.replace("COUNT(DISTINCT id)", "COUNT(DISTINCT c > 1)"), "", "", True),
        (plain.replace(", 'B', 'other'", ""), OPTION, "ON", False),
        (plain.replace("k IN ('A', 'B', 'other')", "k LIKE 'A%'"), OPTION, "ON", False),
        (plain.replace("DISTINCT id)", "DISTINCT id), COUNT(*)"), OPTION, "ON", False),
    ):
        if option:
            session.execute(f"SET '{option}' = '{value}'")
        (plan,) = session.changes(f"EXPLAIN {query}")
        assert (SHARED in str(plan)) == done, (query, option, value)
        if option:
            session.execute(f"RESET '{option}'")


@pytest.mark.parametrize(("overlap", "least"), [(0.9, 1.7), (0.0, 1 / 1.1)])
def test_its_state(spark: SparkSession, tmp_path: Path, overlap: float, least: float) -> None:
    """Three channels; so large a share of the visitors comes by all of them, the others by one. Plain
    state is packed."""
    common = int(IDS * overlap)
    rows: list[tuple[object, ...]] = [(k, 1, i) for k in ("A", "B", "other") for i in range(common)]
    rows += [(("A", "B", "other")[i % 3], 1, i) for i in range(common, IDS)]
    random.Random(1).shuffle(rows)
    table = written(tmp_path, rows)
    sizes = []
    for mode in ("OFF", "AUTO"):
        # Runs of a partition of half of the values are not packed.
        session = Session({OPTION: mode, "parallelism.default": "2", "tidemill.epoch.small-bytes": "0"})
        session.execute(table)
        found = folded(session.changes(QUERIES[0]))
        expected = {k: common + sum(i % 3 == n for i in range(common, IDS)) for n, k in enumerate(("A", "B"))}
        assert {k: n for (k, n) in found if k in expected} == expected
        sizes.append(session.progress[-1].state_bytes)
    print("state bytes, plain and shared:", sizes)
    assert sizes[0] >= least * sizes[1]
