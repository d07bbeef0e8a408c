"""Sub-queries as values where the compared columns have 0.0 and -0.0: each outer row stays one row.

What is equal is left to Python, whose floats have the same two zeros and the same NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import new_session
from tests.tiers import sampled
from tidemill.session.environment import TableEnvironment
from tidemill.session.rows.pandas_frames import folded

Values = list[float | None]
Asked = tuple[tuple[str, list[tuple[Any, ...]]], ...]
"""Queries, each with its answer."""

LOG = (
    "1,5,0.0\n2,0.0,-0.0\n3,NaN,0.0\n5,-0.0,3\n2,-0.0,8\n1,0.0,7\n"
    "4,,\n3,NaN,5\n1,0.0,NaN\n5,5,-0.0\n6,8,-0.0\n6,9,1\n"
)
"""Of each id the last row counts: what stood before it is taken back, of the zeros some and all."""
F: dict[int, float | None] = {1: 0.0, 2: -0.0, 3: math.nan, 4: None, 5: 5.0, 6: 9.0}
G: dict[int, float | None] = {1: math.nan, 2: 8.0, 3: 5.0, 4: None, 5: -0.0, 6: 1.0}
KINDS = {
    "double": "{0}",
    "float": "CAST({0} AS FLOAT)",
    "row": "ROW({0})",
    "nested": "ROW(1, ROW({0}, 'x'))",
}


def equal(key: float | None, members: dict[int, float | None]) -> list[int]:
    return [i for i, m in members.items() if key is not None and m is not None and key == m]


def equal_in_rows(key: float | None, members: dict[int, float | None]) -> list[int]:
    """NULL inside of a ROW is equal to NULL."""
    return [i for i, m in members.items() if key == m]


def contained(key: float | None, members: Values) -> bool | None:
    if any(key is not None and key == m for m in members if m is not None):
        return True
    return None if key is None or None in members else False


def each(value: Callable[[float | None], Any]) -> list[tuple[Any, ...]]:
    return [(i, value(f)) for i, f in F.items()]


def negated(value: bool | None) -> bool | None:
    return None if value is None else not value


MEMBERS = [*G.values()]
KNOWN = [g for g in MEMBERS if g is not None]
MARKS: Asked = (
    ("SELECT id, f IN (SELECT g FROM w) AS b FROM w", each(lambda f: contained(f, MEMBERS))),
    ("SELECT id, f NOT IN (SELECT g FROM w) AS b FROM w", each(lambda f: negated(contained(f, MEMBERS)))),
    (
        "SELECT id, f IN (SELECT f FROM w) AS b FROM w WHERE f IS NOT NULL",
        [(1, True), (2, True), (3, None), (5, True), (6, True)],
    ),
    (
        "SELECT id, f IN (SELECT w2.g FROM w AS w2 WHERE w2.f = w.f) AS b FROM w WHERE id < 3",
        [(1, False), (2, False)],
    ),
)


def counted(equal: Callable[[float | None, dict[int, float | None]], list[int]]) -> Asked:
    return (
        ("SELECT id FROM w AS a WHERE a.f IN (SELECT f FROM w) OR a.id = 4", [(1,), (2,), (4,), (5,), (6,)]),
        ("SELECT id FROM w AS a WHERE a.f IN (SELECT g FROM w) OR a.id = 4", [(1,), (2,), (4,), (5,)]),
        (
            "SELECT id, EXISTS (SELECT 1 FROM w AS w2 WHERE w2.g = w.f) AS b FROM w",
            each(lambda f: bool(equal(f, G))),
        ),
        (
            "SELECT id, (SELECT MAX(w2.id) FROM w AS w2 WHERE w2.f = w.f) AS m FROM w",
            each(lambda f: max(equal(f, F), default=None)),
        ),
        (
            "SELECT id, (SELECT COUNT(*) FROM w AS w2 WHERE w2.f = w.f) AS n FROM w",
            each(lambda f: len(equal(f, F))),
        ),
        ("SELECT id FROM w WHERE 1 < (SELECT COUNT(*) FROM w AS w2 WHERE w2.f = w.f)", [(1,), (2,)]),
        (
            "SELECT id, (SELECT w2.id FROM w AS w2 WHERE w2.f = w.f ORDER BY w2.id DESC LIMIT 1) AS m FROM w",
            each(lambda f: max(equal(f, F), default=None)),
        ),
        (
            "SELECT w.id, b.n FROM w LEFT JOIN LATERAL "
            "(SELECT DISTINCT w2.id > 0 AS n FROM w AS w2 WHERE w2.f = w.f) AS b ON TRUE",
            each(lambda f: True if equal(f, F) else None),
        ),
    )


ALL = (
    "SELECT id, f IN (SELECT g FROM w WHERE g IS NOT NULL) AS a, "
    "EXISTS (SELECT 1 FROM w AS w2 WHERE w2.g = w.f) AS b, "
    "(SELECT COUNT(*) FROM w AS w2 WHERE w2.f = w.f) AS n FROM w"
)
"""Several at once, for one row at a time."""
EVERY = [(i, contained(f, [*KNOWN]), bool(equal(f, G)), len(equal(f, F))) for i, f in F.items()]


def environment(folder: Path, kind: str, **options: str) -> TableEnvironment:
    (folder / "log.csv").write_text(LOG)
    made = new_session(parallelism__default="2", **options)
    made.execute_sql(
        "CREATE TABLE log (id INT, f DOUBLE, g DOUBLE) WITH ('connector' = 'filesystem', "
        f"'path' = '{folder}/log.csv', 'format' = 'csv', 'csv.null-literal' = '')"
    )
    last = "SELECT id, LAST_VALUE(f) AS f, LAST_VALUE(g) AS g FROM log GROUP BY id"
    if options.get("execution__runtime_mode") == "batch":
        rows = ", ".join(f"({i}, {shown(F[i])}, {shown(G[i])})" for i in F)
        last = f"SELECT * FROM (VALUES {rows}) AS t(id, f, g)"
    f, g = (KINDS[kind].format(name) for name in "fg")
    made.execute_sql(f"CREATE VIEW w AS SELECT id, {f} AS f, {g} AS g FROM ({last})")
    return made


def shown(value: float | None) -> str:
    if value is None:
        return "CAST(NULL AS DOUBLE)"
    return f"CAST('{'NaN' if math.isnan(value) else value}' AS DOUBLE)"


def answer(session: TableEnvironment, query: str) -> list[tuple[Any, ...]]:
    result = session.execute_sql(query)
    return sorted(folded(result.fields, result.changes()), key=lambda row: row[0])


@pytest.mark.one_case
@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_of_doubles(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    session = environment(tmp_path, "double", execution__runtime_mode=mode)
    asked = dict(sampled((*MARKS, *counted(equal))))
    assert {query: answer(session, query) for query in asked} == asked


@pytest.mark.one_case
@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_what_not_in_reads_is_kept_for_both_zeros(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    """One NULL is looked for, or looked through, once for each outer value."""
    session = environment(tmp_path, "double", execution__runtime_mode=mode)
    others = "FROM w AS w2 WHERE w2.id NOT IN (SELECT w3.id FROM w AS w3 WHERE w3.f"
    looked_for = f"SELECT id FROM w WHERE NULLIF(id, 2) NOT IN (SELECT w2.id + 10 {others} > w.f))"
    assert answer(session, looked_for) == [(1,), (3,), (4,), (5,), (6,)]
    looked_through = f"SELECT id FROM w WHERE id + 10 NOT IN (SELECT NULLIF(w2.id, 5) {others} = w.f + 9))"
    assert answer(session, looked_through) == []


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["streaming", "batch"])
@pytest.mark.parametrize("kind", ["float", "row", "nested"])
def test_of_other_kinds(spark: SparkSession, tmp_path: Path, kind: str, mode: str) -> None:
    session = environment(tmp_path, kind, execution__runtime_mode=mode)
    asked = dict((*counted(equal)[:5], *MARKS[:2]) if kind == "float" else counted(equal_in_rows)[:5])
    assert {query: answer(session, query) for query in asked} == asked


@pytest.mark.thorough
@pytest.mark.parametrize("most", ["1", "2"])
def test_row_by_row(spark: SparkSession, tmp_path: Path, most: str) -> None:
    session = environment(tmp_path, "double", tidemill__epoch__max_rows=most)
    assert answer(session, ALL) == EVERY


@pytest.mark.one_case
@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_the_value_that_is_shown(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    """The outer row's own, and a group's own within the sub-query."""
    session = environment(tmp_path, "double", execution__runtime_mode=mode)
    query = "SELECT id, f, f IN (SELECT -f FROM w) AS b FROM w WHERE id < 3"
    assert str(answer(session, query)) == "[(1, 0.0, True), (2, -0.0, True)]"
    distinct = (
        "SELECT w.id, b.f, b.n FROM w JOIN LATERAL "
        "(SELECT w2.f, COUNT(*) AS n FROM w AS w2 WHERE w2.f = w.f GROUP BY w2.f) AS b ON TRUE WHERE id = 1"
    )
    assert sorted(map(str, answer(session, distinct))) == ["(1, -0.0, 1)", "(1, 0.0, 1)"]
