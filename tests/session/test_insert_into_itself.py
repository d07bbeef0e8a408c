"""A job that writes into the table it reads reads what was there when it began, and ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import new_session

_ENDS_WITHIN = 120.0
_TABLES = [("", "csv"), ("PARTITIONED BY (d)", "json"), ("", "parquet")]


@pytest.mark.one_case
@pytest.mark.parametrize("mode", ["streaming", "batch"])
@pytest.mark.parametrize(
    ("partitions", "form"), [("", "csv"), ("PARTITIONED BY (d)", "json"), ("", "parquet")]
)
def test_its_own_rows_are_not_read(
    spark: SparkSession, tmp_path: Path, mode: str, partitions: str, form: str
) -> None:
    session = new_session(execution__runtime_mode=mode, tidemill__epoch__max_rows="1")
    session.execute_sql(
        f"CREATE TABLE t (x INT, d STRING) {partitions} "
        f"WITH ('connector'='filesystem', 'path'='{tmp_path}/t', 'format'='{form}')"
    )
    for statement in (
        "INSERT INTO t VALUES (1, 'u'), (2, 'v')",
        "INSERT INTO t SELECT x + 10, d FROM t",
        "INSERT INTO t SELECT a.x + 100, b.d FROM t AS a JOIN t AS b ON a.x = b.x",
    ):
        session.execute_sql(statement).wait(_ENDS_WITHIN)
    rows = sorted(tuple(row) for row in session.execute_sql("SELECT * FROM t").collect())
    first = [(1, "u"), (2, "v"), (11, "u"), (12, "v")]
    assert rows == [*first, *((x + 100, d) for x, d in first)]
