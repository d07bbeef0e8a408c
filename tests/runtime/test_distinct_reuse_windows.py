"""Distinct values shared between keys of windows: the plain plan's rows, epoch cuts and late rows alike."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.running import Change, Session
from tests.runtime.test_rescale import run
from tests.visible import lines

OPTION = "table.optimizer.distinct-state-reuse"
SHARED = "each value once, with a bit for each of"
NEW_YEAR = datetime(2025, 1, 1)
FUNCTIONS = {
    "tumble": "TUMBLE(TABLE {}, DESCRIPTOR(ts), INTERVAL '5' SECOND)",
    "hop": "HOP(TABLE {}, DESCRIPTOR(ts), INTERVAL '4' SECOND, INTERVAL '10' SECOND)",
    "cumulate": "CUMULATE(TABLE {}, DESCRIPTOR(ts), INTERVAL '4' SECOND, INTERVAL '12' SECOND)",
    "tumble by months": "TUMBLE(TABLE {}, DESCRIPTOR(ts), INTERVAL '1' MONTH)",
    "cumulate a month": "CUMULATE(TABLE {}, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '1' MONTH)",
}
KNOWN = "CREATE VIEW known AS SELECT * FROM ticks WHERE k IN ('A', 'B', 'other')"
WINDOW = "window_start, window_end"
CHANNELS = f"SELECT k, {WINDOW}, COUNT(DISTINCT id) AS n FROM {{}} GROUP BY k, {WINDOW}"
TWO_KEYS = (
    f"SELECT g, window_time, b, a, COUNT(DISTINCT id) AS n, COUNT(DISTINCT id) AS m, {WINDOW} FROM ("
    "SELECT *, c AS g, CASE WHEN k = 'A' THEN 'x' ELSE 'yy' END AS a, c AS b FROM {}) "
    f"WHERE b = 1 OR b = 2 GROUP BY g, a, b, {WINDOW}, window_time"
)
SHOWN = "k STRING, {}s TIMESTAMP(3), e TIMESTAMP(3), n BIGINT"
SETS = (
    f"SELECT k, c, {WINDOW}, COUNT(DISTINCT id) AS n FROM {{}} WHERE c IN (1, 2) "
    f"GROUP BY {WINDOW}, GROUPING SETS ((k, c), (k), ())"
)
CASES = [(function, CHANNELS) for function in FUNCTIONS]
CASES += [(function, query) for function in ("hop", "cumulate") for query in (TWO_KEYS, SETS)]


def ticks(folder: Path, seed: int, rows: int, *, late: bool = True) -> str:
    """Rows out of order, some ``late`` for some of their windows or all of them."""
    made = random.Random(seed)
    lines, now = [], 0.0
    for _ in range(rows):
        now += made.choice((0, 0.2, 0.5, 3.0 if made.random() < 0.1 else 0.1))
        at = max(0.0, now - made.choice((0, 0, 1, 2, *((4, 9) if late else (0, 1)))))
        k = made.choice(("A", "A", "B", "other", "else", ""))
        c, id_ = made.choice(("0", "1", "2", "")), made.choice(("", *map(str, range(12))))
        lines.append(f"{NEW_YEAR + timedelta(seconds=round(at, 1) - 40)},{k},{c},{id_}\n")
    (folder / "ticks").write_text("".join(lines))
    return (
        f"CREATE TABLE ticks (ts TIMESTAMP(3), k STRING, c INT, id BIGINT, "
        "WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH ('connector' = 'filesystem', "
        f"'path' = '{folder}/ticks', 'format' = 'csv', 'csv.null-literal' = '')"
    )


@pytest.mark.one_case
@pytest.mark.parametrize(("function", "query"), CASES)
def test_the_plain_rows(spark: SparkSession, tmp_path: Path, function: str, query: str) -> None:
    """Rows are in slices, or where a condition looks at them in their windows."""
    table = ticks(tmp_path, 3, 300)
    query = query.format(FUNCTIONS[function].format("known"))
    answers: list[tuple[Counter[Change], int]] = []
    for mode, most in (("OFF", 41), ("AUTO", 0), ("AUTO", 41)):
        session = Session({OPTION: mode, "parallelism.default": "2", "tidemill.epoch.max-rows": str(most)})
        session.execute(table, KNOWN)
        (plan,) = session.changes(f"EXPLAIN {query}")
        assert (SHARED in str(plan)) == (mode == "AUTO")
        rows = Counter(session.changes(query))
        answers.append((rows, sum(p.late for p in session.progress)))
    assert len(answers[0][0]) >= 6
    assert answers[0][1] > 0 or "month" in function
    assert answers[0] == answers[1] == answers[2]


def test_when_it_is_not_done(spark: SparkSession, tmp_path: Path) -> None:
    """What shows more than the ends of windows, or goes by a clock; and rows that go again."""
    session = Session({})
    session.execute(ticks(tmp_path, 3, 5), KNOWN)
    tumbling = CHANNELS.format(FUNCTIONS["tumble"].format("known"))
    early = {"table.exec.emit.early-fire.enabled": "true", "table.exec.emit.early-fire.delay": "0 ms"}
    by_clock = tumbling.replace("TABLE known", "TABLE clocked").replace("(ts)", "(pt)")
    session.execute("CREATE VIEW clocked AS SELECT *, PROCTIME() AS pt FROM known")
    for query, options, done in (
        (tumbling, {}, True),
        (tumbling.replace("COUNT(DISTINCT id)", "COUNT(DISTINCT id), COUNT(*)"), {}, False),
        (tumbling, {OPTION: "OFF"}, False),
        (tumbling, {OPTION: "ON", **early}, False),
        (tumbling, {OPTION: "ON", "tidemill.late-rows.table": "late"}, False),
        (by_clock, {OPTION: "ON"}, False),
        (tumbling.replace("TUMBLE(TABLE known,", "SESSION(TABLE known PARTITION BY k,"), {}, False),
    ):
        session.execute(*(f"SET '{key}' = '{value}'" for key, value in options.items()))
        (plan,) = session.changes(f"EXPLAIN {query}")
        assert (SHARED in str(plan)) == done, (query, options)
        session.execute(*(f"RESET '{key}'" for key in options))


@pytest.mark.thorough
def test_state_is_spread_anew(spark: SparkSession, tmp_path: Path) -> None:
    """Also where a job crashes, and goes on with other partitions."""
    queries = {name: CHANNELS.format(FUNCTIONS[name].format("known")) for name in ("hop", "cumulate")}
    queries["sets"] = SETS.format(FUNCTIONS["tumble"].format("known"))
    tables = [ticks(tmp_path, 5, 130, late=False), KNOWN]
    batch = Session({"execution.runtime-mode": "batch"})
    batch.execute(*tables)
    expected = [sorted(",".join(map(_text, row)) for _, row in batch.changes(q)) for q in queries.values()]
    sinks = [
        f"CREATE TABLE {name} ({columns}) WITH ('connector'='filesystem', 'path'='{tmp_path}/{name}', "
        "'format'='csv')"
        for name, columns in (
            ("hop", SHOWN.format("")),
            ("cumulate", SHOWN.format("")),
            ("sets", SHOWN.format("c INT, ")),
        )
    ]
    inserts = "; ".join(f"INSERT INTO {name} {query}" for name, query in queries.items())
    run(tmp_path, *tables, *sinks, f"EXECUTE STATEMENT SET BEGIN {inserts}; END")
    found = [[line.replace('"', "") for line in lines(tmp_path / name)] for name in queries]
    assert [sorted(each) for each in found] == expected
    assert min(map(len, expected)) > 10


def _text(value: object) -> str:
    return "" if value is None else str(value)
