"""Statements nested hundreds deep, from text to rows: Python's passes and Spark's threads have room."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tidemill.errors import NotSupportedError

TERMS = " + ".join(["v"] * 300)
DEEP = f"SELECT {TERMS} AS total FROM t WHERE {'NOT ' * 500} v > 1"


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_a_deep_statement_runs(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    (tmp_path / "t.csv").write_text("1\n2\n")
    session = new_session(execution__runtime_mode=mode)
    table = f"CREATE TABLE t (v INT) WITH ('connector'='filesystem', 'path'='{tmp_path}', 'format'='csv')"
    assert ask(session, table, DEEP) == [(600,)]


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_what_is_read_twice_twelve_levels_deep_runs(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    """As a tree these are four thousand readings of the table."""
    (tmp_path / "t.csv").write_text("1,5\n2,6\n3,5\n")
    session = new_session(execution__runtime_mode=mode)
    options = f"'connector'='filesystem', 'path'='{tmp_path}', 'format'='csv'"
    parts = ["c0 AS (SELECT id, v FROM t)"]
    parts += [
        f"c{i} AS (SELECT a.id, b.v + 1 AS v FROM c{i - 1} a JOIN "
        f"(SELECT v, MAX(id) AS id FROM c{i - 1} GROUP BY v) b ON a.id = b.id)"
        for i in range(1, 13)
    ]
    table = f"CREATE TABLE t (id INT, v INT) WITH ({options})"
    assert sorted(ask(session, table, f"WITH {', '.join(parts)} SELECT * FROM c12")) == [(2, 18), (3, 17)]


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_a_union_of_a_thousand_branches_runs(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    (tmp_path / "t.csv").write_text("1\n2\n")
    session = new_session(execution__runtime_mode=mode)
    table = f"CREATE TABLE t (v INT) WITH ('connector'='filesystem', 'path'='{tmp_path}', 'format'='csv')"
    forms = ("SELECT v + {} FROM t", "SELECT {}", "SELECT v FROM t WHERE v = {}")
    union = " UNION ALL ".join(forms[i % 3].format(i) for i in range(1000))
    (counted,) = ask(session, table, f"SELECT COUNT(*), SUM(x) FROM ({union}) AS u (x)")
    expected = [x for i in range(1000) for x in ([i + 1, i + 2], [i], [i] * (i in (1, 2)))[i % 3]]
    assert counted == (len(expected), sum(expected))


def test_explain_of_what_is_read_too_often_says_so() -> None:
    session = new_session()
    parts = [
        "c0 AS (SELECT 1 AS v)",
        *(f"c{i} AS (SELECT a.v FROM c{i - 1} a, c{i - 1} b)" for i in range(1, 40)),
    ]
    with pytest.raises(NotSupportedError, match=r"EXPLAIN of a plan of [0-9,]+ lines"):
        ask(session, f"EXPLAIN WITH {', '.join(parts)} SELECT * FROM c39")
