"""Early and late results of windows through jobs: an updating stream that is right at every epoch."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.running import Session, folded, states
from tests.runtime.test_event_time import TIMES, session
from tidemill.errors import ValidationError

WINDOW = "TUMBLE(TABLE ticks, DESCRIPTOR(ts), INTERVAL '5' SECOND)"
COUNTED = (
    "SELECT EXTRACT(SECOND FROM window_end) AS e, COUNT(*) AS c, SUM(n) AS s FROM TABLE({})"
    " GROUP BY window_start, window_end"
)
ON_TIME = {5: (3, 7), 10: (2, 15), 15: (3, 36), 25: (1, 24), 30: (2, 51)}


def emitting(tmp_path: Path, rows: int, **options: str) -> Session:
    made = session(tmp_path, rows)
    for key, value in options.items():
        made.execute(f"SET 'table.exec.emit.{key.replace('__', '.').replace('_', '-')}' = '{value}'")
    if "allow_lateness" in options:
        made.execute("SET 'tidemill.late-rows' = 'correct'")
    return made


EARLY = {"early_fire__enabled": "true", "early_fire__delay": "0 s"}


@pytest.mark.parametrize("rows", [0, 1, 4])
def test_every_epoch_shows_what_windows_have(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    changes = emitting(tmp_path, rows, **EARLY).changes(COUNTED.format(WINDOW))
    assert folded(changes) == Counter((e, *values) for e, values in ON_TIME.items())
    if rows == 1:
        # Rows 1, 4, 2, 8, 7: each shows its window at once; 3 is late.
        early = [(k, r) for k, r in changes if r[0] in (5, 10)]
        assert early[:4] == [("+I", (5, 1, 1)), ("-U", (5, 1, 1)), ("+U", (5, 2, 5)), ("-U", (5, 2, 5))]
        assert early[4:] == [
            ("+U", (5, 3, 7)), ("+I", (10, 1, 8)), ("-U", (10, 1, 8)), ("+U", (10, 2, 15)),
        ]  # fmt: skip


@pytest.mark.parametrize("rows", [0, 1, 4])
def test_late_rows_correct_what_was_shown(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    """3 comes when 6 was reached, 1 s beyond the end of [0, 5); 5 comes 13 s beyond the end of its window."""
    changes = emitting(tmp_path, rows, allow_lateness="3 s").changes(COUNTED.format(WINDOW))
    assert folded(changes) == Counter((e, *v) for e, v in {**ON_TIME, 5: (4, 10)}.items())
    assert [c for c in changes if c[0] == "+I" and c[1][0] != 5] == [
        ("+I", (e, *v)) for e, v in ON_TIME.items() if e != 5
    ]
    if rows == 1:
        assert ("-U", (5, 3, 7)) in changes
    more = emitting(tmp_path, rows, allow_lateness="30 s", late_fire__enabled="true", late_fire__delay="1 h")
    found = folded(more.changes(COUNTED.format(WINDOW)))
    assert found == Counter((e, *v) for e, v in {**ON_TIME, 5: (4, 10), 10: (3, 20)}.items())
    assert sum(p.late for p in more.progress) == 0


@pytest.mark.thorough
def test_windows_over_windows_that_change(tmp_path: Path, spark: SparkSession) -> None:
    """What is shown early and corrected late is so in the windows above, too; the totals always add up."""
    for rows in (1, 4):
        made = emitting(tmp_path, rows, allow_lateness="3 s", **EARLY)
        made.execute(
            "CREATE TEMPORARY VIEW fives AS SELECT window_time AS t, k, COUNT(*) AS c, SUM(n) AS s"
            f" FROM TABLE({WINDOW}) GROUP BY window_start, window_end, window_time, k"
        )
        changes = made.changes(
            "SELECT EXTRACT(SECOND FROM TUMBLE_END(t, INTERVAL '15' SECOND)) AS e, SUM(c) AS c, SUM(s) AS s"
            " FROM fives GROUP BY TUMBLE(t, INTERVAL '15' SECOND)"
        )
        assert folded(changes) == Counter([(15, 9, 61), (30, 3, 75)])
        if rows == 1:
            seen = [dict.fromkeys(table) for table in states(changes)]
            assert (15, 1, 1) in seen[0]
            totals = made.changes("SELECT SUM(s) AS total FROM fives")
            # 5 is late for good.
            reached = [sum(TIMES[: i + 1]) for i in range(11)]
            assert [row[0] for kind, row in totals if kind in ("+I", "+U")] == [
                *reached, sum(TIMES) - 5,
            ]  # fmt: skip


GROWING = "DYNAMIC_CUMULATE(TABLE ticks, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '4.5' SECOND)"


@pytest.mark.parametrize("rows", [0, 1, 4])
def test_curves_are_shown_early_and_corrected(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    """Windows [0, 17.5) and [20, 30.5): the row of 3 comes after 5 was shown, that of 5 after 10 and 15."""
    changes = emitting(tmp_path, rows, allow_lateness="30 s", **EARLY).changes(COUNTED.format(GROWING))
    first = [(5, 4, 10), (10, 7, 30), (15, 10, 66), (17, 10, 66)]
    assert folded(changes) == Counter([*first, (25, 1, 24), (30, 3, 75), (30, 3, 75)])
    if rows == 1:
        assert changes[:4] == [("+I", (5, 1, 1)), ("-U", (5, 1, 1)), ("+U", (5, 2, 5)), ("-U", (5, 2, 5))]
        assert ("-U", (5, 3, 7)) in changes


BEST = "SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY {} DESC) AS r"


@pytest.mark.thorough
def test_the_best_of_windows_is_shown_early_and_corrected(tmp_path: Path, spark: SparkSession) -> None:
    """Of rows, of what changes, and side by side with others; what works on by the window's time is right."""
    expected = {5: (4, 3), 10: (8, 7), 15: (13, 12), 25: (24,), 30: (26, 25)}
    rows = [(e, n) for e, found in expected.items() for n in found]
    for size in (1, 4):
        made = emitting(tmp_path, size, allow_lateness="3 s", **EARLY)
        best = f"({BEST.format('n')} FROM TABLE({WINDOW})) WHERE r <= 2"
        changes = made.changes(f"SELECT EXTRACT(SECOND FROM window_end) AS e, n FROM {best}")
        assert folded(changes) == Counter(rows)
        if size == 1:
            # 1, 4, 2, 8 come one by one, and 3 when 5 s was reached.
            assert changes[:4] == [("+I", (5, 1)), ("+I", (5, 4)), ("-D", (5, 1)), ("+I", (5, 2))]
            assert ("-D", (5, 2)) in changes
        made.execute(
            "CREATE TEMPORARY VIEW totals AS SELECT k, window_start, window_end, SUM(n) AS s"
            f" FROM TABLE({WINDOW}) GROUP BY k, window_start, window_end"
        )
        changes = made.changes(
            f"SELECT EXTRACT(SECOND FROM window_end) AS e, k, s FROM ({BEST.format('s')} FROM totals)"
            " WHERE r = 1"
        )
        totals = [(5, "k0", 6), (10, "k0", 8), (15, "k1", 24), (25, "k0", 24), (30, "k0", 26)]
        assert folded(changes) == Counter(totals)
        counted = made.changes(
            "SELECT EXTRACT(SECOND FROM TUMBLE_END(window_time, INTERVAL '15' SECOND)) AS e, SUM(n) AS s"
            f" FROM (SELECT window_time, n FROM {best}) GROUP BY TUMBLE(window_time, INTERVAL '15' SECOND)"
        )
        assert folded(counted) == Counter([(15, 4 + 3 + 8 + 7 + 13 + 12), (30, 24 + 26 + 25)])
        pairs = made.changes(
            f"SELECT l.n, r.n FROM TABLE({WINDOW}) AS l"
            f" LEFT JOIN (SELECT * FROM TABLE({WINDOW}) WHERE n > 3) AS r"
            " ON l.window_start = r.window_start AND l.window_end = r.window_end AND l.n = r.n + 1"
        )
        windows = {5: (1, 4, 2, 3), 10: (8, 7), 15: (11, 12, 13), 25: (24,), 30: (25, 26)}
        assert folded(pairs) == Counter(
            (n, n - 1 if n - 1 in found and n > 4 else None) for found in windows.values() for n in found
        )


def test_lateness_alone_shows_nothing(tmp_path: Path, spark: SparkSession) -> None:
    """As in Flink, whose windows give one row then."""
    made = emitting(tmp_path, 1, allow_lateness="3 s")
    made.execute("RESET 'tidemill.late-rows'")
    changes = made.changes(COUNTED.format(WINDOW))
    assert changes == [("+I", (e, *values)) for e, values in ON_TIME.items()]


def test_over_is_corrected_by_late_rows(tmp_path: Path, spark: SparkSession) -> None:
    made = session(tmp_path, 1)
    made.execute("SET 'tidemill.late-rows' = 'correct'")
    changes = made.changes("SELECT n, SUM(n) OVER (PARTITION BY k ORDER BY ts) AS s FROM ticks")
    expected = [(n, sum(t for t in TIMES if t <= n and t % 2 == n % 2)) for n in TIMES]
    assert folded(changes) == Counter(expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"early_fire__enabled": "true"}, "'table.exec.emit.early-fire.delay' is not"),
        (
            {"late_fire__enabled": "true", "late_fire__delay": "0 s"},
            "has no effect on windows without",
        ),
    ],
)
def test_options_that_do_not_fit(
    tmp_path: Path, spark: SparkSession, options: dict[str, str], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        emitting(tmp_path, 0, **options).changes(COUNTED.format(WINDOW))
