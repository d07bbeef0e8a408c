"""What several INSERTs, a view read twice and a self-join share runs once, and the answers stay."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.runtime.running import Crash, Session, crash_at
from tests.visible import rows
from tidemill.connectors.filesystem.source import FileSource

ROWS = 40
EPOCHS = 2
COUNTS = "CREATE VIEW counts AS SELECT k, COUNT(*) AS n, MAX(v) AS m FROM a GROUP BY k"

CASES: dict[str, tuple[list[str], int]] = {
    "two inserts over two tables": (
        [
            "SELECT a.k AS x, COUNT(*) AS y FROM a JOIN b ON a.k = b.k GROUP BY a.k",
            "SELECT k AS x, SUM(v) AS y FROM a GROUP BY k",
            "SELECT j AS x, v + 1 AS y FROM b WHERE v > 3",
        ],
        3,
    ),
    "a view read by inserts with and without -U": (
        [
            "SELECT k AS x, n + m AS y FROM counts",
            "SELECT n AS x, SUM(k + m) AS y FROM counts GROUP BY n",
            "SELECT x, y FROM (SELECT k AS x, m AS y, ROW_NUMBER() OVER (PARTITION BY n ORDER BY m DESC, k) "
            "AS r FROM counts) WHERE r = 1",
        ],
        3,
    ),
    "self-joins": (
        [
            "SELECT l.v AS x, r.j AS y FROM a AS l JOIN a AS r ON l.k = r.k AND l.j < r.v",
            "SELECT l.n + l.m AS x, r.m - r.n AS y FROM counts AS l JOIN counts AS r ON l.k = r.k",
            "SELECT l.k + l.m AS x, r.k + r.n AS y FROM counts AS l LEFT JOIN counts AS r ON l.n = r.m",
            "SELECT l.v AS x, r.v AS y FROM (SELECT * FROM a WHERE v > 4) AS l JOIN "
            "(SELECT * FROM a WHERE v < 3) AS r ON l.k = r.k",
        ],
        5,
    ),
    "different columns of a view": (
        [
            "SELECT k AS x, n AS y FROM counts",
            "SELECT k AS x, m AS y FROM counts",
            "SELECT m AS x, COUNT(*) AS y FROM counts GROUP BY m",
            "SELECT k AS x, SUM(v + j) AS y FROM a GROUP BY k",
            "SELECT l.n AS x, r.m AS y FROM counts AS l JOIN counts AS r ON l.k = r.k",
        ],
        3,
    ),
    "arrival order for one of them": (
        [
            "SELECT k AS x, COUNT(*) AS y FROM a GROUP BY k",
            "SELECT j AS x, LAST_VALUE(n) AS y FROM (SELECT k, MAX(j) AS j, COUNT(*) AS n FROM a GROUP BY k) "
            "GROUP BY j",
            "SELECT k AS x, LAST_VALUE(v) AS y FROM a GROUP BY k",
        ],
        4,
    ),
}


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """a and b with columns k, j, v; the view of counts."""
    folder = tmp_path_factory.mktemp("sharing")
    chance = random.Random(5)
    statements = []
    for name in "ab":
        lines = [f"{chance.randint(0, 5)},{chance.randint(0, 2)},{chance.randint(0, 9)}" for _ in range(ROWS)]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
        statements.append(
            f"CREATE TABLE {name} (k BIGINT, j BIGINT, v BIGINT) "
            f"WITH ('connector'='filesystem', 'path'='{folder}/{name}.csv', 'format'='csv')"
        )
    return [*statements, COUNTS]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each table is read, over all epochs."""
    made: Counter[str] = Counter()
    plain = FileSource.read_tasks

    def counting(source: FileSource, *args: Any) -> Any:
        made[str(source.storage)] += 1
        return plain(source, *args)

    monkeypatch.setattr(FileSource, "read_tasks", counting)
    return made


def script(folder: Path, queries: list[str]) -> tuple[list[str], str]:
    """Sinks and the statement set that fills them."""
    sinks = [
        f"CREATE TABLE s{i} (x BIGINT, y BIGINT) "
        f"WITH ('connector'='filesystem', 'path'='{folder}/s{i}', 'format'='debezium-json')"
        for i in range(len(queries))
    ]
    inserts = "".join(f"INSERT INTO s{i} {query}; " for i, query in enumerate(queries))
    return sinks, f"EXECUTE STATEMENT SET BEGIN {inserts}END"


def batch_answers(tables: list[str], queries: list[str]) -> list[Counter[Any]]:
    batch = Session({"execution.runtime-mode": "batch"})
    batch.execute(*tables)
    return [Counter(row for _, row in batch.changes(query)) for query in queries]


ARRIVAL = "arrival order for one of them"


@pytest.mark.one_case
@pytest.mark.parametrize("case", [c for c in CASES if c != ARRIVAL])
def test_one_read_one_state_and_the_batch_answers(
    case: str, tables: list[str], reads: Counter[str], tmp_path: Path
) -> None:
    queries, operators = CASES[case]
    checkpoint = tmp_path / "checkpoint"
    session = Session(
        {
            "tidemill.epoch.max-rows": str(ROWS // EPOCHS),
            "execution.checkpointing.dir": str(checkpoint),
            "table.exec.mini-batch.enabled": "true",
        }
    )
    sinks, inserts = script(tmp_path, queries)
    session.execute(*tables, *sinks, inserts)
    assert len(session.progress) == EPOCHS
    assert set(reads.values()) == {EPOCHS}
    identity = json.loads((checkpoint / "job.json").read_text())
    assert len(identity["operators"]) == operators
    found = [rows(tmp_path / f"s{i}", "x", "y") for i in range(len(queries))]
    assert found == batch_answers(tables, queries)


@pytest.mark.thorough
def test_arrival_order_for_one_reader_changes_nothing_for_the_others(
    tables: list[str], reads: Counter[str], tmp_path: Path
) -> None:
    queries, _ = CASES[ARRIVAL]
    alone = []
    for number, query in enumerate(queries):
        session = Session({"tidemill.epoch.max-rows": str(ROWS // EPOCHS)})
        sinks, insert = script(tmp_path / f"alone{number}", [query])
        session.execute(*tables, *sinks, insert)
        alone.append(rows(tmp_path / f"alone{number}" / "s0", "x", "y"))
    reads.clear()
    session = Session({"tidemill.epoch.max-rows": str(ROWS // EPOCHS)})
    sinks, inserts = script(tmp_path, queries)
    session.execute(*tables, *sinks, inserts)
    assert set(reads.values()) == {EPOCHS}
    assert [rows(tmp_path / f"s{i}", "x", "y") for i in range(len(queries))] == alone


@pytest.mark.thorough
@pytest.mark.parametrize("step", ["ran", "committed"])
def test_a_crash_between_epochs_of_shared_operators(tables: list[str], tmp_path: Path, step: str) -> None:
    queries, _ = CASES["a view read by inserts with and without -U"]
    options = {
        "tidemill.epoch.max-rows": str(ROWS // 3),
        "execution.checkpointing.dir": str(tmp_path / "checkpoint"),
    }
    sinks, inserts = script(tmp_path, queries)
    with pytest.raises(Crash):
        Session(options, crash_at(step, 2)).execute(*tables, *sinks, inserts)
    Session(options).execute(*tables, *sinks, inserts)
    found = [rows(tmp_path / f"s{i}", "x", "y") for i in range(len(queries))]
    assert found == batch_answers(tables, queries)


@pytest.mark.thorough
def test_the_order_of_inserts_is_no_part_of_a_job(tables: list[str], tmp_path: Path) -> None:
    queries, _ = CASES["two inserts over two tables"]
    options = {
        "tidemill.epoch.max-rows": str(ROWS // 3),
        "execution.checkpointing.dir": str(tmp_path / "checkpoint"),
    }
    sinks, inserts = script(tmp_path, queries)
    with pytest.raises(Crash):
        Session(options, crash_at("committed", 2)).execute(*tables, *sinks, inserts)
    parts = inserts.removeprefix("EXECUTE STATEMENT SET BEGIN ").removesuffix("; END").split("; ")
    again = f"EXECUTE STATEMENT SET BEGIN {'; '.join(reversed(parts))}; END"
    Session(options).execute(*tables, *sinks, again)
    found = [rows(tmp_path / f"s{i}", "x", "y") for i in range(len(queries))]
    assert found == batch_answers(tables, queries)


def test_a_reader_gets_the_updates_of_its_own_columns_alone(tables: list[str]) -> None:
    """As if it had an aggregation of its own: where rows come one by one most leave the maximum as it is."""
    apart = [f"SELECT 1 AS b, k, {column} AS y FROM counts" for column in "nm"]
    session = Session({"table.exec.mini-batch.enabled": "false"})
    session.execute(*tables)
    alone = [Counter(session.changes(query)) for query in apart]
    assert alone[0].total() > alone[1].total()
    assert Counter(session.changes(" UNION ALL ".join(apart))) == alone[0] + alone[1]


def test_rows_in_order_of_time_for_one_of_two_readers(spark: SparkSession, tmp_path: Path) -> None:
    """The reader that comes first has no use for watermarks."""
    seconds = (5, 1, 3, 9, 7)
    path = tmp_path / "t.csv"
    path.write_text("".join(f"{s % 2},{s},2024-05-01 10:00:0{s}\n" for s in seconds))
    queries = [
        "SELECT k AS x, v AS y FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS p FROM "
        "few) WHERE p = 1",
        "SELECT v AS x, SUM(v) OVER (PARTITION BY k ORDER BY ts) AS y FROM few",
    ]
    sinks, inserts = script(tmp_path, queries)
    Session({}).execute(
        "CREATE TABLE t (k BIGINT, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '9' SECOND)"
        f" WITH ('connector'='filesystem', 'path'='{path}', 'format'='csv')",
        "CREATE VIEW few AS SELECT k, v, ts FROM t WHERE v > 1",
        *sinks,
        inserts,
    )
    assert rows(tmp_path / "s0", "x", "y") == Counter([(1, 9)])
    assert rows(tmp_path / "s1", "x", "y") == Counter([(3, 3), (5, 8), (7, 15), (9, 24)])
