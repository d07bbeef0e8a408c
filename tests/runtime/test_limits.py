"""A LIMIT over bounded sources ends the job when it is full."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests import visible
from tests.runtime.running import Session

FILES, LINES = 12, 50


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """``t`` has one column, a file for each epoch."""
    folder = tmp_path_factory.mktemp("limits")
    for number in range(FILES):
        lines = (str(number * LINES + line) for line in range(LINES))
        (folder / f"{number:02}.csv").write_text("\n".join(lines) + "\n")
    return f"CREATE TABLE t (v INT) WITH ('connector'='filesystem', 'path'='{folder}', 'format'='csv')"


@pytest.mark.one_case
@pytest.mark.parametrize(
    ("query", "rows", "epochs"),
    [
        ("SELECT v FROM t LIMIT 3", 3, 1),
        ("SELECT v FROM t LIMIT 60 OFFSET 20", 60, 2),
        ("SELECT COUNT(*) FROM (SELECT v FROM t LIMIT 70)", 1, 2),
        ("SELECT v FROM t WHERE v >= 120 LIMIT 3", 3, 3),
        ("(SELECT v FROM t LIMIT 3) UNION ALL (SELECT v FROM t WHERE v > 100 LIMIT 1)", 4, 3),
        ("SELECT v FROM t LIMIT 10000", FILES * LINES, FILES),
        ("SELECT v FROM t ORDER BY v DESC LIMIT 3", 3, FILES),
        ("SELECT COUNT(*) FROM t", 1, FILES),
    ],
)
def test_the_job_ends_with_the_epoch_that_fills_it(table: str, query: str, rows: int, epochs: int) -> None:
    session = Session({"tidemill.epoch.max-rows": str(LINES)})
    session.execute(table)
    answer = session.changes(query)
    weights = [1 if kind in ("+I", "+U") else -1 for kind, _ in answer]
    assert sum(weights) == rows
    assert len(session.progress) == epochs
    if query.endswith("LIMIT 3") and "WHERE" not in query and "ORDER" not in query:
        assert {row for _, row in answer} == {(0,), (1,), (2,)}


@pytest.mark.thorough
def test_a_limit_does_not_end_what_stands_beside_it(table: str, tmp_path: Path) -> None:
    session = Session({"tidemill.epoch.max-rows": str(LINES)})
    sinks = [
        f"CREATE TABLE s{i} (v INT) WITH ('connector'='filesystem', 'path'='{tmp_path}/s{i}', 'format'='csv')"
        for i in (0, 1)
    ]
    session.execute(
        table,
        *sinks,
        "EXECUTE STATEMENT SET BEGIN INSERT INTO s0 SELECT v FROM t LIMIT 3; "
        "INSERT INTO s1 SELECT v FROM t; END",
    )
    assert len(session.progress) == FILES
    found = [len(visible.lines(tmp_path / f"s{i}")) for i in (0, 1)]
    assert found == [3, FILES * LINES]


def test_the_first_epochs_of_a_limit_are_small(table: str, tmp_path: Path) -> None:
    line = "x" * 1000
    for number in range(8):
        (tmp_path / f"{number}.csv").write_text(f"{line}\n" * 1000)
    session = Session({})
    session.execute(
        f"CREATE TABLE w (v STRING) WITH ('connector'='filesystem', 'path'='{tmp_path}', 'format'='csv')"
    )
    assert len(session.changes("SELECT v FROM w LIMIT 3000")) == 3000
    assert len(session.progress) == 2
