"""Answers of SQL's that Flink 2.3 gives otherwise: each has its line in the compatibility page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session

TEXTS = "(VALUES (' a '), ('1a'), ('a'), ('1.5'), (' 1 ')) AS t (x)"
FLOATS = "(SELECT CAST(x AS FLOAT) AS f FROM (VALUES ('0.1'), ('0.5')) AS a (x))"
DOUBLES = "(SELECT CAST(x AS DOUBLE) AS d FROM (VALUES ('0.1'), ('0.5')) AS b (x))"
BOTH: dict[str, list[tuple[object, ...]]] = {
    f"SELECT x, CAST(TRY_CAST(x AS DECIMAL(5, 1)) AS STRING) FROM {TEXTS}": [
        (" a ", None),
        ("1a", None),
        ("a", None),
        ("1.5", "1.5"),
        (" 1 ", "1.0"),
    ],
    f"SELECT d FROM {FLOATS} JOIN {DOUBLES} ON f = d": [(0.5,)],
    f"SELECT d FROM {FLOATS} CROSS JOIN {DOUBLES} WHERE f = d": [(0.5,)],
    "SELECT k, RANK() OVER (ORDER BY ts), DENSE_RANK() OVER (ORDER BY ts) FROM seen": [
        (1, 1, 1),
        (2, 1, 1),
        (3, 3, 2),
        (4, 3, 2),
    ],
    "SELECT k, c FROM seen CROSS JOIN LATERAL (SELECT COUNT(*) AS c FROM (VALUES (1), (1), (3)) AS o (g) "
    "WHERE o.g = seen.k)": [(1, 2), (2, 0), (3, 1), (4, 0)],
}
BATCH: dict[str, list[tuple[object, ...]]] = {
    "SELECT k, LAG(v, 1, 99) OVER (ORDER BY k), LEAD(v, 1, 99) OVER (ORDER BY k) FROM seen": [
        (1, 99, None),
        (2, 7, None),
        (3, None, 8),
        (4, None, 99),
    ],
}
SEEN = [(1, 7, 1), (2, None, 1), (3, None, 2), (4, 8, 2)]


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_answers(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    lines = [json.dumps({"k": k, "v": v, "ts": f"2024-01-01 00:00:0{s}"}) for k, v, s in SEEN]
    (tmp_path / "seen.json").write_text("\n".join(lines) + "\n")
    session = new_session(execution__runtime_mode=mode)
    session.execute_sql(
        "CREATE TABLE seen (k INT, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) "
        f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/seen.json', 'format' = 'json')"
    )
    for query, expected in (BOTH | (BATCH if mode == "batch" else {})).items():
        assert sorted(ask(session, query), key=repr) == sorted(expected, key=repr), query
