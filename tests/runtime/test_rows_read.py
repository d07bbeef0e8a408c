"""An epoch's rows are those that its sources gave, whoever reads them, and whatever is left of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.running import Session

ROWS = 120
BLACKHOLE = "CREATE TABLE {} (n BIGINT) WITH ('connector' = 'blackhole')"
QUERIES = {
    "few keys, counted before the exchange": "INSERT INTO a SELECT SUM(n) FROM t GROUP BY k",
    "filtered": "INSERT INTO a SELECT n FROM t WHERE n < 10",
    "computed by Spark": "INSERT INTO a SELECT CHAR_LENGTH(CAST(n AS STRING)) FROM t",
    "joined with itself": "INSERT INTO a SELECT COUNT(*) FROM t AS x JOIN t AS y ON x.n = y.n",
    "two readers": "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT SUM(n) FROM t GROUP BY k;"
    " INSERT INTO b SELECT n FROM t; END",
    "a union": "INSERT INTO a SELECT SUM(n) FROM (SELECT n FROM t UNION ALL SELECT -n FROM t) GROUP BY n",
    "a union by event time": "INSERT INTO a SELECT COUNT(*) FROM (SELECT * FROM t UNION ALL SELECT * FROM t)"
    " GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)",
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_rows_read(tmp_path: Path, spark: SparkSession, query: str) -> None:
    lines = (f"{n % 3},{n},2024-01-01 00:{n // 60:02}:{n % 60:02}\n" for n in range(ROWS))
    (tmp_path / "t.csv").write_text("".join(lines))
    made = Session({"tidemill.epoch.max-rows": "50", "parallelism.default": "2"})
    made.execute(
        "CREATE TABLE t (k INT, n BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)"
        f" WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{tmp_path / 't.csv'}')",
        BLACKHOLE.format("a"),
        BLACKHOLE.format("b"),
        query,
    )
    assert [p.rows_in for p in made.progress] == [50, 50, 20]
    for epoch in made.progress:
        read = [node.rows_in for key, node in epoch.nodes.items() if key.startswith("scan-")]
        assert sum(read) == epoch.rows_in
