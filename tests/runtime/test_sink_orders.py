"""An upsert sink whose primary key is not the query's upsert key ends right, whatever the order of changes.

The example: ``t1`` joins ``s1`` with ``s2`` by ``s1.level = s2.id``; a row of ``s1`` moves from level 10 to
level 20, so its old and its new result come out of different partitions of the join.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.runtime.databases import (
    created,
    debezium_table,
    deleted,
    drop_file,
    jdbc_table,
    query,
    updated,
)
from tests.runtime.running import Session
from tidemill.errors import ExecutionError

INSERT = "INSERT INTO t1 SELECT s1.*, s2.attr FROM s1 JOIN s2 ON s1.level = s2.id"
S1 = "id INT, level INT, PRIMARY KEY (id) NOT ENFORCED"
S2 = "id INT, attr STRING, PRIMARY KEY (id) NOT ENFORCED"
T1 = "id INT, level INT, attr STRING, PRIMARY KEY (id) NOT ENFORCED"

Step = dict[str, list[str]]


def a1(n: int) -> str:
    return created(id=10 + n, attr="a1")


def b1(n: int) -> str:
    return created(id=20 + n, attr="b1")


def old(n: int) -> dict[str, Any]:
    return {"id": n, "level": 10 + n}


def new(n: int) -> dict[str, Any]:
    return {"id": n, "level": 20 + n}


def moved(n: int) -> str:
    return updated(old(n), **new(n))


# What arrives in which epoch. Each order has keys of its own, so that one job runs them all at once.
ORDERS: dict[str, list[Step]] = {
    "in one epoch": [{"s1": [created(**old(0)), moved(0)], "s2": [a1(0), b1(0)]}],
    "one by one": [{"s2": [a1(1), b1(1)]}, {"s1": [created(**old(1))]}, {"s1": [moved(1)]}],
    "s2 late": [{"s1": [created(**old(2)), moved(2)]}, {"s2": [a1(2)]}, {"s2": [b1(2)]}],
    "s2 in between": [{"s1": [created(**old(3))], "s2": [b1(3)]}, {"s1": [moved(3)]}, {"s2": [a1(3)]}],
    "torn": [
        {"s1": [created(**old(4))], "s2": [a1(4), b1(4)]},
        {"s1": [deleted(**old(4))]},
        {"s1": [created(**new(4))]},
    ],
}
# The new row overtakes the end of the old one: only a sink that keeps rows can tell them apart.
OVERTAKEN: list[Step] = [
    {"s1": [created(**old(5))], "s2": [a1(5), b1(5)]},
    {"s1": [created(**new(5))]},
    {"s1": [deleted(**old(5))]},
]


@pytest.mark.one_case
@pytest.mark.parametrize("materialize", ["AUTO", "NONE", "FORCE"])
def test_every_order_ends_the_same(
    spark: SparkSession, database: str, tmp_path: Path, materialize: str
) -> None:
    query(database, "CREATE TABLE t1 (id INT PRIMARY KEY, level INT, attr VARCHAR(9))")
    orders = [*ORDERS.values()] + ([] if materialize == "NONE" else [OVERTAKEN])
    for number in range(3):
        steps = [order[number] for order in orders if number < len(order)]
        for name in ("s1", "s2"):
            arrived = [m for step in steps for m in step.get(name, [])]
            drop_file(tmp_path / name, f"{number}.json", arrived)
        run(database, tmp_path, materialize)
        if number == 0:
            early = [(0, 20, "b1"), (4, 14, "a1"), (5, 15, "a1")]
            assert query(database, "SELECT * FROM t1 ORDER BY id") == early[: len(orders) - 3]
    expected = [(n, 20 + n, "b1") for n in range(len(orders))]
    assert query(database, "SELECT * FROM t1 ORDER BY id") == expected


def run(url: str, folder: Path, materialize: str) -> Session:
    """Everything that is there, going on where the last run stopped."""
    session = Session(
        {
            "execution.checkpointing.dir": str(folder / "checkpoint"),
            "table.exec.sink.upsert-materialize": materialize,
        }
    )
    session.execute(
        debezium_table("s1", S1, folder / "s1"),
        debezium_table("s2", S2, folder / "s2"),
        jdbc_table("t1", T1, url),
        INSERT,
    )
    return session


@pytest.mark.thorough
def test_the_materialiser_keeps_rows_not_history(spark: SparkSession, tmp_path: Path) -> None:
    url, keys, rounds = f"jdbc:sqlite:{tmp_path}/x.db", 20, 30
    query(url, "CREATE TABLE t (k INT PRIMARY KEY, v INT)")
    messages = [created(k=k, v=0) for k in range(keys)]
    for n in range(1, rounds):
        messages += [updated({"k": k, "v": n - 1}, v=n) for k in range(keys)]
    drop_file(tmp_path / "in", "a.json", messages)
    session = Session(
        {
            "execution.checkpointing.dir": str(tmp_path / "checkpoint"),
            "table.exec.sink.upsert-materialize": "FORCE",
            "tidemill.epoch.max-rows": str(3 * keys),
        }
    )
    session.execute(
        debezium_table("src", "k INT, v INT", tmp_path / "in"),
        jdbc_table("t", "k INT, v INT, PRIMARY KEY (k) NOT ENFORCED", url),
        "INSERT INTO t SELECT k, v FROM src",
    )
    assert len(session.progress) == rounds // 3
    assert query(url, "SELECT * FROM t ORDER BY k") == [(k, rounds - 1) for k in range(keys)]
    assert rows_in_state(tmp_path / "checkpoint" / "state", "sink-materialize") <= 3 * keys


def rows_in_state(root: Path, operator: str) -> int:
    """Rows in all runs that an operator's newest manifests name, superseded ones included."""
    found = sorted(root.glob(f"{operator}-*/*/*.manifest.json"))
    assert found
    return sum(_rows(json.loads(path.read_bytes())) for path in found)


def _rows(manifest: dict[str, Any]) -> int:
    layers = [layer for table in manifest["tables"].values() for layer in table["layers"]]
    return sum(run["stop"] - run["start"] for layer in layers for run in layer)


MEETING = [
    created(id=10, k=1, v="a"),
    created(id=11, k=1, v="b"),
    created(id=12, k=2, v="x"),
    updated({"id": 12, "k": 2, "v": "x"}, v="y"),
    deleted(id=10, k=1, v="a"),
    created(id=13, k=1, v="c"),
]


def meeting(tmp_path: Path, action: str, messages: list[str]) -> list[tuple[Any, ...]]:
    """The sink after each message was an epoch of its own."""
    url = f"jdbc:sqlite:{tmp_path}/x.db"
    query(url, "CREATE TABLE t (k INT PRIMARY KEY, v TEXT)")
    session = Session({"tidemill.epoch.max-rows": "1"})
    drop_file(tmp_path / "in", "a.json", messages)
    timed = "id INT, k INT, v STRING, ts AS TO_TIMESTAMP_LTZ(k, 3), WATERMARK FOR ts AS ts"
    session.execute(
        debezium_table("src", timed, tmp_path / "in"),
        jdbc_table("t", "k INT, v STRING, PRIMARY KEY (k) NOT ENFORCED", url),
        f"INSERT INTO t SELECT k, v FROM src ON CONFLICT DO {action}",
    )
    return query(url, "SELECT * FROM t ORDER BY k")


def test_rows_that_meet_under_a_key(spark: SparkSession, tmp_path: Path) -> None:
    for number, shown in ((4, "a"), (5, "b"), (6, "b")):
        folder = tmp_path / str(number)
        folder.mkdir()
        rows = dict(meeting(folder, "NOTHING", MEETING[:number]))
        assert rows[1] == shown
    assert rows == {1: "b", 2: "y"}
    last = tmp_path / "last"
    last.mkdir()
    assert meeting(last, "DEDUPLICATE", MEETING) == [(1, "c"), (2, "y")]


def test_rows_that_must_not_meet(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ExecutionError, match=r"Conflicting key: \[k=1\]"):
        meeting(tmp_path, "ERROR", MEETING)
    assert query(f"jdbc:sqlite:{tmp_path}/x.db", "SELECT * FROM t") == [(1, "a")]
    apart = tmp_path / "apart"
    apart.mkdir()
    alone = [MEETING[0], MEETING[4], MEETING[1], *MEETING[2:4]]
    assert meeting(apart, "ERROR", alone) == [(1, "b"), (2, "y")]


MET: dict[str, tuple[str, str]] = {
    "key groups": ("true", "SELECT DISTINCT k, v FROM src"),
    "key groups, row by row": ("false", "SELECT DISTINCT k, v FROM src"),
    "branches": (
        "true",
        "SELECT k, v FROM src WHERE v % 2 = 1 UNION ALL SELECT k, v FROM src WHERE v % 2 = 0",
    ),
    "first rows": (
        "true",
        "SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY v ORDER BY PROCTIME()) AS n FROM src) "
        "WHERE n = 1",
    ),
}


@pytest.mark.parametrize("name", MET)
def test_the_last_of_rows_that_only_come_stays(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """Rows of one primary key come out of several tasks in an epoch, as Flink's would one after the other."""
    mini_batch, select = MET[name]
    url = f"jdbc:sqlite:{tmp_path}/x.db"
    query(url, "CREATE TABLE t (k INT PRIMARY KEY, v INT)")
    rows = [(k, 50 * k + (7 * n) % 50) for n in range(20) for k in range(10)]
    drop_file(tmp_path / "in", "a.json", [json.dumps({"k": k, "v": v}) for k, v in rows])
    session = Session({"table.exec.mini-batch.enabled": mini_batch, "parallelism.default": "4"})
    session.execute(
        f"CREATE TABLE src (k INT, v INT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/in', "
        "'format' = 'json')",
        jdbc_table("t", "k INT, v INT, PRIMARY KEY (k) NOT ENFORCED", url),
        f"INSERT INTO t {select}",
    )
    assert query(url, "SELECT * FROM t ORDER BY k") == [(k, 50 * k + 33) for k in range(10)]


CAME = [(k, g, 100 - 7 * n % 40) for n, (k, g) in enumerate(zip("abcabcabbaca", "xyzzyxxxyzyx", strict=True))]
"""(k, g, v); the time of a row is its place, but for two rows that change places."""
TIMES = [1, 2, 4, 3, 5, 6, 8, 7, 9, 10, 12, 11]
DIM = [("x", "p"), ("y", "q"), ("x", "r"), ("z", "s"), ("y", "m")]
OTHER_KEYS = {
    "joined": "SELECT src.k, src.g, dim.w FROM src JOIN dim ON src.g = dim.g",
    "summed": "SELECT k, g, CAST(SUM(v) OVER (PARTITION BY g ORDER BY ts) AS STRING) FROM src",
    "grouped": "SELECT k, g, CAST(COUNT(*) AS STRING) FROM src GROUP BY k, g",
    "best": "SELECT k, g, CAST(v AS STRING) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k, g ORDER BY v) "
    "AS n FROM src) WHERE n = 1",
    "two_of_a_group": "SELECT k, g, CAST(v AS STRING) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY g "
    "ORDER BY v DESC) AS n FROM src) WHERE n <= 2",
    "tumbling": "SELECT MAX(k), CAST(window_start AS STRING), g FROM TABLE(TUMBLE(TABLE src, DESCRIPTOR(ts), "
    "INTERVAL '3' SECOND)) GROUP BY window_start, window_end, g",
}


def last_of_others() -> dict[str, dict[str, tuple[str, str]]]:
    """What each sink ends with, row by row."""
    sums: dict[str, int] = {}
    found: dict[str, dict[str, tuple[str, str]]] = {name: {} for name in OTHER_KEYS}
    for k, g, v in [row for _, row in sorted(zip(TIMES, CAME, strict=True))]:
        sums[g] = sums.get(g, 0) + v
        found["summed"][k] = (g, str(sums[g]))
    for place, (k, g, v) in enumerate(CAME):
        so_far = CAME[: place + 1]
        found["grouped"][k] = (g, str(sum((k, g) == row[:2] for row in so_far)))
        if v == min(row[2] for row in so_far if row[:2] == (k, g)):
            found["best"][k] = (g, str(v))
    found["joined"] = {
        k: max((g, w) for own, g, _ in CAME for other, w in DIM if (own, g) == (k, other)) for k in "abc"
    }
    return found


@pytest.mark.thorough
def test_who_wins_under_another_key_does_not_depend_on_epochs(spark: SparkSession, tmp_path: Path) -> None:
    drop_file(
        tmp_path / "src",
        "a.json",
        [
            json.dumps({"k": k, "g": g, "v": v, "ts": f"2024-01-01 00:00:{t:02}"})
            for (k, g, v), t in zip(CAME, TIMES, strict=True)
        ],
    )
    drop_file(tmp_path / "dim", "a.json", [json.dumps({"g": g, "w": w}) for g, w in DIM])
    runs = [(5, "true"), (100, "false")]
    answers = [others(tmp_path, rows, mini_batch) for rows, mini_batch in runs]
    expected = last_of_others()
    for name in ("joined", "summed", "grouped", "best"):
        assert answers[0][name] == expected[name], name
    for answer in answers[1:]:
        assert answer == answers[0]


def others(folder: Path, rows: int, mini_batch: str) -> dict[str, dict[str, tuple[str, str]]]:
    """The sinks of one job whose epochs have at most ``rows`` rows of a table."""
    url = f"jdbc:sqlite:{folder}/{rows}.db"
    session = Session(
        {
            "table.exec.mini-batch.enabled": mini_batch,
            "tidemill.epoch.max-rows": str(rows),
            "parallelism.default": "2",
        }
    )
    for name, columns in (
        ("src", "k STRING, g STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND"),
        ("dim", "g STRING, w STRING"),
    ):
        session.execute(
            f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'path' = '{folder}/{name}', "
            "'format' = 'json')"
        )
    for name in OTHER_KEYS:
        query(url, f"CREATE TABLE {name} (k TEXT PRIMARY KEY, g TEXT, v TEXT)")
        session.execute(jdbc_table(name, "k STRING, g STRING, v STRING, PRIMARY KEY (k) NOT ENFORCED", url))
    inserts = "".join(f"INSERT INTO {name} {select};\n" for name, select in OTHER_KEYS.items())
    session.execute(f"EXECUTE STATEMENT SET BEGIN {inserts} END")
    return {name: {k: (g, v) for k, g, v in query(url, f"SELECT * FROM {name}")} for name in OTHER_KEYS}
