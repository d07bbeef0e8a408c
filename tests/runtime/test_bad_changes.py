"""Rows taken back that never came, keys that come twice, half files, a database that goes away."""

from __future__ import annotations

import gzip
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.connectors.postgres import Server, server
from tests.runtime.databases import created, debezium_table, deleted, drop_file, jdbc_table, query, updated
from tests.runtime.running import Row, Session, folded
from tidemill.errors import ConnectorError

COLUMNS = "k INT, v INT, s STRING"
NEVER = {"k": 1, "v": 10, "s": "x"}
UNSEEN = [
    deleted(**NEVER),
    updated({"k": 2, "v": 20, "s": "y"}, v=21, s="yy"),
    created(k=3, v=30, s="z"),
    created(k=3, v=31, s="zz"),
    deleted(k=9, v=90, s="q"),
    updated({"k": 3, "v": 99, "s": "none"}, v=32, s="w"),
]

# Flink 2.3's answers where it has one. What was never there takes nothing away and is shown nowhere.
LENIENT: list[tuple[str, str, str, dict[Row, int]]] = [
    (
        "aggregate, row by row",
        "false",
        "SELECT k, COUNT(*), SUM(v), MAX(v), MIN(s) FROM src GROUP BY k",
        {(2, 1, 21, 21, "yy"): 1, (3, 2, -6, 32, "w"): 1},
    ),
    (
        # As Flink's local and global phases do it, the two changes of k = 2 add up to none.
        "aggregate, net change",
        "true",
        "SELECT k, COUNT(*), SUM(v), MAX(v), MIN(s) FROM src GROUP BY k",
        {(3, 2, -6, 32, "w"): 1},
    ),
    ("DISTINCT", "false", "SELECT DISTINCT k FROM src", {(2,): 1, (3,): 1}),
    (
        "Top-N",
        "true",
        "SELECT k, v, s FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS n FROM src) "
        "WHERE n <= 2",
        {(2, 21, "yy"): 1, (3, 31, "zz"): 1, (3, 32, "w"): 1},
    ),
    (
        "deduplication",
        "true",
        "SELECT k, v, s FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS n FROM src) "
        "WHERE n = 1",
        {(2, 21, "yy"): 1, (3, 30, "z"): 1},
    ),
    (
        "OVER",
        "true",
        "SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY v) AS t FROM src",
        {(2, 21, 21): 1, (3, 30, 30): 1, (3, 31, 61): 1, (3, 32, 93): 1},
    ),
]


@pytest.mark.one_case
@pytest.mark.parametrize(
    ("mini_batch", "select", "expected"), [case[1:] for case in LENIENT], ids=[case[0] for case in LENIENT]
)
@pytest.mark.parametrize("cut", ["1000", "1"])
def test_rows_taken_back_that_never_came(
    spark: SparkSession,
    tmp_path: Path,
    mini_batch: str,
    select: str,
    expected: dict[Row, int],
    cut: str,
) -> None:
    drop_file(tmp_path / "in", "a.json", UNSEEN)
    session = Session({"table.exec.mini-batch.enabled": mini_batch, "tidemill.epoch.max-rows": cut})
    session.execute(debezium_table("src", COLUMNS, tmp_path / "in"))
    assert folded(session.changes(select)) == Counter(expected)


NORMALIZED = {(2, 21, "yy"): 1, (3, 32, "w"): 1}


@pytest.mark.parametrize(
    "select",
    [
        "SELECT k, v, s FROM src",
        "SELECT a.k, a.v, b.s FROM src a JOIN src b ON a.k = b.k",
        "SELECT a.k, a.v, b.s FROM src a LEFT JOIN src b ON a.k = b.k",
        "SELECT k, SUM(v), MAX(s) FROM src GROUP BY k",
    ],
)
def test_normalized_changes_have_no_ghosts(spark: SparkSession, tmp_path: Path, select: str) -> None:
    """By its primary key: a second insert is an update, a delete of nothing is nothing."""
    drop_file(tmp_path / "in", "a.json", UNSEEN)
    session = Session({"table.exec.source.cdc-events-duplicate": "true"})
    key = ", PRIMARY KEY (k) NOT ENFORCED"
    session.execute(debezium_table("src", COLUMNS + key, tmp_path / "in"))
    assert folded(session.changes(select)) == Counter(NORMALIZED)


LEAVING = [
    created(k=1, v=5),
    created(k=2, v=1),
    updated({"k": 1, "v": 5}, v=2),
    updated({"k": 1, "v": 2}, v=7),
    updated({"k": 1, "v": 7}, v=8),
    updated({"k": 2, "v": 1}, v=1),
    deleted(k=1, v=8),
    created(k=3, v=9),
    deleted(k=2, v=1),
]


@pytest.mark.one_case
@pytest.mark.parametrize("cut", ["1000", "1"])
@pytest.mark.parametrize("condition", ["v > 3", "v > 3 AND k < 100", "CAST(v AS STRING) > '3'"])
def test_an_update_that_leaves_a_filter_deletes(
    spark: SparkSession, tmp_path: Path, condition: str, cut: str
) -> None:
    """Flink's changelog: the condition is part of the normalization, so no -U stands without its +U."""
    drop_file(tmp_path / "in", "a.json", LEAVING)
    options = {"table.exec.source.cdc-events-duplicate": "true", "tidemill.epoch.max-rows": cut}
    session = Session({**options, "parallelism.default": "1"})
    session.execute(debezium_table("src", "k INT, v INT, PRIMARY KEY (k) NOT ENFORCED", tmp_path / "in"))
    assert session.changes(f"SELECT k, v FROM src WHERE {condition}") == [
        ("+I", (1, 5)),
        ("-D", (1, 5)),
        ("+I", (1, 7)),
        ("-U", (1, 7)),
        ("+U", (1, 8)),
        ("-D", (1, 8)),
        ("+I", (3, 9)),
    ]


@pytest.mark.one_case
@pytest.mark.parametrize("materialize", ["AUTO", "FORCE"])
@pytest.mark.parametrize("cut", ["1000", "1"])
def test_a_sink_takes_what_never_came(
    spark: SparkSession, database: str, tmp_path: Path, materialize: str, cut: str
) -> None:
    """A key that comes twice is replaced; where rows are kept, another row's end takes nothing away."""
    query(database, "CREATE TABLE t (k INT PRIMARY KEY, v INT, s VARCHAR(9))")
    drop_file(tmp_path / "in", "a.json", UNSEEN)
    session = Session({"table.exec.sink.upsert-materialize": materialize, "tidemill.epoch.max-rows": cut})
    session.execute(
        debezium_table("src", COLUMNS, tmp_path / "in"),
        jdbc_table("t", f"{COLUMNS}, PRIMARY KEY (k) NOT ENFORCED", database),
        "INSERT INTO t SELECT k, v, s FROM src",
    )
    assert query(database, "SELECT * FROM t ORDER BY k") == [(2, 21, "yy"), (3, 32, "w")]


def test_changes_of_a_key_keep_their_order_over_tasks(
    spark: SparkSession, database: str, tmp_path: Path
) -> None:
    """No exchange between source and sink: several tasks have changes of one key, the last one counts."""
    query(database, "CREATE TABLE t (k INT PRIMARY KEY, s VARCHAR(4000))")
    filler = [created(k=n, s="x" * 3000) for n in range(10, 300)]
    messages = [created(k=1, s="a"), created(k=2, s="a"), *filler]
    messages += [deleted(k=1, s="a"), updated({"k": 2, "s": "a"}, s="b")]
    drop_file(tmp_path / "in", "a.json", messages)
    session = Session({})
    columns = "k INT, s STRING, PRIMARY KEY (k) NOT ENFORCED"
    session.execute(
        debezium_table("src", columns, tmp_path / "in"),
        jdbc_table("t", columns, database),
        "INSERT INTO t SELECT k, s FROM src",
    )
    assert query(database, "SELECT * FROM t WHERE k < 10") == [(2, "b")]
    assert query(database, "SELECT COUNT(*) FROM t") == [(len(filler) + 1,)]


HALF = '{"op": "c", "before": null, "after": {"k": 3                ,'


@pytest.mark.parametrize("lenient", ["true", "false"])
def test_a_file_that_ends_in_the_middle_of_a_line(spark: SparkSession, tmp_path: Path, lenient: str) -> None:
    """Flink's answer: the half message is an error, or is left out. The error names its line, and keeps what
    was read before: corrected, the job goes on, but not where what it had read is another."""
    whole = [created(k=1, v=1, s="a"), created(k=2, v=2, s="b")]
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "a.json"
    path.write_text("\n".join([*whole, HALF]))
    statements = (
        debezium_table("src", COLUMNS, tmp_path / "in", **{"debezium-json.ignore-parse-errors": lenient}),
        jdbc_table("t", f"{COLUMNS}, PRIMARY KEY (k) NOT ENFORCED", f"jdbc:sqlite:{tmp_path}/x.db"),
        "INSERT INTO t SELECT k, v, s FROM src",
    )
    query(f"jdbc:sqlite:{tmp_path}/x.db", "CREATE TABLE t (k INT PRIMARY KEY, v INT, s TEXT)")
    options = {"execution.checkpointing.dir": str(tmp_path / "checkpoint"), "tidemill.epoch.max-rows": "1"}

    def content() -> list[Row]:
        return query(f"jdbc:sqlite:{tmp_path}/x.db", "SELECT k FROM t ORDER BY k")

    if lenient == "true":
        Session(options).execute(*statements)
        assert content() == [(1,), (2,)]
        return
    with pytest.raises(ConnectorError, match=r"Corrupt Debezium JSON message .*a\.json:3"):
        Session(options).execute(*statements)
    assert content() == [(1,), (2,)]
    path.write_text("\n".join([whole[0], created(k=9, v=9, s="z"), created(k=3, v=3, s="c")]))
    with pytest.raises(ConnectorError, match="has changed"):
        Session(options).execute(*statements)
    assert content() == [(1,), (2,)]
    path.write_text("\n".join([*whole, created(k=3, v=3, s="c")]))
    Session(options).execute(*statements)
    assert content() == [(1,), (2,), (3,)]


def test_half_a_gzip_file(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    path, data = tmp_path / "in" / "a.json.gz", gzip.compress(created(k=1, v=1, s="a").encode() * 99)
    path.write_bytes(data[: len(data) // 2])
    session = Session({})
    session.execute(debezium_table("src", COLUMNS, tmp_path / "in"))
    with pytest.raises(ConnectorError, match=r"a\.json\.gz: damaged gzip data"):
        session.changes("SELECT * FROM src")


STEPS = ("ran", "committed")


@pytest.mark.thorough
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.usefixtures("postgres")
def test_a_server_that_goes_away_and_comes_back(spark: SparkSession, tmp_path: Path, step: str) -> None:
    """In the second epoch, at each step of it; the job does not notice."""
    with server() as own:
        query(own.url, "CREATE TABLE t (k INT PRIMARY KEY, n BIGINT)")
        query(own.url, "CREATE TABLE log (k INT)")
        (tmp_path / "in.csv").write_text("".join(f"{n % 3}\n" for n in range(30)))
        restarts: list[threading.Thread] = []
        session = Session({"tidemill.epoch.max-rows": "10"}, restart_at(own, step, restarts))
        source = {"connector": "filesystem", "path": f"{tmp_path}/in.csv", "format": "csv"}
        given = ", ".join(f"'{k}' = '{v}'" for k, v in source.items())
        session.execute(
            f"CREATE TABLE src (k INT) WITH ({given})",
            jdbc_table("t", "k INT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED", own.url),
            jdbc_table("log", "k INT", own.url),
            "EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT k, COUNT(*) FROM src GROUP BY k; "
            "INSERT INTO log SELECT k FROM src; END",
        )
        assert len(restarts) == 1
        restarts[0].join(60)
        assert query(own.url, "SELECT * FROM t ORDER BY k") == [(0, 10), (1, 10), (2, 10)]
        assert query(own.url, "SELECT COUNT(*) FROM log") == [(30,)]
        assert query(own.url, "SELECT DISTINCT epoch FROM tidemill_epochs") == [(3,)]


def restart_at(own: Server, step: str, restarts: list[threading.Thread]) -> Callable[[str], None]:
    """A fault hook: at the second ``step`` the server stops, and starts again while the job goes on."""
    seen = Counter[str]()

    def fault(reached: str) -> None:
        seen[reached] += 1
        if reached == step and seen[reached] == 2:
            own.stop()
            restarts.append(threading.Thread(target=own.start))
            restarts[0].start()

    return fault
