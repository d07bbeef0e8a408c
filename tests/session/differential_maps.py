"""Maps are equal whatever the order of their entries: streams, a batch and plain Python agree in every place
that compares."""

from __future__ import annotations

import json
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.hostile_values import identity
from tests.session.differential_values import MODES, bag, folded
from tests.session.environments import new_session
from tests.tiers import sampled
from tidemill.session.environment import TableEnvironment

Maps = dict[str, Any] | None
VALUES: tuple[Maps, ...] = (
    {"a": 1.0, "b": 2.0},
    {"b": 2.0, "a": 1.0},
    {"a": 1.0},
    None,
    {"b": None, "a": 1.0},
    {"a": 1.0, "b": None},
    {"a": 0.0, "b": 1.0},
    {"b": 1.0, "a": -0.0},
    {},
    {"c": 3.0, "a": 1.0, "b": 2.0},
    {"b": 2.0, "c": 3.0, "a": 1.0},
)
FORMS = {
    "map": "m",
    "array": "ARRAY[m]",
    "row": "ROW(m, 1)",
    "value": "MAP['x', m, 'y', m]",
    "key": "MAP[m, 1]",
    "row of array": "ROW(ARRAY[MAP[1, m]], 1)",
}
LOOKED_AT_CLOSELY = ("map", "row of array")


@pytest.fixture(params=MODES)
def session(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> TableEnvironment:
    lines = "".join(json.dumps({"n": n, "m": m, "c": n % 2}) + "\n" for n, m in enumerate(VALUES))
    (tmp_path / "t.json").write_text(lines)
    session = new_session(**MODES[request.param])
    session.execute_sql(
        "CREATE TABLE t (n INT, m MAP<STRING, DOUBLE>, c INT, ts AS TO_TIMESTAMP_LTZ(n, 0), p AS PROCTIME(),"
        " WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'format' = 'json',"
        f" 'path' = '{tmp_path / 't.json'}')"
    )
    session.execute_sql(
        "CREATE TABLE d (n INT, m MAP<STRING, DOUBLE>) WITH ('connector' = 'filesystem', 'format' = 'json',"
        f" 'path' = '{tmp_path / 't.json'}')"
    )
    session.execute_sql(
        "CREATE VIEW v AS SELECT n, m, ts FROM (SELECT n, m, ts, ROW_NUMBER() OVER (PARTITION BY m"
        " ORDER BY ts DESC) AS r FROM t WHERE n IN (0, 4, 6, 9)) WHERE r = 1"
    )
    return session


def classes() -> list[list[int]]:
    """The rows of each value."""
    found: dict[Any, list[int]] = {}
    for n, m in enumerate(VALUES):
        found.setdefault(identity(m), []).append(n)
    return list(found.values())


CLASSES = classes()
FIRSTS = [c[0] for c in CLASSES]
PAIRS = list(product(range(len(VALUES)), repeat=2))


def same(a: int, b: int) -> bool:
    """SQL's ``=``."""
    return VALUES[a] is not None and identity(VALUES[a]) == identity(VALUES[b])


def matched(chosen: set[int]) -> list[int]:
    return [n for n in range(len(VALUES)) if any(same(n, c) for c in chosen)]


EQUAL = [(a, b) for a, b in PAIRS if same(a, b)]
OTHERS = [(a, b) for a, b in EQUAL if a != b]
ALONE = [n for n in range(len(VALUES)) if n not in {a for a, _ in OTHERS}]
INSIDE = matched({1, 4, 7})
KNOWN = [n for n, m in enumerate(VALUES) if m is not None]
HALVES = Counter(n % 2 for n in range(len(VALUES)))

COMPARING: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "group by": ("SELECT MIN(n), COUNT(*) FROM s GROUP BY f", [(c[0], len(c)) for c in CLASSES]),
    "join": ("SELECT a.n, b.n FROM s a JOIN s b ON a.f = b.f", EQUAL),
    "nulls are equal": (
        "SELECT a.n, b.n FROM s a JOIN s b ON a.f IS NOT DISTINCT FROM b.f",
        [(a, b) for a, b in PAIRS if identity(VALUES[a]) == identity(VALUES[b])],
    ),
    "in": ("SELECT n FROM s WHERE f IN (SELECT f FROM s WHERE n IN (1, 4, 7))", [(n,) for n in INSIDE]),
}
MORE: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "distinct": ("SELECT COUNT(*) FROM (SELECT DISTINCT f FROM s)", [(len(CLASSES),)]),
    "union": ("SELECT COUNT(*) FROM (SELECT f FROM s UNION SELECT f FROM s)", [(len(CLASSES),)]),
    "intersect": (
        "SELECT COUNT(*) FROM (SELECT f FROM s WHERE n IN (0, 2, 7) INTERSECT"
        " SELECT f FROM s WHERE n IN (1, 6))",
        [(1,)],
    ),
    "except": (
        "SELECT COUNT(*) FROM (SELECT f FROM s WHERE n IN (0, 4, 7) EXCEPT"
        " SELECT f FROM s WHERE n IN (1, 6))",
        [(2,)],
    ),
    "first of each": (
        "SELECT n FROM (SELECT n, ROW_NUMBER() OVER (PARTITION BY f ORDER BY n) AS r FROM s) WHERE r = 1",
        [(n,) for n in FIRSTS],
    ),
    "filter": ("SELECT a.n, b.n FROM s a, s b WHERE a.f = b.f OR a.n > b.n + 100", EQUAL),
    "unequal": (
        "SELECT a.n, b.n FROM s a, s b WHERE a.f <> b.f",
        [(a, b) for a, b in product(KNOWN, repeat=2) if not same(a, b)],
    ),
    "outer join": (
        "SELECT a.n, b.n FROM s a FULL JOIN s b ON a.f = b.f AND a.n <> b.n",
        [*OTHERS, *((n, None) for n in ALONE), *((None, n) for n in ALONE)],
    ),
    "not in": (
        "SELECT n FROM s WHERE f NOT IN (SELECT f FROM s WHERE n IN (1, 4, 7))",
        [(n,) for n in KNOWN if n not in INSIDE],
    ),
    "in as a value": (
        "SELECT n, f IN (SELECT f FROM s WHERE n IN (0, 1, 4, 5)) FROM s",
        [(n, None if m is None else n in matched({0, 4})) for n, m in enumerate(VALUES)],
    ),
    "exists": (
        "SELECT n FROM s WHERE EXISTS (SELECT 1 FROM s AS o WHERE o.f = s.f AND o.n > s.n)",
        [(a,) for a in sorted({a for a, b in EQUAL if b > a})],
    ),
    "scalar": (
        "SELECT n, (SELECT COUNT(*) FROM s AS o WHERE o.f = s.f) FROM s",
        [(n, sum(same(n, other) for other in range(len(VALUES)))) for n in range(len(VALUES))],
    ),
}
ONCE: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "groups as values": (
        "SELECT m, COUNT(*) FROM t GROUP BY m",
        [(VALUES[c[0]], len(c)) for c in CLASSES],
    ),
    "count distinct": (
        "SELECT COUNT(DISTINCT m), COUNT(DISTINCT m) FILTER (WHERE n > 3) FROM t",
        [(len(CLASSES) - 1, len({identity(m) for m in VALUES[4:]}))],
    ),
    "count distinct by": (
        "SELECT c, COUNT(DISTINCT m) FROM t GROUP BY c",
        [(c, len({identity(m) for m in VALUES[c::2] if m is not None})) for c in HALVES],
    ),
    "what entries say": (
        "SELECT COUNT(*) FROM (SELECT DISTINCT CAST(m AS STRING), MAP_KEYS(m) FROM t)",
        [(len(CLASSES),)],
    ),
    "in a list": (
        "SELECT n FROM t WHERE m IN (MAP['b', 2e0, 'a', 1e0], MAP['b', CAST(NULL AS DOUBLE), 'a', 1e0])",
        [(n,) for n in matched({0, 4})],
    ),
    "distinct from": (
        "SELECT n FROM t WHERE m IS DISTINCT FROM MAP['b', 2e0, 'a', 1e0]",
        [(n,) for n in range(len(VALUES)) if n not in (0, 1)],
    ),
    "array functions": (
        "SELECT n FROM t WHERE ARRAY_CONTAINS(ARRAY[m], MAP['b', 2e0, 'a', 1e0])",
        [(0,), (1,)],
    ),
    "last of each": (
        "SELECT n FROM (SELECT n, ROW_NUMBER() OVER (PARTITION BY m ORDER BY ts DESC) AS r FROM t)"
        " WHERE r = 1",
        [(c[-1],) for c in CLASSES],
    ),
    "over": (
        "SELECT n, COUNT(*) OVER (PARTITION BY m ORDER BY ts) FROM t",
        [(n, place + 1) for c in CLASSES for place, n in enumerate(c)],
    ),
    "windows": (
        "SELECT MIN(n), COUNT(*) FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR)"
        " GROUP BY window_start, window_end, m",
        [(c[0], len(c)) for c in CLASSES],
    ),
    "interval join": (
        "SELECT a.n, b.n FROM t a JOIN t b ON a.m = b.m AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '1' HOUR",
        [(a, b) for a, b in EQUAL if a <= b],
    ),
    "temporal join": (
        "SELECT t.n, v.n FROM t JOIN v FOR SYSTEM_TIME AS OF t.ts ON t.m = v.m",
        [(a, b) for a, b in EQUAL if b <= a and b in (0, 4, 6, 9)],
    ),
    "lookup join": (
        "SELECT t.n, d.n FROM t JOIN d FOR SYSTEM_TIME AS OF t.p ON t.m = d.m",
        EQUAL,
    ),
    "match": (
        "SELECT x, y FROM t MATCH_RECOGNIZE (PARTITION BY m ORDER BY ts MEASURES A.n AS x, B.n AS y"
        " AFTER MATCH SKIP PAST LAST ROW PATTERN (A B) DEFINE B AS B.n > A.n)",
        [(c[0], c[1]) for c in CLASSES if len(c) > 1],
    ),
}


def unlike(
    session: TableEnvironment, queries: dict[str, tuple[str, list[tuple[Any, ...]]]]
) -> dict[str, Any]:
    """What is not as expected."""
    wrong = {}
    for name, (query, rows) in queries.items():
        found = folded(session, query)
        if found != bag(rows):
            wrong[name] = (found, bag(rows))
    return wrong


@pytest.mark.one_case
def test_every_place_that_compares(session: TableEnvironment) -> None:
    assert not unlike(session, dict(sampled(ONCE.items())))


@pytest.mark.thorough
@pytest.mark.parametrize("form", FORMS)
def test_values_that_contain_maps(session: TableEnvironment, form: str) -> None:
    session.execute_sql(f"CREATE VIEW s AS SELECT n, IF(m IS NULL, NULL, {FORMS[form]}) AS f FROM t")
    assert not unlike(session, COMPARING | (MORE if form in LOOKED_AT_CLOSELY else {}))
