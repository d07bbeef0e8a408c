"""A job that goes on with another parallelism: its state is spread anew, its answer is the same."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.running import Crash, Session, crash_at
from tests.visible import lines, rows

ROWS = 120
PARALLELISM = (2, 7, 1, 3)
INSERT = (
    "INSERT INTO totals SELECT n.name, COUNT(*), COUNT(DISTINCT o.v), SUM(o.v) "
    "FROM orders o JOIN names n ON o.k = n.k GROUP BY n.name"
)


def statements(folder: Path) -> tuple[str, ...]:
    def table(name: str, columns: str, form: str) -> str:
        options = f"'connector'='filesystem', 'path'='{folder}/{name}', 'format'='{form}'"
        return f"CREATE TABLE {name} ({columns}) WITH ({options})"

    return (
        table("orders", "k INT, v BIGINT", "csv"),
        table("names", "k INT, name STRING", "csv"),
        table("totals", "name STRING, c BIGINT, d BIGINT, s BIGINT", "debezium-json"),
    )


def totals(folder: Path) -> dict[str, tuple[int, int, int]]:
    found = rows(folder / "totals", "name", "c", "d", "s")
    assert len({name for name, *_ in found}) == found.total()
    return {name: (c, d, s) for name, c, d, s in found}


def test_state_is_spread_anew(spark: SparkSession, tmp_path: Path) -> None:
    orders = [(n % 30, n % 11) for n in range(ROWS)]
    for name, given in (
        ("orders", [f"{k},{v}" for k, v in orders]),
        ("names", [f"{k},n{k % 9}" for k in range(30)]),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.csv").write_text("".join(f"{line}\n" for line in given))
    run(tmp_path, *statements(tmp_path), INSERT)
    expected: dict[str, list[int]] = {}
    for k, v in orders:
        expected.setdefault(f"n{k % 9}", []).append(v)
    assert totals(tmp_path) == {n: (len(vs), len(set(vs)), sum(vs)) for n, vs in expected.items()}
    named = _named(tmp_path / "checkpoint")
    assert {str(f.relative_to(tmp_path / "checkpoint" / "state")) for f in _files(tmp_path)} == named


WITHIN = "a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL '5' SECOND AND a.ts + INTERVAL '9' SECOND"
NEAR = f"SELECT a.k, a.v, b.v FROM ticks a JOIN tocks b ON {WITHIN}"
SUMS = (
    "SELECT EXTRACT(SECOND FROM window_end) + 60 * EXTRACT(MINUTE FROM window_end), k, COUNT(*), SUM(v)"
    " FROM TABLE(HOP(TABLE ticks, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '30' SECOND))"
    " GROUP BY window_start, window_end, k"
)
USERS = (
    "SELECT EXTRACT(SECOND FROM window_end) + 60 * EXTRACT(MINUTE FROM window_end), COUNT(DISTINCT k),"
    " COUNT(*) FROM TABLE(CUMULATE(TABLE ticks, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '60' SECOND))"
    " GROUP BY window_start, window_end"
)
QUERIES = {"near": NEAR, "sums": SUMS, "users": USERS}


@pytest.mark.thorough
def test_state_by_time_is_spread_anew(spark: SparkSession, tmp_path: Path) -> None:
    """An interval join and windows hold rows that wait for time to pass; without keys, values in buckets."""
    chance = random.Random(5)
    sources = []
    for name in ("ticks", "tocks"):
        (tmp_path / name).mkdir()
        given = (f"{chance.randrange(7)},{n},2024-05-01 00:{n // 60:02d}:{n % 60:02d}\n" for n in range(ROWS))
        (tmp_path / name / "a.csv").write_text("".join(given))
        sources.append(
            f"CREATE TABLE {name} (k INT, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '2'"
            f" SECOND) WITH ('connector'='filesystem', 'path'='{tmp_path}/{name}', 'format'='csv')"
        )
    sinks = [
        f"CREATE TABLE {columns} WITH ('connector'='filesystem', 'path'='{tmp_path}/{name}', 'format'='csv')"
        for name, columns in (
            ("near", "near (k INT, v BIGINT, w BIGINT)"),
            ("sums", "sums (e BIGINT, k INT, c BIGINT, s BIGINT)"),
            ("users", "users (e BIGINT, u BIGINT, c BIGINT)"),
        )
    ]
    batch = Session({"execution.runtime-mode": "batch"})
    batch.execute(*sources)
    answers = map(batch.changes, QUERIES.values())
    expected = [sorted(",".join(map(str, row)) for _, row in answer) for answer in answers]
    assert min(map(len, expected)) > 50
    inserts = "; ".join(f"INSERT INTO {name} {query}" for name, query in QUERIES.items())
    run(tmp_path, *sources, *sinks, f"EXECUTE STATEMENT SET BEGIN {inserts}; END")
    assert [lines(tmp_path / name) for name in QUERIES] == expected


def run(folder: Path, *script: str) -> None:
    """Crashes at some step after two or three epochs with each parallelism but the last."""
    chance = random.Random(4)
    options = {"tidemill.epoch.max-rows": "9", "execution.checkpointing.dir": str(folder / "checkpoint")}
    for parallelism in PARALLELISM[:-1]:
        step, time = chance.choice(("planned", "ran", "committed", "published")), chance.randint(2, 3)
        session = Session({**options, "parallelism.default": str(parallelism)}, crash_at(step, time))
        with pytest.raises(Crash):
            session.execute(*script)
    Session({**options, "parallelism.default": str(PARALLELISM[-1])}).execute(*script)


def _files(folder: Path) -> list[Path]:
    return [f for f in (folder / "checkpoint" / "state").rglob("*") if f.is_file()]


def _named(checkpoint: Path) -> set[str]:
    """What the last commit names, and what its manifests do."""
    (record,) = (checkpoint / "epochs").glob("*.commit.json")
    parts = json.loads(record.read_bytes())["manifests"].values()
    named = {manifest for part in parts for slices in part.values() for manifest, _, _ in slices}
    for manifest in list(named):
        tables = json.loads((checkpoint / "state" / manifest).read_bytes())["tables"].values()
        named |= {run["path"] for table in tables for layer in table["layers"] for run in layer}
    return named
