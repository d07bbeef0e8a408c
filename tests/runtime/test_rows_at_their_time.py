"""Windows over rows that come when their time has come, and over changes that a join by time gives."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.running import Session, folded
from tidemill.plan.optimizer import optimize
from tidemill.runtime import graph as g
from tidemill.runtime.job.graphs import unread_job
from tidemill.session import binding, planning
from tidemill.session.context import SessionContext
from tidemill.session.dispatch import execute
from tidemill.sql import statements as s
from tidemill.sql.parser import parse_statement

TICKS = (
    "CREATE TABLE ticks (k STRING, n INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '0.001' SECOND)"
    " WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')"
)
RATES = (
    "CREATE TABLE rates (k STRING, rate INT, rt TIMESTAMP(3), WATERMARK FOR rt AS rt, PRIMARY KEY (k) NOT"
    " ENFORCED) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'debezium-json',"
    " 'debezium-json.timestamp-format.standard' = 'SQL')"
)
AT_THEIR_TIME = {
    "results of windows": "SELECT k, window_time AS t FROM TABLE(TUMBLE(TABLE ticks, DESCRIPTOR(ts),"
    " INTERVAL '1' MINUTE)) GROUP BY k, window_start, window_end, window_time",
    "a first row": "SELECT k, ts AS t FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k, n ORDER BY ts) AS p"
    " FROM ticks) WHERE p = 1",
    "a match": "SELECT k, t FROM ticks MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES"
    " MATCH_ROWTIME() AS t ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (a) DEFINE a AS n > 0)",
    "a temporal join": "SELECT ticks.k, ts AS t FROM ticks LEFT JOIN rates FOR SYSTEM_TIME AS OF ticks.ts"
    " ON ticks.k = rates.k",
    "a running sum": "SELECT k, t FROM (SELECT k, ts AS t, SUM(n) OVER (PARTITION BY k ORDER BY ts) AS s"
    " FROM ticks) WHERE s > 0",
    "a union of these": "SELECT k, ts AS t FROM ticks UNION ALL SELECT k, window_time FROM TABLE(TUMBLE(TABLE"
    " ticks, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY k, window_start, window_end, window_time",
}
AS_THEY_COME = {
    "a table": "SELECT k, ts AS t FROM ticks WHERE n > 0",
    "a last row": "SELECT k, ts AS t FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k, n ORDER BY ts DESC)"
    " AS p FROM ticks) WHERE p = 1",
}
WINDOWS = {"SESSION": "INTERVAL '2' MINUTE", "DYNAMIC_CUMULATE": "INTERVAL '1' MINUTE, INTERVAL '2' MINUTE"}


@pytest.mark.parametrize("mini_batch", ["false", "true"])
@pytest.mark.parametrize("kind", WINDOWS)
@pytest.mark.parametrize("name", [*AT_THEIR_TIME, *AS_THEY_COME])
def test_who_waits_for_the_last_row(name: str, kind: str, mini_batch: str) -> None:
    """A window that rows make is held back where they come with the watermark of their time, else not."""
    context, by = SessionContext(), f"{kind}(t, {WINDOWS[kind]})"
    execute(parse_statement(f"SET 'table.exec.mini-batch.enabled' = '{mini_batch}'"), context)
    for table in (TICKS, RATES):
        execute(parse_statement(table.format(path="/t")), context)
    rows = (AT_THEIR_TIME | AS_THEY_COME)[name]
    query = parse_statement(
        f"SELECT k, {kind}_END(t, {WINDOWS[kind]}), COUNT(*) FROM ({rows}) GROUP BY k, {by}"
    )
    assert isinstance(query, s.Query)
    roots = planning.physical_job(context.configuration, [optimize(binding.bind(context, query))])
    outputs, _ = unread_job(roots, context.configuration, frames={}, zone=context.time_zone)
    (output,) = outputs.values()
    top = next(node for node in output.walk() if isinstance(node, g.Keyed))
    assert [port.behind for port in top.ports] == [int(name in AT_THEIR_TIME)]


@pytest.mark.parametrize("rows", [0, 1])
def test_sessions_of_what_windows_give(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    """Two windows whose last milliseconds are one gap apart are one session, as in batch."""
    path = tmp_path / "ticks.csv"
    minutes = (("a", 0), ("a", 2), ("b", 3), ("a", 4), ("b", 6), ("a", 9))
    path.write_text("".join(f"{k},1,2024-05-01 10:{minute:02d}:10\n" for k, minute in minutes))
    session = Session({"tidemill.epoch.max-rows": str(rows)} if rows else {})
    session.execute(TICKS.format(path=path))
    found = session.changes(
        "SELECT k, EXTRACT(MINUTE FROM SESSION_START(t, INTERVAL '2' MINUTE)), COUNT(*) FROM "
        f"({AT_THEIR_TIME['results of windows']}) GROUP BY k, SESSION(t, INTERVAL '2' MINUTE)"
    )
    assert folded(found) == Counter({("a", 0, 3): 1, ("b", 3, 1): 1, ("b", 6, 1): 1, ("a", 9, 1): 1})


@pytest.mark.parametrize("rows", [0, 1])
def test_a_row_that_goes_too_late_is_in_its_window(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    """The row of 10:10 goes when 10:00 to 11:00 has ended, be it in the epoch in which it came."""
    orders, rates = tmp_path / "orders.json", tmp_path / "rates.json"
    times = {1: "10:10", 2: "12:30", 3: "15:30"}
    changes = [("c", 1), ("c", 2), ("d", 1), ("c", 3)]
    lines = []
    for op, number in changes:
        row = {"id": number, "k": "a", "ts": f"2024-05-01 {times[number]}:00"}
        lines.append({"op": op, "before": row if op == "d" else None, "after": None if op == "d" else row})
    orders.write_text("".join(json.dumps(line) + "\n" for line in lines))
    rate = {"k": "a", "rate": 7, "rt": "2024-05-01 10:00:00"}
    rates.write_text(json.dumps({"op": "c", "before": None, "after": rate}) + "\n")
    session = Session({"tidemill.epoch.max-rows": str(rows)} if rows else {})
    session.execute(
        "CREATE TABLE orders (id INT, k STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' HOUR,"
        f" PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = '{orders}', 'format' ="
        " 'debezium-json', 'debezium-json.timestamp-format.standard' = 'SQL')",
        RATES.format(path=rates),
    )
    joined = (
        "SELECT o.id, r.rate, o.ts FROM orders o LEFT JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k"
    )
    found = session.changes(
        "SELECT EXTRACT(HOUR FROM window_start), COUNT(*), SUM(rate) FROM TABLE(TUMBLE("
        f"({joined}), DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY window_start, window_end"
    )
    assert found == [("+I", (10, 1, 7)), ("+I", (12, 1, 7)), ("+I", (15, 1, 7))]


def test_a_first_row_is_in_both_windows_of_a_join(tmp_path: Path, spark: SparkSession) -> None:
    """The operator of the first rows runs once for each side, and Spark runs both sides in one task."""
    path = tmp_path / "ticks.csv"
    path.write_text("a,1,2024-05-01 10:00:10\na,1,2024-05-01 10:00:20\nb,2,2024-05-01 10:01:10\n")
    session = Session({"parallelism.default": "1", "tidemill.epoch.max-rows": "2"})
    session.execute(TICKS.format(path=path))

    def windows(columns: str) -> str:
        first = (
            f"SELECT {columns}, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k, n ORDER BY ts) AS p"
            " FROM ticks) WHERE p = 1"
        )
        return f"TABLE(CUMULATE(({first}), DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE))"

    found = session.changes(
        f"SELECT x.n, y.k, y.n, EXTRACT(MINUTE FROM y.window_end) FROM {windows('n')} AS x JOIN"
        f" {windows('k, n')} AS y ON x.window_start = y.window_start AND x.window_end = y.window_end"
    )
    assert folded(found) == Counter([(1, "a", 1, 0), (1, "a", 1, 1), (2, "b", 2, 1), (2, "b", 2, 2)])
