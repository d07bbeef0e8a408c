"""Interval joins through a job: append-only, the same wherever epochs are cut, forgotten as time goes on."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests import visible
from tests.runtime.running import Crash, Row, Session, crash_at, folded

EPOCHS = (0, 1, 3)
ORDERS = (
    (1, "a", 0),
    (2, "b", 4),
    (3, "a", 9),
    (4, "", 12),
    (5, "b", 11),
    (6, "c", 20),
    (7, "a", 3),
    (8, "b", 30),
)
PAYMENTS = (
    (51, "a", 2),
    (52, "b", 3),
    (53, "a", 10),
    (54, "b", 16),
    (55, "", 13),
    (56, "a", 4),
    (57, "b", 38),
)
# Watermarks are a second behind. Order 7 comes when 19 was reached, payment 56 when 15 was.


def session(tmp_path: Path, rows: int, **options: str) -> Session:
    made = Session({**({"tidemill.epoch.max-rows": str(rows)} if rows else {}), **options})
    for table, columns, data in (
        ("orders", "id INT, k STRING", ORDERS),
        ("payments", "pid INT, k STRING", PAYMENTS),
    ):
        path = tmp_path / f"{table}.csv"
        if not path.exists():
            path.write_text("".join(f"{i},{k},2024-05-01 00:00:{t:02d}\n" for i, k, t in data))
        made.execute(
            f"CREATE TABLE {table} ({columns}, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)"
            f" WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv',"
            " 'csv.null-literal' = '')"
        )
    return made


WITHIN = "o.k = p.k AND p.ts BETWEEN o.ts AND o.ts + INTERVAL '5' SECOND"
MATCHED = Counter({(1, 51): 1, (3, 53): 1, (5, 54): 1})
"""Order 7 has come when nobody waits for payment 56 of its time any more, and the other way round."""


@pytest.mark.parametrize("rows", EPOCHS)
@pytest.mark.parametrize(
    ("kind", "alone"),
    [
        ("JOIN", []),
        ("LEFT JOIN", [(i, None) for i in (2, 4, 6, 7, 8)]),
        ("RIGHT JOIN", [(None, i) for i in (52, 55, 56, 57)]),
        ("FULL JOIN", [*((i, None) for i in (2, 4, 6, 7, 8)), *((None, i) for i in (52, 55, 56, 57))]),
    ],
)
def test_rows_come_once(tmp_path: Path, spark: SparkSession, rows: int, kind: str, alone: list[Row]) -> None:
    changes = session(tmp_path, rows).changes(f"SELECT id, pid FROM orders o {kind} payments p ON {WITHIN}")
    assert {change for change, _ in changes} == {"+I"}
    assert folded(changes) == MATCHED + Counter(alone)


@pytest.mark.parametrize("rows", EPOCHS)
def test_a_condition_on_both_sides(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    changes = session(tmp_path, rows).changes(
        "SELECT id, pid FROM orders o LEFT JOIN payments p ON p.ts >= o.ts"
        " AND p.ts < o.ts + INTERVAL '7' SECOND AND id + 50 <> pid AND (p.k = 'a' OR o.k = 'b')"
    )
    assert folded(changes) == Counter([(2, 53), (5, 54), *((i, None) for i in (1, 3, 4, 6, 7, 8))])


@pytest.mark.parametrize("rows", EPOCHS)
def test_windows_above(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    """Rows without a partner come behind their time, and are not late for it."""
    made = session(tmp_path, rows)
    made.execute(
        "CREATE TEMPORARY VIEW paid AS SELECT o.ts, o.k, id, pid FROM orders o LEFT JOIN payments p"
        f" ON {WITHIN}"
    )
    changes = made.changes(
        "SELECT EXTRACT(SECOND FROM window_end) AS e, COUNT(*) AS c, COUNT(pid) AS hits FROM"
        " TABLE(TUMBLE(TABLE paid, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end"
    )
    # Order 7 of second 3 came at 19, six seconds of delay ago 13: its window has fired.
    assert folded(changes) == Counter([(10, 3, 2), (20, 2, 1), (30, 1, 0), (40, 1, 0)])
    assert {change for change, _ in changes} == {"+I"}


@pytest.mark.parametrize("rows", EPOCHS)
def test_a_join_of_a_join(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    made = session(tmp_path, rows)
    made.execute(
        f"CREATE TEMPORARY VIEW paid AS SELECT o.ts, o.k, id, pid FROM orders o JOIN payments p ON {WITHIN}"
    )
    changes = made.changes(
        "SELECT paid.id, pid, later.id AS later FROM paid LEFT JOIN orders later ON paid.k = later.k"
        " AND later.ts BETWEEN paid.ts + INTERVAL '1' SECOND AND paid.ts + INTERVAL '19' SECOND"
    )
    assert {change for change, _ in changes} == {"+I"}
    # Order 7 comes when 19 was reached, which is not beyond the wait of what came of order 1.
    assert folded(changes) == Counter([(1, 51, 3), (1, 51, 7), (3, 53, None), (5, 54, 8)])


def test_windows_by_key_above_windows_by_key(tmp_path: Path, spark: SparkSession) -> None:
    """Both run in one task: each fires once, in whatever epoch."""
    for rows in EPOCHS:
        made = session(tmp_path, rows)
        made.execute(
            "CREATE TEMPORARY VIEW fives AS SELECT k, window_time AS t, COUNT(*) AS c"
            " FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '5' SECOND))"
            " GROUP BY k, window_start, window_end, window_time"
        )
        changes = made.changes(
            "SELECT k, EXTRACT(SECOND FROM window_end) AS e, SUM(c) AS c FROM TABLE(HOP(TABLE fives,"
            " DESCRIPTOR(t), INTERVAL '10' SECOND, INTERVAL '20' SECOND))"
            " GROUP BY k, window_start, window_end"
        )
        ends: dict[str | None, dict[int, int]] = {}
        for _, (key, end, count) in changes:
            ends.setdefault(key, {})[end] = count
        assert ends == {
            "a": {10: 2, 20: 2},
            "b": {10: 1, 20: 2, 30: 1, 40: 1, 50: 1},
            "c": {30: 1, 40: 1},
            None: {20: 1, 30: 1},
        }
        assert len(changes) == 11


def test_what_is_kept_goes_with_the_watermark(tmp_path: Path, spark: SparkSession) -> None:
    made = session(tmp_path, 1)
    made.changes(f"SELECT id, pid FROM orders o FULL JOIN payments p ON {WITHIN}")
    kept = [progress.state_rows for progress in made.progress]
    assert max(kept) > 2
    assert kept[-1] == 0


@pytest.mark.one_case
@pytest.mark.parametrize("step", ["ran", "committed"])
def test_a_crash_between_two_epochs(tmp_path: Path, spark: SparkSession, step: str) -> None:
    sink = f"'connector' = 'filesystem', 'path' = '{tmp_path / 'out'}', 'format' = 'csv'"
    options = {"execution.checkpointing.dir": str(tmp_path / "checkpoint")}
    for fault in (crash_at(step, 3), crash_at(step, 4), None):
        made = session(tmp_path, 1, **options)
        if fault is not None:
            made.environment.context.fault = fault
        made.execute(f"CREATE TABLE paid (id INT, pid INT) WITH ({sink})")
        insert = f"INSERT INTO paid SELECT id, pid FROM orders o LEFT JOIN payments p ON {WITHIN}"
        if fault is None:
            made.execute(insert)
        else:
            with pytest.raises(Crash):
                made.execute(insert)
    assert visible.lines(tmp_path / "out") == sorted(["1,51", "3,53", "5,54", "2,", "4,", "6,", "7,", "8,"])


def test_explain_shows_what_runs(tmp_path: Path, spark: SparkSession) -> None:
    made = session(tmp_path, 0)
    query = f"SELECT id, pid FROM orders o JOIN payments p ON {WITHIN}"
    plan = made.environment.explain_sql(query)
    assert "IntervalJoin(joinType=[InnerJoin]" in plan
    assert "runs=" not in plan
    updating = (
        "SELECT id, pid FROM (SELECT k, MAX(id) AS id, MAX(ts) AS ts FROM orders GROUP BY k) o"
        f" JOIN payments p ON {WITHIN}"
    )
    assert "IntervalJoin" not in made.environment.explain_sql(updating)
