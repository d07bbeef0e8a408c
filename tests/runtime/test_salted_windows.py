"""Windows whose DISTINCT values are counted by buckets and added up give what one operator gives."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests import visible
from tests.runtime.running import Crash, Session, crash_at
from tests.runtime.test_event_time import EMITTING
from tidemill.runtime.compile import windows

# Behind the watermark (t - 2) at their place: some of each dozen; late for some of their windows, or all.
TIMES = (1, 4, 2, 8, 7, 3, 12, 13, 11, 25, 24, 5, 26, 26, 27, 21, 40, 33, 39, 41)
VALUES = ("1.5", "NaN", "-0.0", "0.0", "", "NaN", "1e300", "-1e300")
TABLE = "TABLE ticks, DESCRIPTOR(ts)"
HOP = "INTERVAL '5' SECOND, INTERVAL '15' SECOND"
FUNCTIONS = {
    "tumble": f"TUMBLE({TABLE}, INTERVAL '5' SECOND)",
    "hop": f"HOP({TABLE}, {HOP})",
    "cumulate": f"CUMULATE({TABLE}, {HOP})",
}
ONE = (
    "COUNT(DISTINCT n / 3) AS a, SUM(DISTINCT n / 3) AS b, COUNT(DISTINCT n / 3) FILTER (WHERE n > 4) AS c,"
    " COUNT(*) AS d, SUM(n) AS e, MAX(n) AS f, MIN(k) AS g, MAX(NULLIF(n, n)) AS h, AVG(n) AS i,"
    " AVG(DISTINCT n / 3) AS j, AVG(NULLIF(n, n)) AS l"
)
SEVERAL = (
    "COUNT(DISTINCT k) AS a, SUM(DISTINCT n / 3) AS b, COUNT(DISTINCT n / 4) FILTER (WHERE n > 2) AS c,"
    " COUNT(*) AS d, SUM(n) AS e, MAX(n) FILTER (WHERE n < 20) AS f, MIN(k) AS g, COUNT(DISTINCT x) AS h,"
    " AVG(n) AS i, AVG(DISTINCT n) AS j, COUNT(NULLIF(n, 4)) AS l, COUNT(DISTINCT NULLIF(n, n)) AS m,"
    " MIN(n / 4) FILTER (WHERE n > 2) AS o"
)
GROWING = {
    "session": "SESSION(TABLE ticks{}, DESCRIPTOR(ts), INTERVAL '3' SECOND)",
    "curve": "DYNAMIC_CUMULATE(TABLE ticks{}, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '4' SECOND)",
    "endless curve": "DYNAMIC_CUMULATE(TABLE ticks{}, DESCRIPTOR(ts), INTERVAL '2' SECOND)",
}
CALLS = pytest.mark.parametrize("calls", [ONE, SEVERAL], ids=["one", "several"])
CUTS = pytest.mark.parametrize("rows", [0, 2, 5])


def session(tmp_path: Path, rows: int, **options: str) -> Session:
    lines = [f"2024-05-01 00:00:{t:02d},k{t % 3},{t},{VALUES[(t * 5) % len(VALUES)]}\n" for t in TIMES]
    columns = "ts TIMESTAMP(3), k STRING, n INT, x DOUBLE, pt AS PROCTIME()"
    return session_on(tmp_path, lines, columns, "'format' = 'csv', 'csv.null-literal' = ''", rows, options)


def session_on(
    folder: Path, lines: list[str], columns: str, form: str, rows: int, options: dict[str, str]
) -> Session:
    """With a table ``ticks`` of these ``lines``, its watermark 2 s behind."""
    if not (folder / "ticks").exists():
        (folder / "ticks").write_text("".join(lines))
    made = Session({"tidemill.epoch.max-rows": str(rows)} if rows else {})
    made.execute(
        f"CREATE TABLE ticks ({columns}, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)"
        f" WITH ('connector' = 'filesystem', 'path' = '{folder}/ticks', {form})",
        *(f"SET '{key}' = '{value}'" for key, value in options.items()),
    )
    return made


def check(made: Session, query: str, *, buckets: int = 7) -> list[tuple[str, tuple[object, ...]]]:
    """The changes of ``query``, the same with and without buckets."""
    made.execute("SET 'table.optimizer.agg-phase-strategy' = 'ONE_PHASE'")
    whole, late = made.changes(query), sum(p.late for p in made.progress)
    assert "buckets" not in explained(made, query)
    made.execute("RESET 'table.optimizer.agg-phase-strategy'")
    made.execute("SET 'table.optimizer.distinct-agg.split.enabled' = 'true'")
    made.execute(f"SET 'table.optimizer.distinct-agg.split.bucket-num' = '{buckets}'")
    assert f"the sum of {buckets} buckets by" in explained(made, query)
    made.progress.clear()
    changes = made.changes(query)
    assert Counter(changes) == Counter(whole)
    assert sum(p.late for p in made.progress) == late
    return changes


def explained(made: Session, query: str) -> str:
    return str(list(made.environment.execute_sql(f"EXPLAIN {query}").collect()))


@pytest.mark.one_case
@CUTS
@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize(("keys", "calls"), [("MOD(n, 2), ", ONE), ("", SEVERAL)], ids=["keyed", "all"])
def test_window_functions(
    tmp_path: Path, spark: SparkSession, rows: int, calls: str, function: str, keys: str
) -> None:
    query = (
        f"SELECT {keys}window_start, window_end, {calls} FROM {function}"
        f" GROUP BY {keys}window_start, window_end"
    )
    assert len(check(session(tmp_path, rows), query)) > 4


@pytest.mark.thorough
@pytest.mark.parametrize("rows", [2, 5])
@pytest.mark.parametrize("function", GROWING.values(), ids=GROWING)
@pytest.mark.parametrize(("keys", "calls"), [("", ONE), ("k, ", SEVERAL)], ids=["one", "several by key"])
def test_windows_that_rows_make(
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    rows: int,
    calls: str,
    function: str,
    keys: str,
) -> None:
    """All buckets have the same bounds, and rows are late in all of them or in none."""
    monkeypatch.setattr(windows, "HOT_ROWS", 1)
    made_of = function.format(" PARTITION BY k" if keys else "")
    query = (
        f"SELECT {keys}window_end, window_start, {calls}, window_time FROM {made_of}"
        f" GROUP BY {keys}window_start, window_end, window_time"
    )
    assert len(check(session(tmp_path, rows), query)) > 3


@pytest.mark.thorough
@pytest.mark.parametrize("rows", [0, 2])
@pytest.mark.parametrize(
    "window",
    ["SESSION(ts, INTERVAL '3' SECOND)", "DYNAMIC_CUMULATE(ts, INTERVAL '2' SECOND, INTERVAL '4' SECOND)"],
)
def test_windows_that_rows_make_and_take_back(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, rows: int, window: str
) -> None:
    """With early and late results every epoch shows the same."""
    monkeypatch.setattr(windows, "HOT_ROWS", 2)
    lines = []
    for place, t in enumerate(TIMES):
        row = f'"ts":"2024-05-01 00:00:{t:02d}","k":"k{t % 3}","n":{t},"x":{t % 4}'
        lines.append(f'{{"op":"c","before":null,"after":{{"id":{place},{row}}}}}\n')
        if place % 4 == 1:
            lines.append(f'{{"op":"d","before":{{"id":{place},{row}}},"after":null}}\n')
    columns = "id INT, ts TIMESTAMP(3), k STRING, n INT, x DOUBLE"
    made = session_on(tmp_path, lines, columns, "'format' = 'debezium-json'", rows, EMITTING)
    bounds = ", ".join(window.replace("(", f"_{each}(", 1) for each in ("START", "END"))
    check(made, f"SELECT MOD(n, 2) AS odd, {bounds}, {SEVERAL} FROM ticks GROUP BY MOD(n, 2), {window}")


@pytest.mark.one_case
@CUTS
@pytest.mark.parametrize(
    ("window", "calls"), [("TUMBLE(ts, INTERVAL '5' SECOND)", ONE), (f"HOP(ts, {HOP})", SEVERAL)]
)
@pytest.mark.parametrize("emits", [False, True], ids=["at the end", "early and late"])
def test_group_windows(
    tmp_path: Path, spark: SparkSession, rows: int, window: str, calls: str, emits: bool
) -> None:
    """With early and late results, too: every epoch shows the same changes."""
    made = session(tmp_path, rows, **EMITTING if emits else {})
    start = window.replace("(", "_START(", 1)
    changes = check(
        made, f"SELECT MOD(n, 2) AS odd, {start} AS s, {calls} FROM ticks GROUP BY MOD(n, 2), {window}"
    )
    assert ("-U" in {kind for kind, _ in changes}) == emits or rows == 0


@pytest.mark.one_case
@pytest.mark.parametrize("rows", [0, 1, 4])
@CALLS
def test_updates(tmp_path: Path, spark: SparkSession, rows: int, calls: str) -> None:
    """What is taken back leaves its bucket; the last of a window, the window."""
    lines = []
    for place, t in enumerate(TIMES):
        row = f'"ts":"2024-05-01 00:00:{t:02d}","k":"k{t % 3}","n":{t},"x":{t % 4}'
        lines.append(f'{{"op":"c","before":null,"after":{{"id":{place},{row}}}}}\n')
        if place % 3 == 2:
            before, row = row, row.replace(f'"n":{t}', f'"n":{t + 5}')
            lines.append(f'{{"op":"u","before":{{"id":{place},{before}}},"after":{{"id":{place},{row}}}}}\n')
        if place % 4 == 1:
            lines.append(f'{{"op":"d","before":{{"id":{place},{row}}},"after":null}}\n')
    columns = "id INT, ts TIMESTAMP(3), k STRING, n INT, x DOUBLE"
    made = session_on(tmp_path, lines, columns, "'format' = 'debezium-json'", rows, EMITTING)
    changes = check(
        made,
        f"SELECT MOD(n, 2) AS odd, HOP_END(ts, {HOP}) AS till, {calls} FROM ticks"
        f" GROUP BY MOD(n, 2), HOP(ts, {HOP})",
    )
    assert {"-U", "+U"} <= {kind for kind, _ in changes} or rows == 0


@pytest.mark.thorough
@CALLS
@pytest.mark.parametrize("window", ["TUMBLE", "SESSION"])
def test_by_the_clock(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, calls: str, window: str
) -> None:
    monkeypatch.setattr(windows, "HOT_ROWS", 1)
    query = f"SELECT MOD(n, 2) AS odd, {calls} FROM ticks GROUP BY MOD(n, 2), {window}(pt, INTERVAL '99' DAY)"
    assert len(check(session(tmp_path, 4), query)) == 2


def test_cumulated_windows_that_show_themselves_early_are_one(tmp_path: Path, spark: SparkSession) -> None:
    """A bucket does not know which windows the rows of others show."""
    made = session(tmp_path, 4, **EMITTING)
    made.execute("SET 'table.optimizer.distinct-agg.split.enabled' = 'true'")
    query = f"SELECT {ONE} FROM ticks GROUP BY CUMULATE(ts, {HOP})"
    assert "buckets" not in explained(made, query)


def test_what_does_not_add_up_is_shown_split_and_runs_as_one(tmp_path: Path, spark: SparkSession) -> None:
    """Flink's plan has two; sums of DOUBLE are rounded once, so there is one."""
    made = session(tmp_path, 4)
    query = (
        "SELECT window_start, k, COUNT(DISTINCT n) AS c, SUM(x) AS s, AVG(n) AS a"
        f" FROM {FUNCTIONS['tumble']} GROUP BY window_start, window_end, k"
    )
    whole = made.changes(query)
    made.execute("SET 'table.optimizer.distinct-agg.split.enabled' = 'true'")
    text = explained(made, query)
    assert text.count("GlobalWindowAggregate(") == 4, "two of them, in both plans"
    assert "buckets" not in text
    assert Counter(map(str, made.changes(query))) == Counter(map(str, whole))


def test_parts_have_names_of_their_own(tmp_path: Path, spark: SparkSession) -> None:
    """A key may be called as what is computed of a part, and as the end of its windows."""
    made = session(tmp_path, 4)
    query = (
        "SELECT `$c0`, `$window_end`, COUNT(DISTINCT n) AS a, AVG(n) AS b FROM TUMBLE((SELECT *, k AS `$c0`,"
        " n / 4 AS `$window_end` FROM ticks), DESCRIPTOR(ts), INTERVAL '5' SECOND)"
        " GROUP BY `$c0`, `$window_end`, window_start, window_end"
    )
    assert len(check(made, query)) > 4


def test_a_late_row_is_kept_once(tmp_path: Path, spark: SparkSession) -> None:
    """So several DISTINCT have no copies of rows where those that are late are kept; one has none anyway."""
    made = session(tmp_path, 4)
    made.execute(
        "CREATE TABLE late (op STRING, wm TIMESTAMP_LTZ(3), r STRING) WITH ('connector' = 'blackhole')",
        "SET 'tidemill.late-rows.table' = 'late'",
        "SET 'table.optimizer.distinct-agg.split.enabled' = 'true'",
    )
    query = f"SELECT {{}} FROM {FUNCTIONS['tumble']} GROUP BY k, window_start, window_end"
    assert "buckets" in explained(made, query.format("COUNT(DISTINCT n)"))
    assert "buckets" not in explained(made, query.format("COUNT(DISTINCT n), COUNT(DISTINCT x)"))


def hot(folder: Path, rows: int, **options: str) -> Session:
    """Six in seven rows of one key; every 500th is late."""
    lines = []
    for place in range(12_000):
        second = max(0, place // 100 - (30 if place % 500 == 499 else 0))
        key = f"k{place}" if place % 7 == 0 else "k"
        lines.append(f"2024-05-01 00:{second // 60:02d}:{second % 60:02d},{key},{place % 900},{place % 4}\n")
    columns = "ts TIMESTAMP(3), k STRING, n INT, x INT"
    made = session_on(folder, lines, columns, "'format' = 'csv'", rows, options)
    made.execute(
        "CREATE TABLE seen (k STRING, s TIMESTAMP(3), e TIMESTAMP(3), c BIGINT, d BIGINT, n BIGINT)"
        f" WITH ('connector' = 'filesystem', 'path' = '{folder}/seen', 'format' = 'csv')"
    )
    return made


SEEN = (
    "SELECT k, window_start, window_end, COUNT(DISTINCT n), COUNT(DISTINCT x), COUNT(*)"
    " FROM SESSION(TABLE ticks PARTITION BY k, DESCRIPTOR(ts), INTERVAL '3' SECOND)"
    " GROUP BY k, window_start, window_end"
)


@pytest.mark.thorough
@pytest.mark.parametrize("rows", [0, 2500])
def test_a_hot_key_has_stretches_in_all_buckets(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(windows, "HOT_ROWS", 100)
    changes = check(hot(tmp_path, rows), SEEN)
    assert 900 in {row[3] for _, row in changes}


@pytest.mark.thorough
@pytest.mark.parametrize(("step", "time"), [("ran", 1), ("committed", 1), ("ran", 3), ("committed", 3)])
def test_what_is_hot_stays_hot_after_a_crash(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, step: str, time: int
) -> None:
    """The buckets of a key go on: in others than its rows were in before, its values would count twice."""
    monkeypatch.setattr(windows, "HOT_ROWS", 100)
    options = {
        "execution.checkpointing.dir": str(tmp_path / "checkpoint"),
        "table.optimizer.distinct-agg.split.enabled": "true",
    }
    broken = hot(tmp_path, 2500, **options)
    broken.environment.context.fault = crash_at(step, time)
    with pytest.raises(Crash):
        broken.execute(f"INSERT INTO seen {SEEN}")
    hot(tmp_path, 2500, **options).execute(f"INSERT INTO seen {SEEN}")
    written = [line.replace('"', "") for line in visible.lines(tmp_path / "seen")]
    plain = hot(tmp_path, 2500).changes(SEEN)
    assert len(plain) > 1000
    assert sorted(written) == sorted(",".join(map(str, row)) for _, row in plain)
