"""STATEMENT SETs that go on from a savepoint with a changed INSERT, on another number of partitions."""

from __future__ import annotations

import random
import sqlite3
import time
from collections import defaultdict
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask
from tidemill.errors import StateError
from tidemill.session.environment import TableEnvironment
from tidemill.session.jobs.job import JobHandle

SECONDS = 300.0
KEYS = 60
SINKS = {"sums": "k INT, s BIGINT, n BIGINT, m BIGINT", "sizes": "k INT, s BIGINT, n BIGINT, m BIGINT"}
TOP = (
    "INSERT INTO sizes SELECT MOD(k, 7) AS k, {} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY MOD(k, 7) "
    "ORDER BY v DESC) AS r FROM t) WHERE r = 1"
)
SUMS = "INSERT INTO sums (k, s) SELECT k, SUM(v) AS s FROM t GROUP BY k"
MORE = "INSERT INTO sums (k, s, n, m) SELECT k, SUM(v) AS s, COUNT(*) AS n, MAX(v) AS m FROM t GROUP BY k"
Rows = list[tuple[int, int]]


def session(folder: Path, checkpoint: str, parallelism: int, **more: str) -> TableEnvironment:
    made = TableEnvironment.create(
        {
            "parallelism.default": str(parallelism),
            "execution.checkpointing.dir": str(folder / checkpoint),
            **{key.replace("__", "."): value for key, value in more.items()},
        }
    )
    ask(
        made,
        f"CREATE TABLE t (k INT, v BIGINT) WITH ('connector'='filesystem', 'path'='{folder}/in', "
        "'format'='csv', 'source.monitor-interval'='100 ms')",
        *(
            f"CREATE TABLE {name} ({columns}, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector'='jdbc', "
            f"'url'='jdbc:sqlite:{folder}/db', 'table-name'='{name}')"
            for name, columns in SINKS.items()
        ),
    )
    return made


def started(made: TableEnvironment, *inserts: str) -> JobHandle:
    job = made.execute_sql(f"EXECUTE STATEMENT SET BEGIN {'; '.join(inserts)}; END").job
    assert job is not None
    return job


def put(folder: Path, name: str, rows: Rows) -> None:
    (folder / "in" / f".{name}").write_text("".join(f"{k},{v}\n" for k, v in rows))
    (folder / "in" / f".{name}").rename(folder / "in" / f"{name}.csv")


def shows(folder: Path, table: str, wanted: list[tuple[int | None, ...]]) -> None:
    end, got = time.monotonic() + SECONDS, None
    while got != wanted:
        assert time.monotonic() < end, (got, wanted)
        time.sleep(0.1)
        with sqlite3.connect(folder / "db") as db:
            got = db.execute(f"SELECT * FROM {table} ORDER BY k").fetchall()


def sums(before: Rows, after: Rows) -> list[tuple[int | None, ...]]:
    """What ``MORE`` shows of keys that had rows ``before`` it was there, and ``after``."""
    values, new = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for rows, found in ((before, values), (after, new)):
        for k, v in rows:
            found[k].append(v)
    return [
        (k, sum(values[k] + new[k]), len(new[k]) or None, max(new[k], default=None))
        for k in sorted({*values, *new})
    ]


def largest(rows: Rows, *, shown: Rows) -> list[tuple[int | None, ...]]:
    """What the Top-1 shows: its value, and its key where that came with the ``shown`` rows."""
    best = {g: max((v, k) for k, v in rows if k % 7 == g) for g in {k % 7 for k, _ in rows}}
    return [(g, v, k if (k, v) in shown else None, None) for g, (v, k) in sorted(best.items())]


def fresh(chance: random.Random, count: int, at: int) -> Rows:
    """Rows with values of their own."""
    return [(chance.randrange(KEYS), v) for v in chance.sample(range(at, at + 10 * count), count)]


@pytest.mark.thorough
def test_one_insert_changes_and_partitions_too(spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(5)
    (tmp_path / "in").mkdir()
    with sqlite3.connect(tmp_path / "db") as db:
        for name in SINKS:
            db.execute(f"CREATE TABLE {name} (k INTEGER PRIMARY KEY, s BIGINT, n BIGINT, m BIGINT)")
    values = TOP.format("v AS s, CAST(NULL AS BIGINT) AS n, CAST(NULL AS BIGINT) AS m")
    job = started(session(tmp_path, "first", 3), SUMS, values)
    before = fresh(chance, 150, 0)
    put(tmp_path, "a", before)
    shows(tmp_path, "sums", [(k, s, None, None) for k, s, *_ in sums(before, [])])
    shows(tmp_path, "sizes", largest(before, shown=[]))
    savepoint = job.stop_with_savepoint(str(tmp_path / "kept"))
    refused = session(tmp_path, "no", 2, **_from(savepoint))
    with pytest.raises(StateError, match="belongs to another query"):
        started(refused, SUMS, values.replace("MOD(k, 7)", "MOD(k, 8)"))
    # The INSERTs change places, one gets calls, and there are more partitions.
    job = started(session(tmp_path, "second", 7, **_from(savepoint)), values, MORE)
    after = fresh(chance, 40, 10_000)
    put(tmp_path, "b", after)
    shows(tmp_path, "sums", sums(before, after))
    shows(tmp_path, "sizes", largest(before + after, shown=[]))
    savepoint = job.stop_with_savepoint(str(tmp_path / "kept"))
    # The other one shows another column of the rows that it keeps, and there are fewer partitions.
    other = values.replace("CAST(NULL AS BIGINT) AS n", "CAST(k AS BIGINT) AS n")
    job = started(session(tmp_path, "third", 2, **_from(savepoint)), other, MORE)
    last = fresh(chance, 5, 0)
    put(tmp_path, "c", last)
    shows(tmp_path, "sums", sums(before, after + last))
    put(tmp_path, "d", [(7, 1 << 40)])
    last.append((7, 1 << 40))
    shows(tmp_path, "sizes", largest(before + after + last, shown=last))
    job.cancel()


def _from(savepoint: str) -> dict[str, str]:
    return {"execution__state-recovery__path": savepoint}
