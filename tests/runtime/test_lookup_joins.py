"""FOR SYSTEM_TIME AS OF a processing time: rows with what a database says of their keys when they come."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.databases import created, deleted, query, updated
from tests.runtime.running import Row, Session, folded
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
        "CREATE TABLE tags (sku STRING, tag STRING, size INT) PARTITIONED BY (size) WITH ("
        f"'connector' = 'filesystem', 'format' = 'csv', 'path' = '{tmp_path}/tags')",
        "CREATE TABLE moves (id INT, sku STRING, qty INT) WITH ('connector' = 'filesystem',"
        f" 'format' = 'debezium-json', 'path' = '{tmp_path}/moves.json')",
        "CREATE TABLE numbers (sku STRING) WITH ('connector' = 'datagen', 'number-of-rows' = '1')",
    )
    return made


def rows_of(made: Session, query: str) -> list[Row]:
    changes = made.changes(query)
    assert {kind for kind, _ in changes} <= {"+I"}
    return sorted((row for _, row in changes), key=str)


JOIN = "FROM orders AS o JOIN goods FOR SYSTEM_TIME AS OF o.pt AS g ON o.sku = g.sku"


@pytest.mark.one_case
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


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_what_a_left_join_wants_beside_the_keys(tmp_path: Path, spark: SparkSession, mode: str) -> None:
    made = session(tmp_path, 4)
    made.execute(f"SET 'execution.runtime-mode' = '{mode}'")
    left = "SELECT id, n " + JOIN.replace("JOIN", "LEFT JOIN") + " AND price + qty > 6 AND g.n < 2"
    # b has two prices, of which 5 is asked for; a costs 10.
    assert rows_of(made, left) == [(1, 1), (2, None), (3, 1), (4, None), (5, None), (6, 1)]


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_files_are_asked_as_they_are(tmp_path: Path, spark: SparkSession, mode: str) -> None:
    made = session(tmp_path, 2)
    made.execute(f"SET 'execution.runtime-mode' = '{mode}'")
    for size, text in ((1, "a,red\nb,blue\n"), (2, "a,green\n")):
        folder = tmp_path / "tags" / f"size={size}"
        folder.mkdir(parents=True)
        (folder / "tags.csv").write_text(text)
    query = "SELECT id, tag, size " + JOIN.replace("goods FOR", "tags FOR")
    assert rows_of(made, query) == [
        (1, "green", 2), (1, "red", 1), (2, "blue", 1), (3, "green", 2), (3, "red", 1), (6, "blue", 1),
    ]  # fmt: skip
    (tmp_path / "tags" / "size=1" / "more.csv").write_text("zz,new\n")
    assert (4, "new", 1) in rows_of(made, query)


@pytest.mark.one_case
@pytest.mark.parametrize(("kind", "rows"), [("LEFT JOIN", 4), ("LEFT JOIN", 1), ("JOIN", 1)])
def test_a_row_goes_with_what_was_found_for_it(
    tmp_path: Path, spark: SparkSession, kind: str, rows: int
) -> None:
    """The table says something else, of other lengths, whenever it is asked."""
    made = session(tmp_path, rows)
    url = f"jdbc:sqlite:{tmp_path}/shop.db"
    query(url, "DROP TABLE goods")
    tries = " UNION ALL ".join(f"SELECT '{sku}' AS sku, {i} AS n" for sku in "ab" for i in range(3))
    query(url, f"CREATE VIEW goods AS SELECT sku, abs(random()) % 1000000 AS price, n FROM ({tries})"
          " WHERE random() > 0")  # fmt: skip
    lines = []
    for number, sku in enumerate("aabbab"):
        row = {"id": number, "sku": sku, "qty": number}
        lines += [created(**row), updated(row, sku="b"), updated(row | {"sku": "b"}, qty=-1)]
        lines += [] if number == 3 else [deleted(**row | {"sku": "b", "qty": -1})]
    (tmp_path / "moves.json").write_text("\n".join(lines) + "\n")
    made.execute("CREATE TEMPORARY VIEW stock AS SELECT *, PROCTIME() AS pt FROM moves")
    columns = "SELECT o.id, o.sku, o.qty, g.price, g.n FROM stock AS o"
    joined = f"{columns} {kind} goods FOR SYSTEM_TIME AS OF o.pt AS g ON o.sku = g.sku AND g.price <> qty"
    left = folded(made.changes(joined))
    assert {row[:3] for row in left} <= {(3, "b", -1)}
    assert kind == "JOIN" or left
    totals = folded(made.changes(f"SELECT COUNT(*), SUM(price) FROM ({joined})"))
    # What is left of an inner join may be nothing: a total of no rows is no row.
    assert sum(totals.values()) == 1 or (kind == "JOIN" and not totals)


@pytest.mark.thorough
def test_what_is_kept_between_epochs(tmp_path: Path, spark: SparkSession) -> None:
    made = session(tmp_path, 1)
    (tmp_path / "orders.csv").write_text("".join(f"{i},a,1,2024-05-01 00:00:00\n" for i in range(12)))
    for kept, most in (("NONE", 12), ("PARTIAL", 8), ("FULL", 8)):
        made.progress.clear()
        hint = f"OPTIONS('lookup.cache'='{kept}', 'lookup.full-cache.periodic-reload.interval'='1 h')"
        found = rows_of(made, f"SELECT id {JOIN.replace('goods FOR', f'goods /*+ {hint} */ FOR')}")
        assert len(found) == 12
        requests = sum(p.requests for p in made.progress)
        # Once in each of Spark's Python processes.
        assert 0 < requests <= most
        assert kept != "NONE" or requests == 12


def test_keys_without_rows_are_asked_for_again(tmp_path: Path, spark: SparkSession) -> None:
    made = session(tmp_path)
    retry = "'retry-predicate'='lookup_miss', 'retry-strategy'='fixed_delay', 'fixed-delay'='1 ms'"
    hint = f"/*+ LOOKUP('table'='g', {retry}, 'max-attempts'='4') */"
    assert len(rows_of(made, f"SELECT {hint} id {JOIN}")) == 6
    assert sum(p.requests for p in made.progress) == 5


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
        (
            JOIN.replace("orders", "(SELECT *, PROCTIME() AS pt FROM moves)") + " AND price > RAND()",
            NotSupportedError,
            "RAND in a lookup join's condition over rows that can be taken back",
        ),
        (JOIN.replace("goods FOR", "numbers FOR"), NotSupportedError, "'datagen' cannot be asked by key"),
        (JOIN.replace("goods FOR", "moves FOR"), NotSupportedError, "is a changelog"),
        (
            JOIN.replace("goods FOR", "tags /*+ OPTIONS('lookup.cache'='PARTIAL') */ FOR"),
            NotSupportedError,
            "'PARTIAL' of table 'default_catalog.default_database.tags', which is read whole",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_asked(
    tmp_path: Path, spark: SparkSession, query: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        session(tmp_path).changes(f"SELECT 1 {query}")


def test_hints(tmp_path: Path, spark: SparkSession) -> None:
    made = session(tmp_path)
    hinted = "SELECT /*+ MINI_BATCH('allow-latency'='5s', 'size'='10000'), LOOKUP('table'='g') */ id "
    assert len(made.changes(hinted + JOIN)) == 6
    # Lookups are bundled within an epoch, where nothing else wants to be; five rows have a key.
    for size, requests in (("2", 3), ("5", 2), ("6", 1)):
        made.progress.clear()
        assert len(made.changes(f"SELECT /*+ MINI_BATCH('size'='{size}') */ id {JOIN}")) == 6
        assert [p.requests for p in made.progress] == [requests]
    # The hint is the bundle of an aggregation as well, and of a view's.
    for size, epochs in (("2", 3), ("5", 2)):
        made.progress.clear()
        counted = f"SELECT /*+ MINI_BATCH('size'='{size}') */ sku, COUNT(*) AS c FROM orders GROUP BY sku"
        made.execute(f"CREATE TEMPORARY VIEW counted{size} AS {counted}")
        changes = made.changes(f"SELECT SUM(c) FROM counted{size}")
        assert len(made.progress) == epochs
        assert len(changes) == 2 * epochs - 1
    for hint, error, message in (
        ("MINI_BATCH('size'='many')", ValidationError, "Invalid value of 'size' in hint MINI_BATCH"),
        ("MINI_BATCH('latency'='5s')", ValidationError, "Unknown option 'latency' of hint MINI_BATCH"),
        ("LOOKUP('table'='goods')", ValidationError, "`goods` in `LOOKUP`"),
        ("LOOKUP(g)", ValidationError, "only support key-value options"),
        ("LOOKUP('table'='g', 'retry-predicate'='lookup_miss')", ValidationError, "retry options can be"),
        ("LOOKUP('async'='true')", ValidationError, "incomplete required option"),
        ("LOOKUP('table'='g', 'capacity'='0')", ValidationError, "'0' of 'capacity': it must be greater"),
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
