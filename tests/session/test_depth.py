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


def test_explain_of_what_is_read_too_often_says_so() -> None:
    session = new_session()
    parts = [
        "c0 AS (SELECT 1 AS v)",
        *(f"c{i} AS (SELECT a.v FROM c{i - 1} a, c{i - 1} b)" for i in range(1, 40)),
    ]
    with pytest.raises(NotSupportedError, match=r"EXPLAIN of a plan of [0-9,]+ lines"):
        ask(session, f"EXPLAIN WITH {', '.join(parts)} SELECT * FROM c39")
