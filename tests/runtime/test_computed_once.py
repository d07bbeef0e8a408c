"""NOW, RAND, UUID and users' functions over changelogs: what goes says what it said when it came."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests import visible
from tests.runtime.running import Crash, Session, crash_at, folded
from tidemill.errors import NotSupportedError

KEYS = "abcabacbdadcbaabcdab"
FINAL = Counter(KEYS)


def session(tmp_path: Path, rows: int, **options: str) -> Session:
    path = tmp_path / "hits.csv"
    if not path.exists():
        path.write_text("".join(f"{k},{n}\n" for n, k in enumerate(KEYS)))
    made = Session({**({"tidemill.epoch.max-rows": str(rows)} if rows else {}), **options})
    made.execute(
        f"CREATE TABLE hits (k STRING, n INT) WITH ('connector' = 'filesystem', 'path' = '{path}',"
        " 'format' = 'csv')",
        "CREATE TEMPORARY VIEW counts AS SELECT k, COUNT(*) AS c FROM hits GROUP BY k",
    )
    return made


@pytest.mark.parametrize("rows", [0, 1, 7])
@pytest.mark.parametrize("strategy", ["IGNORE", "TRY_RESOLVE"])
def test_a_row_goes_with_the_values_it_came_with(
    tmp_path: Path, spark: SparkSession, rows: int, strategy: str
) -> None:
    made = session(tmp_path, rows)
    made.execute(f"SET 'table.optimizer.non-deterministic-update.strategy' = '{strategy}'")
    changes = made.changes("SELECT k, c, UUID() AS u, RAND() AS r, NOW() AS t FROM counts")
    left = folded(changes)
    assert Counter({k: c for k, c, *_ in left}) == FINAL
    assert len(left) == len(FINAL)
    assert len({u for _, _, u, _, _ in left}) == len(FINAL)
    assert rows == 0 or any(kind == "-U" for kind, _ in changes)


@pytest.mark.one_case
@pytest.mark.parametrize("rows", [3, 1])
def test_a_condition_is_met_for_a_row_or_not(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    """A row that came through goes through; one that did not, does not."""
    left = folded(session(tmp_path, rows).changes("SELECT k, c FROM counts WHERE RAND() < 0.5 AND c > 1"))
    assert all(FINAL[k] == c and times == 1 for (k, c), times in left.items())


def test_rows_that_never_go(tmp_path: Path, spark: SparkSession) -> None:
    """Distinct rows of a table that only grows."""
    changes = session(tmp_path, 3).changes("SELECT k, UUID() AS u FROM (SELECT DISTINCT k FROM hits)")
    assert Counter((kind, k) for kind, (k, _) in changes) == Counter(("+I", k) for k in FINAL)
    assert len({u for _, (_, u) in changes}) == len(FINAL)


@pytest.mark.thorough
def test_what_is_made_of_it_adds_up(tmp_path: Path, spark: SparkSession) -> None:
    made = session(tmp_path, 2)
    made.execute("CREATE TEMPORARY VIEW drawn AS SELECT k, c, RAND() AS r FROM counts")
    left = folded(made.changes("SELECT COUNT(*) AS n, COUNT(DISTINCT r) AS d, SUM(c) AS s FROM drawn"))
    assert left == Counter([(len(FINAL), len(FINAL), len(KEYS))])


def test_after_a_restart(tmp_path: Path, spark: SparkSession) -> None:
    """Values of rows that came before the crash are known after it."""
    options = {"execution.checkpointing.dir": str(tmp_path / "checkpoint")}
    for fault in (crash_at("published", 2), crash_at("ran", 1), None):
        made = session(tmp_path, 5, **options)
        made.execute(
            "CREATE TABLE shown (k STRING, c BIGINT, u STRING) WITH ('connector' = 'filesystem',"
            f" 'path' = '{tmp_path / 'shown'}', 'format' = 'debezium-json')"
        )
        insert = "INSERT INTO shown SELECT k, c, UUID() FROM counts"
        if fault is None:
            made.execute(insert)
        else:
            made.environment.context.fault = fault
            with pytest.raises(Crash):
                made.execute(insert)
    there = visible.rows(tmp_path / "shown", "k", "c", "u")
    assert set(there.values()) == {1}
    assert {k: c for k, c, _ in there} == FINAL


def test_explain_says_where_values_are_kept(tmp_path: Path, spark: SparkSession) -> None:
    made = session(tmp_path, 0)
    note = "keeps the values that rows came with"
    assert note in made.environment.explain_sql("SELECT k, c, UUID() AS u FROM counts")
    assert note not in made.environment.explain_sql("SELECT k, c, UPPER(k) AS u FROM counts")
    assert note not in made.environment.explain_sql("SELECT k, n, UUID() AS u FROM hits")
    made.execute(
        "CREATE TABLE shown (k STRING, c BIGINT, t STRING, PRIMARY KEY (k) NOT ENFORCED)"
        " WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:/tmp/none.db', 'table-name' = 'shown')"
    )
    insert = "INSERT INTO shown SELECT k, c, CAST(NOW() AS STRING) FROM counts"
    assert note not in made.environment.explain_sql(insert)


def test_in_a_joins_condition_it_is_refused(tmp_path: Path, spark: SparkSession) -> None:
    made = session(tmp_path, 0)
    query = "SELECT a.k FROM counts a LEFT JOIN counts b ON a.k = b.k AND RAND() < 0.5"
    with pytest.raises(NotSupportedError, match="RAND in a join's condition over rows that can be taken"):
        made.changes(query)
