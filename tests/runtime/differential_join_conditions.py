"""Outer, semi and anti joins whose condition only Spark can compute, against batch, over random changes."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import new_session
from tidemill import udf
from tidemill.session.environment import TableEnvironment

TEXTS = ("a", "ab", "b", "abc", "%", "")
BESIDE = "{0}.s LIKE {1}.s || '%' AND MOD({0}.n + {1}.n, 3) > 0"


@udf(result_type="STRING")
def glued(left: str | None, right: str | None) -> str | None:
    return None if left is None or right is None else f"{left}-{right}"


def changing(name: str, chance: random.Random, rows: int) -> str:
    """Rows that are updated, and taken back at the fourth of their key; some are there twice."""
    values = ", ".join(
        f"({chance.randint(1, 6)}, {chance.choice(('NULL', '1', '2'))}, '{chance.choice(TEXTS)}')"
        for _ in range(rows)
    )
    grouped = "SELECT MIN(j) AS j, COUNT(*) AS n, MAX(s) AS s FROM (VALUES {0}) AS v(k, j, s) GROUP BY k"
    return f"({grouped.format(values)} HAVING COUNT(*) < 4) AS {name}"


def net(session: TableEnvironment, query: str) -> Counter[tuple[object, ...]]:
    found: Counter[tuple[object, ...]] = Counter()
    for row in session.execute_sql(query).collect():
        found[tuple(row)] += 1 if row.kind in (0, 2) else -1
    assert all(count >= 0 for count in found.values()), found
    return +found


@pytest.mark.thorough
def test_changes_on_both_sides(spark: SparkSession) -> None:
    chance = random.Random(1)
    left, right = changing("l", chance, 14), changing("r", chance, 14)
    beside = BESIDE.format("l", "r")
    streaming, batch = (
        new_session(tidemill__epoch__max_rows="4"),
        new_session(execution__runtime_mode="batch"),
    )
    queries = [
        f"SELECT * FROM {left} FULL JOIN {right} ON {beside}",
        f"SELECT * FROM {left} LEFT JOIN {right} ON l.j = r.j AND ({beside} OR l.n > 3)",
        f"SELECT * FROM {left} WHERE EXISTS (SELECT 1 FROM {right} WHERE {beside})",
        f"SELECT * FROM {left} WHERE l.j NOT IN (SELECT r.j FROM {right} WHERE {beside})",
    ]
    for query in queries:
        assert net(streaming, query) == net(batch, query), query


def test_calls_over_both_sides(spark: SparkSession) -> None:
    """A call within a function that no kernel has, and what is drawn for the rows of one side."""
    session = new_session(tidemill__epoch__max_rows="1")
    session.create_temporary_function("glued", glued)
    left = "(VALUES (1, 'a'), (2, 'b'), (3, CAST(NULL AS STRING))) AS l(k, s)"
    right = "(VALUES (1, 'a'), (2, 'x')) AS r(k, s)"
    condition = "UPPER(glued(l.s, r.s)) LIKE '%-A' AND l.k = r.k"
    query = f"SELECT l.k, r.k FROM {left} LEFT JOIN {right} ON {condition}"
    assert net(session, query) == Counter([(1, 1), (2, None), (3, None)])
    drawn = f"SELECT l.k, r.k FROM {left} FULL JOIN {right} ON MOD(l.k + r.k, 2) + RAND() < 1"
    found = net(session, drawn)
    assert found == Counter([(1, 1), (3, 1), (2, 2)])
    assert "rows by whether they are in a pair" in session.explain_sql(drawn)


EVENTS = (
    "CREATE TABLE {0} (n INT, s STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH "
    "('connector'='filesystem', 'path'='{1}', 'format'='csv')"
)
WINDOW = "(SELECT * FROM TABLE(TUMBLE(TABLE {0}, DESCRIPTOR(ts), INTERVAL '10' SECOND))) AS {0}"
SAME_WINDOW = "l.window_start = r.window_start AND l.window_end = r.window_end"


@pytest.mark.thorough
def test_rows_of_near_times_and_of_one_window(spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(7)
    sessions = new_session(tidemill__epoch__max_rows="6"), new_session(execution__runtime_mode="batch")
    for name in ("l", "r"):
        times = sorted(chance.randint(0, 40) for _ in range(16))
        lines = [f"{chance.randint(1, 4)},{chance.choice(TEXTS)},2024-01-01 00:00:{t:02}" for t in times]
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
        for session in sessions:
            session.execute_sql(EVENTS.format(name, tmp_path / name))
    beside, left, right = BESIDE.format("l", "r"), WINDOW.format("l"), WINDOW.format("r")
    near = "l.ts BETWEEN r.ts - INTERVAL '3' SECOND AND r.ts + INTERVAL '4' SECOND"
    queries = [
        f"SELECT l.*, r.* FROM l FULL JOIN r ON {near} AND {beside}",
        f"SELECT l.*, r.* FROM l LEFT JOIN r ON l.n = r.n AND {near} AND {beside}",
        f"SELECT l.*, r.* FROM {left} FULL JOIN {right} ON {SAME_WINDOW} AND {beside}",
        f"SELECT l.* FROM {left} WHERE NOT EXISTS (SELECT 1 FROM {right} WHERE {SAME_WINDOW} AND {beside})",
    ]
    for query in queries:
        rows = list(sessions[0].execute_sql(query).collect())
        assert all(row.kind == 0 for row in rows)
        assert Counter(map(tuple, rows)) == net(sessions[1], query), query
