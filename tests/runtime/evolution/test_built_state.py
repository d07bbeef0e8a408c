"""State that was built of rows goes on under another query as state of a job that has read these rows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.runtime.evolution.changing_query import CDC, CLICKS, ChangingQuery, Row, session
from tests.runtime.evolution.kept_images import changelog
from tidemill.changelog.watermarks import END, NONE

RANKED = "(SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {}) AS n FROM clicks) WHERE n <= {}"
SIDES = [CLICKS.replace("clicks", side, 1) for side in "lr"]
CDC_SIDES = [CDC.replace("clicks", side, 1) for side in "lr"]
JOINED = "SELECT l.k, l.a{} FROM l {} JOIN r ON l.k = r.k AND l.a < r.a"
NEAR = "SELECT l.k, {} FROM l JOIN r ON l.k = r.k AND l.ts BETWEEN r.ts - INTERVAL '0.004' SECOND AND r.ts"
TUMBLE = "SELECT k, {} FROM clicks GROUP BY k, TUMBLE(ts, INTERVAL '0.010' SECOND)"
OVER = "SELECT k, a, {} OVER (PARTITION BY k ORDER BY b) FROM clicks"
APPENDED = {
    "calls": (
        "SELECT k, SUM(a), COUNT(DISTINCT b), MAX(b), AVG(b) FROM clicks GROUP BY k",
        "SELECT k, COUNT(*) AS n, MAX(b), SUM(b), VAR_POP(a) AS d, COUNT(DISTINCT b) FROM clicks GROUP BY k",
        "SELECT k, SUM(b), SUM(a) AS s FROM clicks GROUP BY k HAVING SUM(b) > 3",
    ),
    "last": tuple(f"SELECT {c} FROM {RANKED.format('b DESC', 1)}" for c in ("k, a", "k, a, b", "a")),
    "top": (
        f"SELECT k, a, n FROM {RANKED.format('a', 3)}",
        f"SELECT k, a, b FROM {RANKED.format('a', 3)}",
        f"SELECT b FROM {RANKED.format('a', 2)}",
    ),
    "tumble": tuple(TUMBLE.format(c) for c in ("SUM(a), COUNT(*)", "MAX(b) AS m, AVG(a) AS x", "SUM(a)")),
}
CHANGED = {
    "calls": (
        "SELECT k, SUM(a), COUNT(DISTINCT b), MAX(b) FROM clicks GROUP BY k",
        "SELECT k, MAX(b), SUM(a) FROM clicks GROUP BY k HAVING MAX(b) > 1",
        "SELECT k, SUM(a), COUNT(*) AS n FROM clicks GROUP BY k",
    ),
    "top": (
        f"SELECT k, a FROM {RANKED.format('a', 2)}",
        f"SELECT k, a, b FROM {RANKED.format('a', 3)}",
        f"SELECT k, n FROM {RANKED.format('a', 1)}",
    ),
    "over": (OVER.format("SUM(a)"), OVER.format("MAX(a)"), OVER.format("COUNT(*)")),
}
BOTH = {
    **{
        f"{kind} join": tuple(JOINED.format(c, kind) for c in (", r.b", ", l.b, r.b", ""))
        for kind in ("INNER", "LEFT", "FULL")
    },
    "semi": tuple(f"SELECT {c} FROM l WHERE k IN (SELECT k FROM r)" for c in ("k, a", "k, a, b", "b")),
}
CASES: list[tuple[Sequence[str], tuple[str, ...]]] = [
    *(((CLICKS,), queries) for queries in APPENDED.values()),
    *(((CDC,), queries) for queries in CHANGED.values()),
    ((CLICKS,), CHANGED["over"]),
    *((tables, queries) for tables in (SIDES, CDC_SIDES) for queries in BOTH.values()),
    (SIDES, tuple(NEAR.format(c) for c in ("l.a, r.a AS x", "l.a, l.b, r.b AS y", "r.b AS y"))),
]
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(1, 6))]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("tables", "queries"), CASES)
def test_built_state_goes_on_under_other_queries(
    tmp_path: Path, tables: Sequence[str], queries: tuple[str, ...], seed: int
) -> None:
    chance = random.Random(f"{seed}{queries[0]}")
    read, built = (ChangingQuery(tmp_path / name, session(*tables)) for name in ("read", "built"))
    live: list[list[Row] | None] = [[] if "debezium" in text else None for text in tables]
    shown = 0
    for number in range(6):
        if number % 2 == 0:
            found = [query.start(queries[number // 2]) for query in (read, built)]
            assert found[0] == found[1]
        came = [changelog(chance, _rows(chance, number), rows) for rows in live]
        mark = END if number == 5 else NONE
        gave = [Counter(map(str, query.epoch(*came, watermark=mark))) for query in (read, built)]
        assert gave[0] == gave[1]
        shown += sum(gave[1].values())
        if number == 1:
            built.rebuild(1 + seed % 3, counted=seed % 2 == 0)
    assert shown


def _rows(chance: random.Random, number: int) -> list[Row]:
    """Rows with NULL in keys and values, and equal ones."""
    return [
        {
            "k": chance.choice([None, 1, 2, 3]),
            "a": chance.choice([None, 1, 2, 3]),
            "b": chance.choice([1, 2, 3]),
            "f": True,
            "ts": number + chance.randrange(20),
        }
        for _ in range(5)
    ]
