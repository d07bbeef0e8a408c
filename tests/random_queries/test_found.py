"""What random queries found once; each on so little data that its answer can be seen."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.random_queries.answers import Data, batch_answer, plain
from tests.runtime.running import Row, Session, folded
from tidemill.errors import NotSupportedError

DOUBLES = ", ".join(
    f"({n}, CAST('{text}' AS DOUBLE))" for n, text in enumerate(("0.0", "-0.0", "NaN", "NaN", "1.5"), 1)
)
FOUND: dict[str, tuple[str, list[Row]]] = {
    "a column that equals two of the other side": (
        "SELECT a.x, b.y FROM (VALUES (1), (2)) AS a (x) "
        "LEFT JOIN (VALUES (1, 1, 7), (2, 3, 8)) AS b (u, v, y) "
        "ON a.x = b.u AND a.x = b.v",
        [(1, 7), (2, None)],
    ),
    "two branches' rows of one place, counted and then ranked row by row": (
        "SELECT x FROM (SELECT * FROM (VALUES (1), (1)) AS a (x) INTERSECT ALL "
        "SELECT * FROM (VALUES (1), (1)) AS b (y)) ORDER BY x LIMIT 5",
        [(1,), (1,)],
    ),
    "a pair that may be in the query, under OR": (
        "SELECT x, z FROM (VALUES (1, 1), (1, CAST(NULL AS INT)), (2, 2)) AS a (x, z) "
        "WHERE ((x, z) IN (SELECT * FROM (VALUES (1, 1), (3, 3)) AS b (u, v))) IS NOT TRUE OR x = 7",
        [(1, None), (2, 2)],
    ),
    "NaN on both sides of one shared Top-N": (
        f"WITH t AS (SELECT x, d FROM (VALUES {DOUBLES}) AS a (x, d) ORDER BY d DESC, x LIMIT 3) "
        "SELECT a.x, b.x FROM t AS a RIGHT JOIN t AS b ON a.d = b.d",
        [(None, 3), (None, 4), (5, 5)],
    ),
    "two zeros have ranks of their own": (
        f"SELECT * FROM (SELECT d, x, DENSE_RANK() OVER (PARTITION BY d ORDER BY x) AS r "
        f"FROM (VALUES {DOUBLES}) AS a (x, d)) WHERE r <= 2",
        [(0.0, 1, 1), ("-0.0", 2, 1), ("NaN", 3, 1), ("NaN", 4, 2), (1.5, 5, 1)],
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", FOUND)
def test_the_stream_folds_to(spark: SparkSession, name: str) -> None:
    query, expected = FOUND[name]
    for mini_batch in ("true", "false"):
        session = Session({"parallelism.default": "1", "table.exec.mini-batch.enabled": mini_batch})
        assert folded([(kind, plain(row)) for kind, row in session.changes(query)]) == Counter(expected)


@pytest.mark.thorough
@pytest.mark.parametrize("name", FOUND)
def test_the_batch_gives(spark: SparkSession, tmp_path: Path, name: str) -> None:
    query, expected = FOUND[name]
    assert batch_answer(Data(folder=tmp_path, tables=()), query) == Counter(expected)


@pytest.mark.thorough
@pytest.mark.parametrize("direction", ["ASC", "DESC"])
@pytest.mark.parametrize("condition", [" WHERE r = 1", ""])
def test_the_time_of_arrival_does_not_order_rows_that_are_taken_back(
    spark: SparkSession, direction: str, condition: str
) -> None:
    query = (
        f"SELECT * FROM (SELECT n, ROW_NUMBER() OVER (ORDER BY PROCTIME() {direction}) AS r FROM "
        f"(SELECT x, COUNT(*) AS n FROM (VALUES (1), (1)) AS a (x) GROUP BY x)){condition}"
    )
    with pytest.raises(NotSupportedError, match="processing time"):
        Session({"parallelism.default": "1"}).changes(query)


ZEROS = """{"d": 0.0, "rt": "2024-01-01 00:00:00"}
{"d": -0.0, "rt": "2024-01-01 00:00:01"}
{"d": "NaN", "rt": "2024-01-01 00:00:00"}
{"d": "NaN", "rt": "2024-01-01 00:00:01"}
"""


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["streaming", "batch"])
@pytest.mark.parametrize("window", ["SESSION", "DYNAMIC_CUMULATE"])
def test_two_zeros_have_windows_of_their_own(
    spark: SparkSession, tmp_path: Path, window: str, mode: str
) -> None:
    (tmp_path / "zeros").write_text(ZEROS)
    session = Session({"parallelism.default": "1", "execution.runtime-mode": mode})
    session.execute(
        "CREATE TABLE zeros (d DOUBLE, rt TIMESTAMP(3), WATERMARK FOR rt AS rt) "
        f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/zeros', 'format' = 'json')"
    )
    sizes = "INTERVAL '1.5' SECOND" if window == "SESSION" else "INTERVAL '1' MINUTE, INTERVAL '2' MINUTE"
    shown = session.changes(
        f"SELECT d, SECOND(window_start), MAX(n) FROM (SELECT d, window_start, COUNT(*) AS n FROM {window}("
        f"TABLE zeros PARTITION BY d, DESCRIPTOR(rt), {sizes}) GROUP BY d, window_start, window_end) "
        "GROUP BY d, window_start"
    )
    starts = {"SESSION": 1, "DYNAMIC_CUMULATE": 0}
    assert folded([(kind, plain(row)) for kind, row in shown]) == Counter(
        [(0.0, 0, 1), ("-0.0", starts[window], 1), ("NaN", 0, 2)]
    )


@pytest.mark.one_case
@pytest.mark.parametrize("rows", ["100", "1"])
def test_what_two_branches_read_of_one_source_waits_alike(
    spark: SparkSession, tmp_path: Path, rows: str
) -> None:
    lines = [f'{{"n": {n}, "rt": "2024-01-01 00:00:{n:02}"}}\n' for n in range(4)]
    (tmp_path / "rows").write_text("".join(lines))
    session = Session({"parallelism.default": "1", "tidemill.epoch.max-rows": rows})
    session.execute(
        "CREATE TABLE t (n INT, rt TIMESTAMP(3), WATERMARK FOR rt AS rt - INTERVAL '0.001' SECOND) "
        f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/rows', 'format' = 'json')"
    )
    both = "(SELECT n, rt FROM t UNION ALL SELECT n + 10, rt FROM t UNION ALL SELECT n + 20, rt FROM t)"
    shown = session.changes(f"SELECT a.n, b.n FROM {both} AS a LEFT JOIN t AS b ON a.rt = b.rt")
    assert folded(shown) == Counter((branch + n, n) for branch in (0, 10, 20) for n in range(4))


def test_the_bucket_of_a_value_has_a_name_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    """What is counted is computed below, under a name of the kind that buckets have."""
    lines = [f'{{"n": {n}, "rt": "2024-01-01 00:00:01"}}\n' for n in (1, 2, 2)]
    (tmp_path / "rows").write_text("".join(lines))
    session = Session({"table.optimizer.distinct-agg.split.enabled": "true"})
    session.execute(
        "CREATE TABLE t (n INT, rt TIMESTAMP(3), WATERMARK FOR rt AS rt) "
        f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/rows', 'format' = 'json')"
    )
    shown = session.changes(
        "SELECT n, COUNT(DISTINCT NULLIF(n, 1)) FROM TUMBLE(TABLE t, DESCRIPTOR(rt), INTERVAL '5' SECOND) "
        "GROUP BY window_start, window_end, n"
    )
    assert folded(shown) == Counter([(1, 0), (2, 1)])
