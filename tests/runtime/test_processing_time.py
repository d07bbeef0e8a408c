"""Windows by the clock, and epochs that no row asks for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.running import Session, folded
from tests.runtime.test_event_time import session

TICKS = "(SELECT *, PROCTIME() AS p FROM ticks)"
BASE = 1_714_557_600
"""2024-05-01 10:00:00 UTC."""


def by_clock(tmp_path: Path, rows: int, seconds: float) -> Session:
    """Each epoch is so many seconds after the one before."""
    made = session(tmp_path, rows)
    made.environment.context.clock = lambda: BASE + seconds * len(made.progress)
    return made


@pytest.mark.one_case
@pytest.mark.parametrize(
    ("window", "expected"),
    [
        # Thirteen rows, one every three seconds.
        ("TUMBLE(p, INTERVAL '10' SECOND)", {(0, 10): 4, (10, 20): 3, (20, 30): 3, (30, 40): 3}),
        ("HOP(p, INTERVAL '10' SECOND, INTERVAL '20' SECOND)",
         {(50, 10): 4, (0, 20): 7, (10, 30): 6, (20, 40): 6, (30, 50): 3}),
        ("SESSION(p, INTERVAL '4' SECOND)", {(0, 40): 13}),
        ("SESSION(p, INTERVAL '2' SECOND)", {(3 * i, 3 * i + 2): 1 for i in range(13)}),
    ],
)  # fmt: skip
def test_group_windows(
    tmp_path: Path, spark: SparkSession, window: str, expected: dict[tuple[int, int], int]
) -> None:
    made = by_clock(tmp_path, 1, 3)
    name, arguments = window.split("(", 1)
    changes = made.changes(
        f"SELECT EXTRACT(SECOND FROM {name}_START({arguments}) AS a,"
        f" EXTRACT(SECOND FROM {name}_END({arguments}) AS b, COUNT(*) AS c FROM {TICKS} GROUP BY {window}"
    )
    assert folded(changes) == Counter((*bounds, count) for bounds, count in expected.items())
    assert {kind for kind, _ in changes} == {"+I"}
    assert sum(p.late for p in made.progress) == 0


def test_over_by_the_clock(tmp_path: Path, spark: SparkSession) -> None:
    """Rows of one epoch come at one time: a span of time shows each all of them, other frames do not."""
    made = by_clock(tmp_path, 2, 3)
    changes = made.changes(
        "SELECT n, COUNT(*) OVER (ORDER BY p"
        " RANGE BETWEEN INTERVAL '6' SECOND PRECEDING AND CURRENT ROW) AS recent,"
        " COUNT(*) OVER (ORDER BY p ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS three,"
        f" COUNT(*) OVER (ORDER BY p) AS so_far, LAG(n) OVER (ORDER BY p) AS before FROM {TICKS}"
    )
    assert {kind for kind, _ in changes} == {"+I"}
    came = [row[0] for _, row in changes]
    spans = [2, 2, 4, 4, *[6] * 8, 5]
    expected = zip(came, spans, [1, 2, *[3] * 11], range(1, 14), [None, *came], strict=False)
    assert [row for _, row in changes] == list(expected)


def test_windows_fire_when_their_time_has_come(tmp_path: Path, spark: SparkSession) -> None:
    """Every window in the first epoch at or after its end; what is open when the input ends, then."""
    made = by_clock(tmp_path, 1, 3)
    made.execute(f"CREATE TEMPORARY VIEW clocked AS SELECT * FROM {TICKS}")
    counted = made.changes(
        "SELECT EXTRACT(SECOND FROM window_end) AS e, COUNT(DISTINCT k) AS d, SUM(n) AS s"
        " FROM TABLE(TUMBLE(TABLE clocked, DESCRIPTOR(p), INTERVAL '10' SECOND))"
        " GROUP BY window_start, window_end"
    )
    assert counted == [("+I", row) for row in ((10, 2, 15), (20, 2, 22), (30, 1, 49), (40, 2, 55))]
    shown = [number for number, p in enumerate(made.progress) if p.rows_out]
    assert shown == [4, 7, 10, 12]


def test_early_results_wait_for_the_clock(tmp_path: Path, spark: SparkSession) -> None:
    """Seven seconds, in steps of seven: at 7, 14, 21... the first epoch from then on shows what there is."""
    made = by_clock(tmp_path, 1, 3)
    made.execute(
        "SET 'table.exec.emit.early-fire.enabled' = 'true'",
        "SET 'table.exec.emit.early-fire.delay' = '7 s'",
    )
    changes = made.changes(
        "SELECT EXTRACT(SECOND FROM window_end) AS e, COUNT(*) AS c"
        " FROM TABLE(TUMBLE(TABLE ticks, DESCRIPTOR(ts), INTERVAL '1' HOUR))"
        " GROUP BY window_start, window_end"
    )
    counts = [row[1] for kind, row in changes if kind in ("+I", "+U")]
    assert counts == [4, 6, 8, 11, 13]


def test_timers_need_no_rows(tmp_path: Path, spark: SparkSession) -> None:
    """A live table that has nothing new: the window's end alone makes an epoch, and only one."""
    folder = tmp_path / "live"
    folder.mkdir()
    (folder / "a.csv").write_text("1\n2\n3\n")
    made = Session({})
    looks = iter(range(1_000_000))
    made.environment.context.clock = lambda: BASE + 5 * next(looks)
    made.execute(
        "CREATE TABLE live (n INT, p AS PROCTIME()) WITH ('connector' = 'filesystem',"
        f" 'path' = '{folder}', 'format' = 'csv', 'source.monitor-interval' = '10 ms')"
    )
    query = (
        "SELECT COUNT(*) AS c, SUM(n) AS s"
        " FROM TABLE(TUMBLE(TABLE live, DESCRIPTOR(p), INTERVAL '60' SECOND))"
        " GROUP BY window_start, window_end"
    )
    with made.environment.execute_sql(query).collect() as rows:
        first = next(iter(rows))
        assert tuple(first) == (3, 6)
        assert [p.epoch for p in made.progress] in ([1], [1, 2])
