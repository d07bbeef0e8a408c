"""Operators on one key share one exchange; the answer is that of batch mode."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic import dataframe as classic

from tests.runtime.running import Crash, Session, crash_at, folded
from tests.visible import rows

ROWS = 24
COUNTS = "(SELECT k, COUNT(*) AS n FROM a GROUP BY k)"
CASES: dict[str, tuple[int, str]] = {
    "three-way": (1, "SELECT a.v, b.v, c.v FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k"),
    "four-way": (
        1,
        "SELECT a.k, a.v, d.v FROM a JOIN b ON a.k = b.k JOIN c ON a.k = c.k JOIN a AS d ON d.k = c.k",
    ),
    "left side kept": (1, "SELECT a.v, b.v, c.v FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON a.k = c.k"),
    "padded side": (2, "SELECT a.v, b.v, c.v FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON b.k = c.k"),
    "right side kept": (1, "SELECT a.v, b.v, c.v FROM a RIGHT JOIN b ON a.k = b.k JOIN c ON b.k = c.k"),
    "both sides padded": (2, "SELECT a.v, b.v, c.v FROM a FULL JOIN b ON a.k = b.k JOIN c ON a.k = c.k"),
    "aggregates": (
        1,
        f"SELECT x.k, x.n, y.s FROM {COUNTS} x "
        "FULL JOIN (SELECT k, SUM(v) AS s FROM b GROUP BY k) y ON x.k = y.k",
    ),
    "keys in another order": (
        1,
        "SELECT x.s, b.v FROM (SELECT k, j, SUM(v) AS s FROM a GROUP BY k, j) x "
        "JOIN b ON x.j = b.j AND x.k = b.k",
    ),
    "other keys": (2, f"SELECT x.k, b.v FROM {COUNTS} x JOIN b ON x.n = b.k"),
    "computed in between": (
        1,
        "SELECT a.k, SUM(a.v * b.v) AS s FROM a JOIN b ON a.k = b.k WHERE a.v > b.j GROUP BY a.k",
    ),
    "computed key": (2, "SELECT m, COUNT(*) AS c FROM (SELECT k + 0 AS m FROM a GROUP BY k) GROUP BY m"),
    "cast key": (2, "SELECT a.k, COUNT(*) AS c FROM a JOIN w ON a.k = w.k GROUP BY a.k"),
    "Top-N": (
        1,
        "SELECT x.k, x.v, b.v FROM (SELECT * FROM (SELECT k, v, ROW_NUMBER() OVER "
        "(PARTITION BY k ORDER BY v DESC, j) AS p FROM a) WHERE p <= 2) x JOIN b ON x.k = b.k",
    ),
    "semi": (1, f"SELECT x.k, x.n FROM {COUNTS} x WHERE x.k IN (SELECT k FROM b WHERE k IS NOT NULL)"),
    "NOT IN": (1, "SELECT v FROM a WHERE k NOT IN (SELECT v FROM b)"),
    "NOT IN by another key": (1, "SELECT v FROM a WHERE k NOT IN (SELECT k FROM b WHERE b.j = a.j)"),
    "NOT IN of pairs": (1, "SELECT v FROM a WHERE (k, j) NOT IN (SELECT k, v FROM b)"),
    "EXISTS of anything": (1, "SELECT v FROM a WHERE EXISTS (SELECT 1 FROM b WHERE v > 8)"),
    "one partition": (
        1,
        "SELECT COUNT(*) AS c FROM (SELECT k, v FROM a ORDER BY v DESC, k, j LIMIT 5)",
    ),
    "through UNION ALL": (
        3,
        f"SELECT k, SUM(n) AS s FROM (SELECT * FROM {COUNTS} UNION ALL SELECT k, v FROM "
        "(SELECT k, SUM(v) AS v FROM b GROUP BY k)) GROUP BY k",
    ),
}


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """a, b and c with columns k, j, v; w with a wider k."""
    folder = tmp_path_factory.mktemp("shared")
    chance = random.Random(3)
    statements = []
    for name in "abcw":
        lines = [
            f"{chance.choice(['-', 1, 2, 3, 4, 5])},{chance.randint(0, 2)},{chance.randint(0, 9)}"
            for _ in range(ROWS)
        ]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
        key = "BIGINT" if name == "w" else "INT"
        statements.append(
            f"CREATE TABLE {name} (k {key}, j INT, v INT) "
            f"WITH ('connector'='filesystem', 'path'='{folder}/{name}.csv', 'format'='csv', "
            "'csv.null-literal'='-')"
        )
    return statements


@pytest.fixture
def exchanges(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of partitions of every exchange that is made."""
    made: list[int] = []
    plain = classic.DataFrame.repartitionById

    def counting(frame: Any, partitions: int, column: Any) -> DataFrame:
        made.append(partitions)
        return plain(frame, partitions, column)

    monkeypatch.setattr(classic.DataFrame, "repartitionById", counting)
    return made


@pytest.mark.one_case
@pytest.mark.parametrize("case", CASES)
def test_one_exchange_and_the_batch_answer(case: str, tables: list[str], exchanges: list[int]) -> None:
    expected, query = CASES[case]
    streaming = Session(
        {
            "tidemill.epoch.max-rows": str(ROWS // 2),
            "tidemill.epoch.resident": "false",
            "tidemill.epoch.small-bytes": "0",
        }
    )
    streaming.execute(*tables)
    answer = folded(streaming.changes(query))
    assert len(exchanges) == expected * len(streaming.progress)
    assert len(streaming.progress) >= 2
    batch = Session({"execution.runtime-mode": "batch"})
    batch.execute(*tables)
    assert answer == Counter(row for _, row in batch.changes(query))


@pytest.mark.thorough
@pytest.mark.parametrize("step", ["ran", "committed"])
def test_a_crash_between_epochs_of_a_shared_exchange(tables: list[str], tmp_path: Path, step: str) -> None:
    """Each operator of the task finds its own state again."""
    query = "SELECT a.k, SUM(b.v * c.v) AS s FROM a JOIN b ON a.k = b.k JOIN c ON a.k = c.k GROUP BY a.k"
    options = {
        "tidemill.epoch.max-rows": str(ROWS // 3),
        "execution.checkpointing.dir": str(tmp_path / "checkpoint"),
    }
    out = tmp_path / "out"
    sink = (
        "CREATE TABLE snk (k INT, s INT) "
        f"WITH ('connector'='filesystem', 'path'='{out}', 'format'='debezium-json')"
    )
    with pytest.raises(Crash):
        Session(options, crash_at(step, 2)).execute(*tables, sink, f"INSERT INTO snk {query}")
    Session(options).execute(*tables, sink, f"INSERT INTO snk {query}")
    batch = Session({"execution.runtime-mode": "batch"})
    batch.execute(*tables)
    assert rows(out, "k", "s") == Counter(row for _, row in batch.changes(query))
