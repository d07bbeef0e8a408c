"""FOR SYSTEM_TIME AS OF a processing time: rows with what a database says of their keys when they come."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.databases import query
from tests.runtime.running import Row, Session
from tidemill.errors import ConnectorError, NotSupportedError, ValidationError

ORDERS = ((1, "a", 3), (2, "b", 1), (3, "a", 2), (4, "zz", 7), (5, None, 1), (6, "b", 9))


def session(tmp_path: Path, rows: int = 0) -> Session:
    url = f"jdbc:sqlite:{tmp_path}/shop.db"
    if not (tmp_path / "shop.db").exists():
        query(url, "CREATE TABLE goods (sku TEXT, price NUMERIC, n BIGINT)")
        query(url, "INSERT INTO goods VALUES ('a', 10, 1), ('b', 5, 1), ('b', 6, 2), ('c', 1, 1)")
    orders = tmp_path / "orders.csv"
    orders.write_text("".join(f"{i},{k or ''},{q},2024-05-01 00:00:{i:02d}\n" for i, k, q in ORDERS))
    made = Session({"tidemill.epoch.max-rows": str(rows)} if rows else {})
    made.execute(
        "CREATE TABLE orders (id INT, sku STRING, qty INT, ts TIMESTAMP(3), pt AS PROCTIME(),"
        " WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'format' = 'csv',"
        f" 'path' = '{orders}', 'csv.null-literal' = '')",
        "CREATE TABLE goods (sku STRING, price DECIMAL(8, 2), n BIGINT, PRIMARY KEY (sku, n) NOT ENFORCED)"
        f" WITH ('connector' = 'jdbc', 'url' = '{url}', 'table-name' = 'goods', 'lookup.max-retries' = '1')",
    )
    return made


def rows_of(made: Session, query: str) -> list[Row]:
    changes = made.changes(query)
    assert {kind for kind, _ in changes} <= {"+I"}
    return sorted((row for _, row in changes), key=str)


JOIN = "FROM orders AS o JOIN goods FOR SYSTEM_TIME AS OF o.pt AS g ON o.sku = g.sku"


@pytest.mark.parametrize("rows", [0, 1, 4])
def test_all_rows_of_a_key(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    made = session(tmp_path, rows)
    found = rows_of(made, f"SELECT id, o.sku, CAST(price * qty AS INT) AS v {JOIN}")
    assert found == [(1, "a", 30), (2, "b", 5), (2, "b", 6), (3, "a", 20), (6, "b", 45), (6, "b", 54)]
    assert sum(p.requests for p in made.progress) == len(made.progress) - (rows == 1)


@pytest.mark.parametrize("rows", [0, 1, 4])
def test_what_is_not_found_is_padded(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    left = "SELECT id, n " + JOIN.replace("JOIN", "LEFT JOIN") + " AND o.qty = g.n"
    # 9 and 7 are no numbers of b and zz.
    expected = [(1, None), (2, 1), (3, None), (4, None), (5, None), (6, None)]
    assert rows_of(session(tmp_path, rows), left) == expected


def test_further_conditions_then_windows(tmp_path: Path, spark: SparkSession) -> None:
    made = session(tmp_path, 2)
    made.execute(
        f"CREATE TEMPORARY VIEW j AS SELECT o.ts, o.id, price {JOIN} AND price + qty > 7 WHERE n < 2"
    )
    found = rows_of(
        made,
        "SELECT COUNT(*) AS c, SUM(id) AS s FROM TABLE(TUMBLE(TABLE j, DESCRIPTOR(ts), INTERVAL '1' MINUTE))"
        " GROUP BY window_start, window_end",
    )
    assert found == [(3, 1 + 3 + 6)]


def test_a_database_that_is_down_and_comes_back(tmp_path: Path, spark: SparkSession) -> None:
    made = session(tmp_path)
    moved = tmp_path / "moved.db"
    (tmp_path / "shop.db").rename(moved)
    with pytest.raises(ConnectorError, match="table 'goods'"):
        made.changes(f"SELECT id {JOIN}")
    (tmp_path / "shop.db").unlink(missing_ok=True)
    moved.rename(tmp_path / "shop.db")
    assert len(made.changes(f"SELECT id {JOIN}")) == 6


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        (JOIN.replace("o.sku = g.sku", "o.sku > g.sku"), ValidationError, "requires an equality condition"),
        (JOIN.replace("JOIN", "LEFT JOIN") + " AND price > qty", NotSupportedError, "beside the keys"),
        (JOIN.replace("goods FOR", "orders FOR"), NotSupportedError, "'filesystem' cannot be asked by key"),
        ("FROM (SELECT sku, COUNT(*) AS id, PROCTIME() AS pt FROM orders GROUP BY sku) AS o"
         " JOIN goods FOR SYSTEM_TIME AS OF o.pt AS g ON o.sku = g.sku", NotSupportedError, "taken back"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked(
    tmp_path: Path, spark: SparkSession, query: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        session(tmp_path).changes(f"SELECT 1 {query}")


def test_hints(tmp_path: Path, spark: SparkSession) -> None:
    made = session(tmp_path)
    hinted = "SELECT /*+ MINI_BATCH('allow-latency'='5s', 'size'='10000'), LOOKUP('table'='goods') */ id "
    assert len(made.changes(hinted + JOIN)) == 6
    for hint, error, message in (
        ("MINI_BATCH('size'='many')", ValidationError, "Invalid value of 'size' in hint MINI_BATCH"),
        ("MINI_BATCH('latency'='5s')", ValidationError, "Unknown option 'latency' of hint MINI_BATCH"),
        (
            "LOOKUP('table'='goods', 'retry-predicate'='lookup_miss')",
            NotSupportedError,
            "LOOKUP with a retry",
        ),
    ):
        with pytest.raises(error, match=message):
            made.changes(f"SELECT /*+ {hint} */ id {JOIN}")


def test_batch(tmp_path: Path, spark: SparkSession) -> None:
    made = session(tmp_path)
    made.execute("SET 'execution.runtime-mode' = 'batch'")
    assert rows_of(
        made, f"SELECT id, CAST(price * qty AS INT) AS v {JOIN} AND price + qty > 7 WHERE n < 2"
    ) == [
        (1, 30),
        (3, 20),
        (6, 45),
    ]
    left = "SELECT id, n " + JOIN.replace("JOIN", "LEFT JOIN") + " AND o.qty = g.n"
    assert rows_of(made, left) == [(1, None), (2, 1), (3, None), (4, None), (5, None), (6, None)]
