"""Names of columns with dots and backticks, which Spark reads as paths unless they are quoted."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests import visible
from tests.session.environments import ask, new_session

COLUMNS = "`a.b` INT, `c``d` STRING, `p.q` STRING"
ROW = "`r.s` ROW<`x.y` INT, `z``w` STRING>"


@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_names_with_dots_and_backticks(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: str
) -> None:
    session = new_session(**{"execution__runtime_mode": mode, "parallelism__default": "2"})
    files = "WITH ('connector'='filesystem', 'path'='{}', 'format'='{}')"
    ask(
        session,
        "CREATE VIEW src AS SELECT * FROM (VALUES (1, 'x', 'p1'), (2, 'y', 'p2')) AS t(`a.b`, `c``d`, `p.q`)",
        f"CREATE TABLE printed ({COLUMNS}) WITH ('connector'='print')",
        f"CREATE TABLE nothing ({COLUMNS}) WITH ('connector'='blackhole')",
        f"CREATE TABLE parted ({COLUMNS}) PARTITIONED BY (`p.q`) {files.format(tmp_path / 'csv', 'csv')}",
        f"CREATE TABLE nested ({ROW}) {files.format(tmp_path / 'json', 'json')}",
    )
    for insert in (
        "INSERT INTO printed SELECT * FROM src",
        "INSERT INTO nothing SELECT * FROM src",
        "INSERT INTO parted SELECT * FROM src",
        "INSERT INTO nested SELECT CAST(ROW(`a.b`, `c``d`) AS ROW<`x.y` INT, `z``w` STRING>) FROM src",
    ):
        session.execute_sql(insert).wait()
    assert sorted(capsys.readouterr().out.splitlines()) == ["+I[1, x, p1]", "+I[2, y, p2]"]
    assert visible.lines(tmp_path / "csv" / "p.q=p2") == ["2,y"]
    assert ask(session, "SELECT `c``d`, `a.b` FROM parted WHERE `p.q` = 'p2'") == [("y", 2)]
    assert sorted(ask(session, "SELECT `r.s`.`x.y`, `r.s`.`z``w` FROM nested")) == [(1, "x"), (2, "y")]


def test_a_frame_with_nested_names_in_a_kernel_of_batch(spark: SparkSession) -> None:
    """OVER with a function that Spark has not, over rows that hold such a ROW."""
    session = new_session(execution__runtime_mode="batch")
    found = ask(
        session,
        "SELECT `r.s`.`x.y`, FIRST_VALUE(`a.b`) OVER (PARTITION BY `c``d` ORDER BY `a.b`) FROM "
        "(SELECT `a.b`, `c``d`, CAST(ROW(`a.b`, 'z') AS ROW<`x.y` INT, `z``w` STRING>) AS `r.s` "
        "FROM (VALUES (1, 'x'), (2, 'x')) AS t(`a.b`, `c``d`))",
    )
    assert sorted(found) == [(1, 1), (2, 1)]
