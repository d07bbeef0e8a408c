"""Event time through a job: what is late, and what fires, is the same wherever epochs are cut."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.runtime.running import Session, folded
from tidemill.errors import NotSupportedError, TidemillError

# Behind the watermark (t - 2) at their place: the rows of 3 and of 5; at it: those of 2 and of 11.
TIMES = (1, 4, 2, 8, 7, 3, 12, 13, 11, 25, 24, 5, 26)
EPOCHS = (0, 1, 3, 5)
BEHIND = (2, 3, 11, 5)
EMITTING = {
    "table.exec.emit.early-fire.enabled": "true",
    "table.exec.emit.early-fire.delay": "0 ms",
    "table.exec.emit.late-fire.enabled": "true",
    "table.exec.emit.late-fire.delay": "0 ms",
    "table.exec.emit.allow-lateness": "1 s",
}


def session(tmp_path: Path, rows: int, zone: str = "UTC") -> Session:
    path = tmp_path / "ticks.csv"
    path.write_text("".join(f"2024-05-01 00:00:{t:02d},k{t % 2},{t}\n" for t in TIMES))
    made = Session({"tidemill.epoch.max-rows": str(rows)} if rows else {})
    made.execute(
        f"SET 'table.local-time-zone' = '{zone}'",
        "CREATE TABLE ticks (ts TIMESTAMP(3), k STRING, n INT,"
        " WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)"
        f" WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv', 'csv.null-literal' = '')",
    )
    return made


@pytest.mark.parametrize("rows", EPOCHS)
def test_order_by_time(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    changes = session(tmp_path, rows).changes("SELECT n FROM ticks ORDER BY ts")
    # 3 comes when 8 - 2 was reached, after 4 was given; 5 when 13 was.
    assert [row[0] for _, row in changes] == [1, 2, 4, 7, 8, 11, 12, 13, 24, 25, 26]
    assert {kind for kind, _ in changes} == {"+I"}


@pytest.mark.parametrize("rows", EPOCHS)
def test_the_first_of_each_key(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    """2 comes when the watermark is just there: it is no later than that."""
    ranked = "SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS place FROM ticks"
    changes = session(tmp_path, rows).changes(f"SELECT k, n FROM ({ranked}) WHERE place = 1")
    assert sorted(changes) == [("+I", ("k0", 2)), ("+I", ("k1", 1))]


LAST = (
    "SELECT k, n, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS place FROM ticks)"
    " WHERE place = 1"
)


def _naive_last(size: int) -> Counter[tuple[object, ...]]:
    """Windows of ``size`` seconds over the last row of each key, row by row."""
    last: dict[str, int] = {}
    fired: set[int] = set()
    found: Counter[tuple[object, ...]] = Counter()

    def reach(mark: float) -> None:
        for start in sorted({t // size * size for t in last.values()} - fired):
            if start + size - 0.001 <= mark:
                fired.add(start)
                found.update((start + size, k, t) for k, t in last.items() if t // size * size == start)

    furthest = 0
    for time in TIMES:
        key = f"k{time % 2}"
        if time >= last.get(key, 0):
            last[key] = time
        furthest = max(furthest, time)
        reach(furthest - 2)
    reach(float("inf"))
    return found


@pytest.mark.parametrize("rows", EPOCHS)
@pytest.mark.parametrize("size", [2, 5])
def test_windows_over_the_last_of_each_key(tmp_path: Path, spark: SparkSession, rows: int, size: int) -> None:
    """What was the last when its window ended counts, also where the same epoch has a later one."""
    window = f"TABLE(TUMBLE(({LAST}), DESCRIPTOR(ts), INTERVAL '{size}' SECOND))"
    columns = "EXTRACT(SECOND FROM window_end), k, MAX(n)"
    query = f"SELECT {columns} FROM {window} GROUP BY window_start, window_end, k"
    found = folded(session(tmp_path, rows).changes(query))
    assert found == _naive_last(size)
    group = f"TUMBLE(ts, INTERVAL '{size}' SECOND)"
    query = f"SELECT EXTRACT(SECOND FROM TUMBLE_END(ts, INTERVAL '{size}' SECOND)), k, MAX(n)"
    found = folded(session(tmp_path, rows).changes(f"{query} FROM ({LAST}) GROUP BY k, {group}"))
    assert found == _naive_last(size)


@pytest.mark.parametrize("rows", EPOCHS)
@pytest.mark.parametrize(
    ("window", "expected"),
    [
        # [0, 5) fires at 5 - 1 ms, which 8 - 2 reached before 3 came; 5 is late for [5, 10), too.
        ("TUMBLE(TABLE ticks, DESCRIPTOR(ts), INTERVAL '5' SECOND)",
         {5: (3, 7), 10: (2, 15), 15: (3, 36), 25: (1, 24), 30: (2, 51)}),
        ("CUMULATE(TABLE ticks, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND)",
         {5: (3, 7), 10: (6, 25), 15: (3, 36), 20: (3, 36), 25: (1, 24), 30: (3, 75)}),
        ("HOP(TABLE ticks, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND)",
         {5: (3, 7), 10: (6, 25), 15: (5, 51), 20: (3, 36), 25: (1, 24), 30: (3, 75), 35: (2, 51)}),
    ],
)  # fmt: skip
def test_windows(
    tmp_path: Path, spark: SparkSession, rows: int, window: str, expected: dict[int, tuple[int, int]]
) -> None:
    """3 still counts in the windows that end at 10: only the first of its windows has fired."""
    changes = session(tmp_path, rows).changes(
        f"SELECT EXTRACT(SECOND FROM window_end) AS e, COUNT(*) AS c, SUM(n) AS s FROM TABLE({window})"
        " GROUP BY window_start, window_end"
    )
    assert {row[0]: (row[1], row[2]) for _, row in changes} == expected
    assert len(changes) == len(expected)
    assert {kind for kind, _ in changes} == {"+I"}


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("rows", [0, 1, 7])
def test_late_is_told_by_all_rows_before_also_where_keys_are_normalized(
    tmp_path: Path, spark: SparkSession, rows: int, seed: int
) -> None:
    """The rows of other keys are in other partitions; a row is late by those that came before it."""
    random = Random(seed)
    lines, known, open_, late, mark = [], dict[int, int](), Counter[int](), 0, -1
    for _ in range(40):
        key, time = random.randrange(8), random.randrange(60)
        before = known.pop(key, None)
        after = None if before is not None and random.random() < 0.3 else time
        if after is not None:
            known[key] = after
        old, new = (
            t if t is None else {"id": key, "ts": f"2024-05-01 00:00:{t:02d}"} for t in (before, after)
        )
        op = "c" if old is None else "d" if new is None else "u"
        lines.append(json.dumps({"op": op, "before": old, "after": new}) + "\n")
        for ts, weight in ((before, -1), (after, 1)) if before != after else ():
            if ts is not None:
                is_late = ts // 10 * 10000 + 9999 <= mark
                late += is_late
                open_[ts // 10] += 0 if is_late else weight
                mark = max(mark, ts * 1000 - 20000)
    (tmp_path / "changes.json").write_text("".join(lines))
    options = {"parallelism.default": "3"} | ({"tidemill.epoch.max-rows": str(rows)} if rows else {})
    made = Session(options)
    made.execute(
        "SET 'table.exec.source.cdc-events-duplicate' = 'true'",
        "CREATE TABLE t (id INT PRIMARY KEY NOT ENFORCED, ts TIMESTAMP(3),"
        " WATERMARK FOR ts AS ts - INTERVAL '20' SECOND)"
        f" WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/changes.json', 'format' = 'debezium-json')",
    )
    query = (
        "SELECT EXTRACT(SECOND FROM window_start) AS s, COUNT(*) AS c"
        " FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND) GROUP BY window_start, window_end"
    )
    plan = str(list(made.environment.execute_sql(f"EXPLAIN {query}").collect()))
    assert "runs=[in one partition, where rows are as they came]" in plan
    found = {row[0] // 10: row[1] for _, row in made.changes(query)}
    assert found == {window: count for window, count in open_.items() if count}
    assert late > 2


@pytest.mark.thorough
@pytest.mark.parametrize("rows", EPOCHS)
def test_bundles_hold_no_watermark_back_below_windows(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    """A watermark passes whenever a window may end, however long ``allow-latency`` is."""
    query = "SELECT {}, COUNT(*) AS c FROM {} GROUP BY {}"
    ends = "window_start, window_end"
    grouped = query.format("1", "ticks", "TUMBLE(ts, INTERVAL '5' SECOND)")
    attached = query.format("1", "TUMBLE(TABLE ticks, DESCRIPTOR(ts), INTERVAL '5' SECOND)", ends)
    made = session(tmp_path, rows)
    without = made.changes(grouped)
    assert Counter(without) == Counter(made.changes(attached))
    made.execute(
        "SET 'table.exec.mini-batch.enabled' = 'true'",
        "SET 'table.exec.mini-batch.allow-latency' = '1 min'",
        "SET 'table.exec.mini-batch.size' = '100'",
    )
    assert Counter(made.changes(grouped)) == Counter(without)
    assert Counter(made.changes(attached)) == Counter(without)
    assert sum(row[1] for _, row in without) < len(TIMES)  # some rows are late


@pytest.mark.parametrize("rows", EPOCHS)
def test_windows_of_windows(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    made = session(tmp_path, rows)
    made.execute(
        "CREATE TEMPORARY VIEW fives AS SELECT window_time AS t, COUNT(DISTINCT k) AS d, COUNT(*) AS c"
        " FROM TABLE(TUMBLE(TABLE ticks, DESCRIPTOR(ts), INTERVAL '5' SECOND))"
        " GROUP BY window_start, window_end, window_time"
    )
    changes = made.changes(
        "SELECT EXTRACT(SECOND FROM TUMBLE_END(t, INTERVAL '15' SECOND)) AS e, SUM(d) AS d, SUM(c) AS c"
        " FROM fives GROUP BY TUMBLE(t, INTERVAL '15' SECOND)"
    )
    assert [row for _, row in changes] == [(15, 6, 8), (30, 3, 3)]


NEVER = "(SELECT ts, k, n FROM ticks WHERE n > 5 AND n < 3)"
MINUTE = "DESCRIPTOR(ts), INTERVAL '1' MINUTE"


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (
            f"SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE ticks, {MINUTE})) AS a WHERE NOT EXISTS (SELECT * FROM "
            f"TABLE(TUMBLE({NEVER}, {MINUTE})) AS b WHERE a.window_start = b.window_start "
            "AND a.window_end = b.window_end AND a.n = b.n) GROUP BY window_start, window_end",
            {(13,): 1},
        ),
        (
            f"SELECT SUM(n) FROM TABLE(TUMBLE((TABLE ticks UNION ALL SELECT * FROM {NEVER}), {MINUTE})) "
            "GROUP BY window_start, window_end",
            {(141,): 1},
        ),
        (f"SELECT COUNT(*) FROM TABLE(TUMBLE({NEVER}, {MINUTE})) GROUP BY window_start, window_end", {}),
    ],
)
def test_a_condition_that_never_holds(
    tmp_path: Path, spark: SparkSession, query: str, rows: dict[tuple[int], int]
) -> None:
    """No row is read for it, and what works by time goes on."""
    assert folded(session(tmp_path, 0).changes(query)) == Counter(rows)


def test_a_row_without_time_is_an_error(tmp_path: Path, spark: SparkSession) -> None:
    made = session(tmp_path, 0)
    path = tmp_path / "ticks.csv"
    path.write_text("2024-05-01 00:00:01,a,1\n,b,2\n")
    with pytest.raises(Exception, match="RowTime field should not be null"):
        made.changes("SELECT n FROM ticks ORDER BY ts")


def test_time_that_is_lost_is_said(tmp_path: Path, spark: SparkSession) -> None:
    made = session(tmp_path, 0)
    made.execute(
        "CREATE TEMPORARY VIEW pairs AS SELECT a.ts, b.n FROM ticks AS a JOIN ticks AS b ON a.k = b.k"
    )
    with pytest.raises(NotSupportedError, match="a time attribute, but the result of Join has none"):
        made.changes(
            "SELECT window_end, MAX(n) AS m FROM TABLE(TUMBLE(TABLE pairs, DESCRIPTOR(ts),"
            " INTERVAL '5' SECOND)) GROUP BY window_start, window_end"
        )


@pytest.mark.one_case
@pytest.mark.parametrize("rows", [0, 1, 4])
def test_over_by_time_gives_rows_that_stay(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    """What is behind the watermark is late where a frame begins with the key; in a bounded one only 5 is, as
    k1 has had 13 by then."""
    made = session(tmp_path, rows)
    over = "SELECT ts, n, SUM(n) OVER (PARTITION BY k ORDER BY ts {}) AS s FROM ticks"
    changes = made.changes(f"SELECT n, s FROM ({over.format('')})")
    assert sorted(changes) == sorted(("+I", (n, _running(n))) for n in TIMES if n not in BEHIND)
    back = made.changes(f"SELECT n, s FROM ({over.format('ROWS BETWEEN 1 PRECEDING AND CURRENT ROW')})")
    pairs = {1: 1, 3: 4, 7: 10, 11: 18, 13: 24, 25: 38, 2: 2, 4: 6, 8: 12, 12: 20, 24: 36, 26: 50}
    assert sorted(back) == sorted(("+I", pair) for pair in pairs.items())
    made.execute(f"CREATE TEMPORARY VIEW sums AS {over.format('ROWS BETWEEN 1 PRECEDING AND CURRENT ROW')}")
    counted = made.changes(
        "SELECT EXTRACT(SECOND FROM window_end) AS e, COUNT(*) AS c, SUM(s) AS s"
        f" FROM {TUMBLING.format('sums', 'ts', 5)} GROUP BY window_start, window_end"
    )
    # 3 comes out when 7 has been reached: too late for [0, 5).
    assert counted == [("+I", row) for row in ((5, 3, 9), (10, 2, 22), (15, 3, 62), (25, 1, 36), (30, 2, 88))]


def _running(n: int) -> int:
    return sum(t for t in TIMES if t <= n and t % 2 == n % 2 and t not in BEHIND)


def test_a_join_on_equal_times(tmp_path: Path, spark: SparkSession) -> None:
    changes = session(tmp_path, 0).changes(
        "SELECT a.n, b.n AS m FROM ticks AS a JOIN ticks AS b ON a.k = b.k AND a.ts = b.ts"
    )
    # A row behind its watermark is not waited for, and does not meet itself.
    assert sorted(row for _, row in changes) == [(t, t) for t in sorted(TIMES) if t not in (3, 5)]


def test_late_rows_are_counted(tmp_path: Path, spark: SparkSession) -> None:
    made = session(tmp_path, 3)
    made.changes(
        "SELECT window_end, COUNT(DISTINCT n) AS c FROM TABLE(TUMBLE(TABLE ticks, DESCRIPTOR(ts),"
        " INTERVAL '5' SECOND)) GROUP BY window_start, window_end"
    )
    assert sum(p.late for p in made.progress) == 2
    assert sum(p.rows_in for p in made.progress) == len(TIMES)


TUMBLING = "TABLE(TUMBLE(TABLE {}, DESCRIPTOR({}), INTERVAL '{}' SECOND))"


@pytest.mark.parametrize("rows", [0, 1])
def test_the_best_of_each_window(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    changes = session(tmp_path, rows).changes(
        "SELECT e, k, s FROM (SELECT e, k, s, ROW_NUMBER() OVER (PARTITION BY b, e ORDER BY s DESC) AS r FROM"
        " (SELECT window_start AS b, EXTRACT(SECOND FROM window_end) AS e, k, SUM(n) AS s"
        f" FROM {TUMBLING.format('ticks', 'ts', 15)}"
        " GROUP BY window_start, window_end, k)) WHERE r = 1"
    )
    # EXTRACT is no window column: this Top-N shows what it has so far.
    assert folded(changes) == {(15, "k1", 35): 1, (30, "k0", 50): 1}


@pytest.mark.one_case
@pytest.mark.parametrize("rows", [0, 1, 4])
def test_what_works_by_window_gives_rows_that_stay(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    """Last rows and best rows of windows, joined, and counted in larger windows by their own time."""
    made = session(tmp_path, rows)
    ranked = (
        "SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end{} ORDER BY {} DESC) AS r FROM "
    )
    made.execute(
        f"CREATE TEMPORARY VIEW w AS SELECT * FROM {TUMBLING.format('ticks', 'ts', 5)}",
        f"CREATE TEMPORARY VIEW newest AS SELECT * FROM ({ranked.format(', k', 'ts')} w) WHERE r = 1",
        f"CREATE TEMPORARY VIEW best AS SELECT * FROM ({ranked.format('', 'n')} w) WHERE r <= 2",
        "CREATE TEMPORARY VIEW both_ AS SELECT newest.ts AS t, newest.n AS a, best.n AS b,"
        " newest.window_start, newest.window_end, newest.window_time FROM newest LEFT JOIN best"
        " ON newest.window_start = best.window_start AND newest.window_end = best.window_end"
        " AND newest.k = best.k AND best.n <> 4",
    )
    made.execute("CREATE TEMPORARY VIEW pairs AS SELECT t, b FROM both_")
    changes = made.changes("SELECT a, b FROM both_")
    # Of [0, 5) the rows are 1, 4 and 2: 3 comes when 6 was reached.
    expected = [(1, None), (4, 2), *((n, n) for n in (7, 8, 12, 13, 24, 25, 26))]
    assert sorted(changes, key=lambda c: c[1][0]) == [("+I", row) for row in expected]
    counted = made.changes(
        "SELECT EXTRACT(SECOND FROM window_end) AS e, COUNT(*) AS c, SUM(b) AS s"
        f" FROM {TUMBLING.format('pairs', 't', 15)} GROUP BY window_start, window_end"
    )
    assert counted == [("+I", (15, 6, 42)), ("+I", (30, 3, 75))]
    counted = made.changes(
        "SELECT EXTRACT(SECOND FROM window_end) AS e, COUNT(b) AS c FROM both_"
        " GROUP BY window_start, window_end"
    )
    assert sorted(counted) == [("+I", row) for row in ((5, 1), (10, 2), (15, 2), (25, 1), (30, 2))]


@pytest.mark.parametrize("rows", EPOCHS)
def test_the_watermark_of_a_row(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    """That of the rows before it, NULL for the first."""
    made = session(tmp_path, rows)
    shown = made.changes("SELECT n, EXTRACT(SECOND FROM CURRENT_WATERMARK(ts)) AS w FROM ticks WHERE n > 1")
    reached = (None, -1, 2, 2, 6, 6, 6, 10, 11, 11, 23, 23, 23)
    expected = [(t, w % 60) for t, w in zip(TIMES, reached, strict=True) if w is not None]
    assert sorted(row for _, row in shown) == sorted(expected)
    late = made.changes(
        "SELECT n FROM ticks WHERE ts <= CURRENT_WATERMARK(ts) OR CURRENT_WATERMARK(ts) IS NULL"
    )
    assert sorted(row[0] for _, row in late) == [1, 2, 3, 5, 11]


@pytest.mark.parametrize("rows", EPOCHS)
def test_rows_in_time_are_windowed(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    made = session(tmp_path, rows)
    made.execute(
        "CREATE TEMPORARY VIEW early AS SELECT * FROM ticks"
        " WHERE CURRENT_WATERMARK(ts) IS NULL OR ts > CURRENT_WATERMARK(ts)"
    )
    changes = made.changes(
        "SELECT EXTRACT(SECOND FROM window_end) AS e, COUNT(*) AS c FROM TABLE(TUMBLE(TABLE early,"
        " DESCRIPTOR(ts), INTERVAL '15' SECOND)) GROUP BY window_start, window_end"
    )
    # Without 2, 3, 5 and 11, of which a window of fifteen seconds would count the first and the last.
    assert sorted(row for _, row in changes) == [(15, 6), (30, 3)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT CURRENT_WATERMARK(n) FROM ticks", "single rowtime attribute argument, but 'INT'"),
        ("SELECT CURRENT_WATERMARK(ts + INTERVAL '1' SECOND) FROM ticks",
         r"must be a rowtime attribute, but was 'TIMESTAMP\(3\)'"),
        ("SELECT CURRENT_WATERMARK(window_time) FROM (SELECT window_time FROM TABLE(TUMBLE(TABLE ticks,"
         " DESCRIPTOR(ts), INTERVAL '5' SECOND)) GROUP BY window_start, window_end, window_time)",
         "CURRENT_WATERMARK of what an operator gives"),
        ("SELECT a.n FROM ticks AS a JOIN ticks AS b ON a.n = b.n AND a.ts > CURRENT_WATERMARK(a.ts)",
         "CURRENT_WATERMARK is supported in SELECT and WHERE"),
    ],
)  # fmt: skip
def test_where_there_is_no_watermark(tmp_path: Path, spark: SparkSession, query: str, message: str) -> None:
    with pytest.raises(TidemillError, match=message):
        session(tmp_path, 0).changes(query)


@pytest.mark.one_case
@pytest.mark.parametrize(
    ("window", "options"),
    [
        ("HOP(TABLE pair, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND)", {}),
        ("HOP(TABLE pair, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND)", EMITTING),
        ("SESSION(TABLE pair, DESCRIPTOR(ts), INTERVAL '4' SECOND)", {}),
    ],
)
def test_windows_that_wait_for_a_source_behind(
    tmp_path: Path, spark: SparkSession, window: str, options: dict[str, str]
) -> None:
    """What is late by its own source is late, however long the window waits for the other one."""
    for name, times in (("ahead", (1, 12, 5, 30)), ("behind", (2, 3, 4, 5))):
        rows = "".join(f"{t},2024-05-01 00:00:{t:02d}\n" for t in times)
        (tmp_path / f"{name}.csv").write_text(rows)
    answers = []
    for size in (0, 1, 3):
        made = Session({**options, **({"tidemill.epoch.max-rows": str(size)} if size else {})})
        for name in ("ahead", "behind"):
            made.execute(
                f"CREATE TABLE {name} (n INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)"
                f" WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/{name}.csv', 'format' = 'csv')"
            )
        made.execute("CREATE VIEW pair AS SELECT * FROM ahead UNION ALL SELECT * FROM behind")
        answers.append(
            folded(
                made.changes(
                    "SELECT EXTRACT(SECOND FROM window_end) AS e, SUM(n) AS s, COUNT(DISTINCT n) AS d"
                    f" FROM TABLE({window}) GROUP BY window_start, window_end"
                )
            )
        )
    counted = {row[0]: row[1:] for row in answers[0]}
    assert answers[1:] == answers[:1] * 2
    # The 5 of the source that was at 12 counts in [5, 15) alone, and in no session.
    hop = {5: (10, 4), 10: (15, 5), 15: (22, 2), 20: (12, 1), 35: (30, 1), 40: (30, 1)}
    assert counted == (hop if window.startswith("HOP") else {9: (15, 5), 16: (12, 1), 34: (30, 1)})
