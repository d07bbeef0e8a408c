"""FOR SYSTEM_TIME AS OF through a job: the same answer wherever epochs are cut, stopped and resumed."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests import visible
from tests.runtime.databases import created, deleted, jdbc_table, query, updated
from tests.runtime.running import Crash, Row, Session, crash_at, folded
from tests.tiers import sampled
from tidemill.errors import NotSupportedError, ValidationError

EPOCHS = (0, 1, 2, 5)
ORDERS = (
    (1, "a", 5),
    (2, "a", 12),
    (3, "b", 11),
    (4, "a", 30),
    # Behind the watermark (30 - 2): of a only the version of 20 is left, of b that of 10 still holds.
    (5, "a", 15),
    (6, "b", 15),
    (7, None, 31),
    (8, "c", 33),
    (9, "a", 34),
)
RATES = (
    ("c", "a", 1, 3),
    ("c", "b", 2, 10),
    ("u", "a", 2, 12),
    ("u", "a", 3, 20),
    # Behind the own watermark, but not behind that of the orders' delay.
    ("c", "c", 9, 19),
    ("d", "c", 9, 33),
    ("u", "a", 4, 40),
)


def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    orders, rates, history = (tmp_path / name for name in ("orders.csv", "rates.json", "history.csv"))
    if orders.exists():
        return orders, rates, history
    orders.write_text("".join(f"{i},{k or ''},{_time(t)}\n" for i, k, t in ORDERS))
    held: dict[str, dict[str, object]] = {}
    lines = []
    for op, key, rate, time in RATES:
        row = {"k": key, "rate": rate, "ts": _time(time)}
        before = {**held.get(key, {}), "ts": _time(time)} if op == "d" else held.get(key)
        lines.append(json.dumps({"before": before, "after": None if op == "d" else row, "op": op}))
        held[key] = row
    rates.write_text("\n".join(lines) + "\n")
    history.write_text("".join(f"{k},{r},{_time(t)}\n" for op, k, r, t in RATES if op != "d"))
    return orders, rates, history


def session(tmp_path: Path, rows: int, *, delay: int = 2, made: Session | None = None) -> Session:
    orders, rates, history = files(tmp_path)
    made = made or Session({"tidemill.epoch.max-rows": str(rows)} if rows else {})
    made.execute(
        "CREATE TABLE orders (id INT, k STRING, ts TIMESTAMP(3), "
        f"WATERMARK FOR ts AS ts - INTERVAL '{delay}' SECOND) WITH ('connector' = 'filesystem', "
        f"'path' = '{orders}', 'format' = 'csv', 'csv.null-literal' = '')",
        "CREATE TABLE rates (k STRING, rate INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts,"
        " PRIMARY KEY (k) NOT ENFORCED)"
        f" WITH ('connector' = 'filesystem', 'path' = '{rates}', 'format' = 'debezium-json',"
        " 'debezium-json.timestamp-format.standard' = 'SQL')",
        "CREATE TABLE history (k STRING, rate INT, ts TIMESTAMP(3),"
        " WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)"
        f" WITH ('connector' = 'filesystem', 'path' = '{history}', 'format' = 'csv')",
        "CREATE TEMPORARY VIEW latest AS SELECT k, rate, ts FROM (SELECT *, ROW_NUMBER() OVER"
        " (PARTITION BY k ORDER BY ts DESC) AS n FROM history) WHERE n = 1",
    )
    return made


def _time(second: int) -> str:
    return f"2024-05-01 00:00:{second:02d}"


def rows_of(made: Session, query: str) -> list[Row]:
    changes = made.changes(query)
    assert {kind for kind, _ in changes} <= {"+I"}
    return sorted((row for _, row in changes), key=str)


def by_id(made: Session, query: str) -> dict[int, int | None]:
    """The second column of rows by their first, which is one of a kind."""
    rows = rows_of(made, query)
    assert len({row[0] for row in rows}) == len(rows)
    return {row[0]: row[1] for row in rows}


LEFT = "SELECT id, rate FROM orders LEFT JOIN rates FOR SYSTEM_TIME AS OF orders.ts ON orders.k = rates.k"


@pytest.mark.parametrize("rows", EPOCHS)
def test_versions_of_a_table(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    made = session(tmp_path, rows)
    found = by_id(made, LEFT)
    assert found == {1: 1, 2: 2, 3: 2, 4: 3, 5: None, 6: 2, 7: None, 8: None, 9: 3}
    assert sum(p.late for p in made.progress) == 1


@pytest.mark.parametrize("rows", EPOCHS)
def test_the_slower_side_is_waited_for(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    """With a delay of a minute nothing is late, for either side."""
    found = by_id(session(tmp_path, rows, delay=60), LEFT)
    assert found == {1: 1, 2: 2, 3: 2, 4: 3, 5: 2, 6: 2, 7: None, 8: None, 9: 3}


@pytest.mark.parametrize("rows", EPOCHS)
def test_versions_of_a_view(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    made = session(tmp_path, rows, delay=60)
    query = "SELECT id, rate FROM orders AS o JOIN latest FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k"
    assert rows_of(made, query) == [(1, 1), (2, 2), (3, 2), (4, 3), (5, 2), (6, 2), (8, 9), (9, 3)]


@pytest.mark.parametrize("rows", EPOCHS)
def test_a_filtered_version_ends_the_one_before(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    made = session(tmp_path, rows, delay=60)
    made.execute("CREATE TEMPORARY VIEW odd AS SELECT k, rate * 10 AS ten, ts FROM latest WHERE rate <> 2")
    query = "SELECT id, ten FROM orders AS o LEFT JOIN odd FOR SYSTEM_TIME AS OF o.ts ON o.k = odd.k"
    found = by_id(made, query)
    assert found == {1: 10, 2: None, 3: None, 4: 30, 5: None, 6: None, 7: None, 8: 90, 9: 30}


@pytest.mark.parametrize("rows", EPOCHS)
def test_further_conditions_judge_the_version_that_holds(
    tmp_path: Path, spark: SparkSession, rows: int
) -> None:
    made = session(tmp_path, rows, delay=60)
    query = (
        "SELECT id, rate, r.ts FROM orders AS o LEFT JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r"
        " ON o.k = r.k AND CAST(o.id AS STRING) || 'x' <> CAST(rate AS STRING) || 'x' AND rate < 3"
    )
    found = by_id(made, query)
    assert found == {1: None, 2: None, 3: 2, 4: None, 5: 2, 6: 2, 7: None, 8: None, 9: None}


@pytest.mark.parametrize("rows", EPOCHS)
def test_more_than_the_key(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    """The version that holds must be equal in the other columns, too: no older one takes its place."""
    made = session(tmp_path, rows, delay=60)
    query = (
        "SELECT id, rate FROM (SELECT id, k, 2 AS two, ts FROM orders) AS o"
        " JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k AND o.two = r.rate"
    )
    assert rows_of(made, query) == [(2, 2), (3, 2), (5, 2), (6, 2)]


@pytest.mark.parametrize("rows", EPOCHS)
def test_two_joins_then_windows(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    made = session(tmp_path, rows)
    made.execute(
        "CREATE TEMPORARY VIEW j AS SELECT id, o.ts, r.rate, h.rate AS other FROM orders AS o"
        " LEFT JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k"
        " LEFT JOIN latest FOR SYSTEM_TIME AS OF o.ts AS h ON o.k = h.k"
    )
    found = rows_of(
        made,
        "SELECT EXTRACT(SECOND FROM window_end) AS e, COUNT(*) AS c, SUM(rate) AS a, SUM(other) AS b"
        " FROM TABLE(TUMBLE(TABLE j, DESCRIPTOR(ts), INTERVAL '10' SECOND))"
        " GROUP BY window_start, window_end",
    )
    # 5 and 6 are behind the watermark when they are joined, and late for their window.
    assert found == [(10, 1, 1, 1), (20, 2, 4, 4), (40, 4, 6, 15)]


MOVES = (
    created(id=1, k="a", ts=5),
    created(id=2, k="a", ts=12),
    updated({"id": 1, "k": "a", "ts": 5}, k="b"),
    created(id=3, k="b", ts=30),
    # Of what was shown for it, the version of 12, nobody knows any more.
    updated({"id": 2, "k": "a", "ts": 12}, ts=25),
    deleted(id=3, k="b", ts=30),
    updated({"id": 1, "k": "b", "ts": 5}, k="a", ts=31),
    created(id=4, k="c", ts=33),
    created(id=5, k="zz", ts=34),
)


@pytest.mark.one_case
@pytest.mark.parametrize(("rows", "delay"), [(0, 2), (1, 2), (3, 60)])
def test_rows_that_go_take_back_what_they_had(
    tmp_path: Path, spark: SparkSession, rows: int, delay: int
) -> None:
    made = session(tmp_path, rows, delay=delay)
    shop = f"jdbc:sqlite:{tmp_path}/shop.db"
    query(shop, "CREATE TABLE shown (id INTEGER PRIMARY KEY, rate INTEGER)")
    lines = [re.sub(r'"ts": (\d+)', lambda m: f'"ts": "{_time(int(m[1]))}"', line) for line in MOVES]
    (tmp_path / "moves.json").write_text("\n".join(lines) + "\n")
    made.execute(
        "CREATE TABLE moves (id INT, k STRING, ts TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED,"
        f" WATERMARK FOR ts AS ts - INTERVAL '{delay}' SECOND) WITH ('connector' = 'filesystem',"
        f" 'path' = '{tmp_path}/moves.json', 'format' = 'debezium-json',"
        " 'debezium-json.timestamp-format.standard' = 'SQL')",
        jdbc_table("shown", "id INT, rate INT, PRIMARY KEY (id) NOT ENFORCED", shop),
    )
    left = LEFT.replace("orders", "moves")
    assert folded(made.changes(left)) == Counter([(1, 3), (2, 3), (4, None), (5, None)])
    assert folded(made.changes(left.replace("LEFT", ""))) == Counter([(1, 3), (2, 3)])
    assert folded(made.changes(f"{left} AND rate + id > 4")) == Counter(
        [(1, None), (2, 3), (4, None), (5, None)]
    )
    made.execute(f"INSERT INTO shown {left}")
    assert sorted(query(shop, "SELECT * FROM shown")) == [(1, 3), (2, 3), (4, None), (5, None)]


@pytest.mark.one_case
@pytest.mark.parametrize("step", ["planned", "ran", "committed"])
def test_a_crash_changes_nothing(tmp_path: Path, spark: SparkSession, step: str) -> None:
    options = {"tidemill.epoch.max-rows": "2", "execution.checkpointing.dir": str(tmp_path / "checkpoint")}
    sink = (
        "CREATE TABLE shown (id INT, rate INT) WITH ('connector' = 'filesystem', 'format' = 'csv',"
        f" 'path' = '{tmp_path / 'out'}')"
    )
    insert = f"INSERT INTO shown {LEFT}"
    with pytest.raises(Crash):
        session(tmp_path, 0, made=Session(options, crash_at(step, 3))).execute(sink, insert)
    session(tmp_path, 0, made=Session(options)).execute(sink, insert)
    assert visible.lines(tmp_path / "out") == ["1,1", "2,2", "3,2", "4,3", "5,", "6,2", "7,", "8,", "9,3"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT 1 FROM orders o JOIN history FOR SYSTEM_TIME AS OF o.ts AS h ON o.k = h.k",
         "requires primary key in versioned table, but no primary key can be found"),
        ("SELECT 1 FROM orders o JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.id = r.rate",
         "primary key|no primary key"),
        ("SELECT r.k FROM orders o JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.id = r.rate",
         r"primary key \[k\] must be included in the equivalence condition"),
        ("SELECT 1 FROM orders o JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.k > r.k",
         "join key in Temporal Table Join can not be empty"),
        ("SELECT 1 FROM orders o JOIN rates FOR SYSTEM_TIME AS OF o.ts + INTERVAL '1' DAY AS r ON o.k = r.k",
         "only supports 'FOR SYSTEM_TIME AS OF' left table's time attribute field"),
        ("SELECT 1 FROM (SELECT k, ts + INTERVAL '1' DAY AS ts FROM orders) AS o"
         " JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k",
         "left table's time attribute field, but 'ts' is TIMESTAMP"),
    ],
)  # fmt: skip
def test_what_has_no_versions(tmp_path: Path, spark: SparkSession, query: str, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        session(tmp_path, 0).changes(query)


BATCH = {1: 1, 2: 2, 3: 2, 4: 3, 5: 2, 6: 2, 7: None, 8: 9, 9: 3}


@pytest.mark.one_case
@pytest.mark.parametrize(
    ("table", "rate", "expected"),
    [
        ("latest", "rate", BATCH),
        ("keyed", "rate", BATCH),
        ("odd", "ten", {i: None if r in (None, 2) else r * 10 for i, r in BATCH.items()}),
    ],
)
def test_batch(
    tmp_path: Path, spark: SparkSession, table: str, rate: str, expected: dict[int, int | None]
) -> None:
    """All versions count, whatever the view gives in the end."""
    made = session(tmp_path, 0, delay=60)
    made.execute(
        "CREATE TABLE keyed (k STRING, rate INT, ts TIMESTAMP(3), PRIMARY KEY (k) NOT ENFORCED,"
        " WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)"
        f" WITH ('connector' = 'filesystem', 'path' = '{tmp_path / 'history.csv'}', 'format' = 'csv')",
        "CREATE TEMPORARY VIEW odd AS SELECT k, rate * 10 AS ten, ts FROM latest WHERE rate <> 2",
    )
    query = f"SELECT id, {rate} FROM orders o LEFT JOIN {table} FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k"
    assert by_id(made, query) == expected
    made.execute("SET 'execution.runtime-mode' = 'batch'")
    assert by_id(made, query) == expected
    some = {i: r for i, r in expected.items() if r is not None and r + i > 12}
    inner = query.replace("LEFT JOIN", "JOIN") + f" AND {rate} + id > 12"
    assert by_id(made, inner) == some


TOP = (
    "SELECT k, rate, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {}) AS n FROM {})"
    " WHERE n = 1"
)
PER_TIME = "(SELECT k, ts, SUM(rate) AS rate FROM history GROUP BY k, ts)"
SHARED = "(SELECT k, ts, COUNT(DISTINCT rate) AS rate FROM history WHERE k IN ('a', 'b', 'c') GROUP BY k, ts)"
VIEWS: dict[str, tuple[str, dict[int, int | None]]] = {
    "the first by another column": (TOP.format("rate", "history"), {**BATCH, 2: 1, 3: 2, 4: 1, 5: 1, 9: 1}),
    "the last by two columns": (TOP.format("ts DESC, rate", "history"), BATCH),
    "the last of what is grouped": (TOP.format("ts DESC", PER_TIME), BATCH),
    "the last of values that keys would share": (
        TOP.format("ts DESC", SHARED),
        {i: None if rate is None else 1 for i, rate in BATCH.items()},
    ),
    "groups as of their latest row": (
        "SELECT k, COUNT(*) AS rate, MAX(ts) AS ts FROM history GROUP BY k",
        {**BATCH, 3: 1, 6: 1, 8: 1},
    ),
    "a filter over groups": (
        "SELECT k, c AS rate, ts FROM (SELECT k, COUNT(*) AS c, LAST_VALUE(ts) AS ts FROM history GROUP BY k)"
        " WHERE c <> 2",
        {**BATCH, 2: None, 3: 1, 5: None, 6: 1, 8: 1},
    ),
}


@pytest.mark.one_case
@pytest.mark.parametrize("rows", EPOCHS)
def test_versions_of_any_view(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    """Every change of the view is a version, also one that came and went in an epoch; in batch, too."""
    made = session(tmp_path, rows, delay=60)
    for name, (view, expected) in sampled(VIEWS.items()):
        query = f"WITH v AS ({view}) SELECT id, v.rate FROM orders o LEFT JOIN v FOR SYSTEM_TIME AS OF o.ts"
        assert by_id(made, f"{query} ON o.k = v.k") == expected, name
        if rows == 0:
            made.execute("SET 'execution.runtime-mode' = 'batch'")
            assert by_id(made, f"{query} ON o.k = v.k") == expected, name
            made.execute("SET 'execution.runtime-mode' = 'streaming'")


@pytest.mark.one_case
@pytest.mark.parametrize("rows", EPOCHS)
def test_versions_of_a_view_over_changes(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    """A row that is updated has not gone in between: what it was holds until the time of what it is."""
    made = session(tmp_path, rows, delay=60)
    join = "SELECT id, v.rate FROM orders o LEFT JOIN v FOR SYSTEM_TIME AS OF o.ts ON o.k = v.k"
    # The row of c that goes is not the one that came.
    assert by_id(made, f"WITH v AS ({TOP.format('ts DESC', 'rates')}) {join}") == BATCH
    expected = {**BATCH, 8: None}
    grouped = "SELECT k, SUM(rate) AS rate, MAX(ts) AS ts FROM rates GROUP BY k"
    assert by_id(made, f"WITH v AS ({grouped}) {join}") == expected
    made.execute("SET 'table.exec.source.cdc-events-duplicate' = 'true'")
    assert by_id(made, LEFT) == expected
    # Also in mini-batches every change of a table is a version.
    made.execute("SET 'table.exec.mini-batch.enabled' = 'true'")
    assert by_id(made, LEFT) == expected


def test_zeros_have_versions_of_their_own(tmp_path: Path, spark: SparkSession) -> None:
    """As in Flink; ``=`` takes the zeros for one, but a version is that of one key. NaN equals nothing."""
    rows = tmp_path / "rows.csv"
    rows.write_text("".join(f"{i},{k},{_time(5)}\n" for i, k in enumerate(("-0.0", "0.0", "NaN", "1.5"))))
    made = Session({})
    made.execute(
        "CREATE TABLE t (i INT, k DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '60' SECOND)"
        f" WITH ('connector' = 'filesystem', 'path' = '{rows}', 'format' = 'csv')",
        f"CREATE TEMPORARY VIEW v AS {TOP.format('ts DESC, k', 't').replace('rate', 'i')}",
    )
    joined = "SELECT t.i, v.i FROM t LEFT JOIN v FOR SYSTEM_TIME AS OF t.ts ON t.k = v.k"
    expected = Counter([(0, 0), (1, 1), (2, None), (3, 3)])
    assert Counter(row for _, row in made.changes(joined)) == expected
    made.execute("SET 'execution.runtime-mode' = 'batch'")
    assert Counter(row for _, row in made.changes(joined)) == expected


def test_outside_of_a_join(tmp_path: Path, spark: SparkSession) -> None:
    with pytest.raises(NotSupportedError, match="keep no versions"):
        session(tmp_path, 0).changes(
            "SELECT * FROM rates FOR SYSTEM_TIME AS OF TIMESTAMP '2024-05-01 00:00:00'"
        )


def test_the_left_side_alone_is_kept(tmp_path: Path, spark: SparkSession) -> None:
    with pytest.raises(NotSupportedError, match="A temporal join must be INNER or LEFT, not RightOuterJoin"):
        session(tmp_path, 0).changes(LEFT.replace("LEFT JOIN", "RIGHT JOIN"))


def test_a_comma_and_using(tmp_path: Path, spark: SparkSession) -> None:
    made = session(tmp_path, 0, delay=60)
    expected = [(1, 1), (2, 2), (3, 2), (4, 3), (5, 2), (6, 2), (9, 3)]
    assert (
        rows_of(made, LEFT.replace("LEFT JOIN", "JOIN").replace("ON orders.k = rates.k", "USING (k)"))
        == expected
    )
    comma = "SELECT id, rate FROM orders, rates FOR SYSTEM_TIME AS OF orders.ts WHERE orders.k = rates.k"
    assert rows_of(made, comma) == expected
