"""A user's accumulators are state: a job that crashed goes on from them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.running import Crash, Session, crash_at
from tests.runtime.test_recovery import options, written

ROWS = 20


def script(folder: Path) -> tuple[str, ...]:
    return (
        "CREATE FUNCTION wavg AS 'tests.user_functions.samples.WeightedAverage' LANGUAGE PYTHON",
        "CREATE FUNCTION total AS 'tests.user_functions.samples.Total' LANGUAGE PYTHON",
        "CREATE TABLE src (k INT, v BIGINT) "
        f"WITH ('connector'='filesystem', 'path'='{folder}/in', 'format'='csv')",
        "CREATE TABLE found (a DOUBLE, t BIGINT, PRIMARY KEY (t) NOT ENFORCED) "
        f"WITH ('connector'='filesystem', 'path'='{folder}/found', 'format'='debezium-json')",
        # The outer aggregation takes the inner one's results back.
        "INSERT INTO found SELECT wavg(t, n), total(t) FROM "
        "(SELECT k, total(v) AS t, COUNT(*) AS n FROM src GROUP BY k)",
    )


def test_a_crash_between_epochs_loses_no_accumulator(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("".join(f"{n % 3},{n}\n" for n in range(ROWS)))
    with pytest.raises(Crash):
        Session(options(tmp_path), crash_at("ran", 2)).execute(*script(tmp_path))
    Session(options(tmp_path)).execute(*script(tmp_path))
    groups = [range(k, ROWS, 3) for k in range(3)]
    average = sum(sum(g) * len(g) for g in groups) / sum(len(g) for g in groups)
    last = written(tmp_path, "found")
    assert sum(f'"after":{{"a":{average},"t":{sum(range(ROWS))}}}' in line for line in last) == 1
    assert len(last) == 5
