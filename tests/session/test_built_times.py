"""CREATE SAVEPOINT ... WITH STATE of operators by event time: open windows, and rows that wait for others."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.session.environment import TableEnvironment

COLUMNS = "city STRING, price INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts"
WINDOWS = "FROM TABLE(TUMBLE(TABLE o, DESCRIPTOR(ts), INTERVAL '1' HOUR))"
JOB = f"""STATEMENT SET BEGIN
INSERT INTO sums SELECT city, window_end, SUM(price), COUNT(*) {WINDOWS}
  GROUP BY city, window_start, window_end;
INSERT INTO pairs SELECT o.city, o.price, c.price
  FROM o JOIN c ON o.city = c.city AND o.ts BETWEEN c.ts - INTERVAL '1' HOUR AND c.ts;
END"""
DUE = "TIMESTAMPDIFF(HOUR, TIMESTAMP '1970-01-01 00:00:00', window_end)"
STATE = f"""window_aggregate_1 (city, due, `SUM(price)`, `COUNT(*)`) AS
  (SELECT city, CAST({DUE} AS BIGINT) * 3600000, SUM(price), COUNT(*) {WINDOWS}
   WHERE window_end > TIMESTAMP '2024-01-01 01:30:00' GROUP BY city, window_start, window_end),
interval_join_1 (`left city`, `left price`, `left ts`) AS (SELECT city, price, ts FROM o),
interval_join_1_right (`right city`, `right price`, `right ts`) AS (SELECT city, price, ts FROM c)"""


def stamped(*rows: str) -> str:
    """Rows of a city, a price, and an hour and minute of the first day of 2024."""
    cells = (row.split() for row in rows)
    return "".join(f"{city},{price},2024-01-01 {time}:00.000\n" for city, price, time in cells)


def session(root: Path, name: str, **options: str) -> TableEnvironment:
    made = new_session(table__dml_sync="true", parallelism__default="2", **options)
    files = "'connector'='filesystem', 'format'='csv'"
    ask(
        made,
        *(f"CREATE TABLE {t} ({COLUMNS}) WITH ({files}, 'path'='{root}/{t}')" for t in ("o", "c")),
        f"CREATE TABLE sums (city STRING, ends TIMESTAMP(3), total INT, n BIGINT) "
        f"WITH ({files}, 'path'='{root}/{name}/sums')",
        f"CREATE TABLE pairs (city STRING, a INT, b INT) WITH ({files}, 'path'='{root}/{name}/pairs')",
    )
    return made


def shown(root: Path, name: str) -> list[list[str]]:
    reading = session(root, name, execution__runtime_mode="batch")
    return [sorted(map(repr, ask(reading, f"SELECT * FROM {table}"))) for table in ("sums", "pairs")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, rows in (
        ("o", ("a 1 00:10", "b 2 00:20", "a 4 01:10", "a 4 01:10", "a 8 01:30")),
        ("c", ("a 10 00:40", "a 20 01:20")),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.csv").write_text(stamped(*rows))
    return tmp_path


@pytest.mark.thorough
def test_a_job_goes_on_with_open_windows_and_waiting_rows(spark: SparkSession, root: Path) -> None:
    made = session(root, "built")
    with pytest.raises(ValidationError, match="column 'due' must be the end of a window, in milliseconds"):
        ask(
            made,
            f"CREATE SAVEPOINT '{root}/new' FOR {JOB} WITH STATE ({STATE.replace('* 3600000', '* 3600')})",
        )
    ask(made, f"CREATE SAVEPOINT '{root}/new' FOR {JOB} WITH STATE ({STATE})")
    (root / "o" / "2.csv").write_text(stamped("a 16 01:40", "b 32 01:50", "a 64 02:10"))
    (root / "c" / "2.csv").write_text(stamped("a 30 01:45", "a 40 02:30"))
    origin = {"execution__state_recovery__path": f"{root}/new", "execution__checkpointing__dir": f"{root}/w"}
    ask(session(root, "with", **origin), f"EXECUTE {JOB}")
    ask(session(root, "without", execution__checkpointing__dir=f"{root}/wo"), f"EXECUTE {JOB}")
    (sums, pairs), (all_sums, all_pairs) = shown(root, "with"), shown(root, "without")
    assert len(sums) == 3, "the windows that end at 2 and 3 o'clock"
    assert sums == [row for row in all_sums if " 1, 0" not in row], all_sums
    # Those of history have been shown: o at 00:10 with c at 00:40, and three rows with c at 01:20 and before.
    before = ["('a', 1, 10)", "('a', 4, 20)", "('a', 4, 20)"]
    assert sorted([*pairs, *before]) == all_pairs
    assert pairs


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (
            "SELECT city, window_end, SUM(price), COUNT(*) FROM TABLE(HOP(TABLE o, DESCRIPTOR(ts), "
            "INTERVAL '1' HOUR, INTERVAL '2' HOUR)) GROUP BY city, window_start, window_end",
            "only that of TUMBLE can",
        ),
        (
            f"SELECT city, window_end, 1, COUNT(DISTINCT price) {WINDOWS} "
            "GROUP BY city, window_start, window_end",
            "more than the accumulators",
        ),
        (
            "SELECT o.city, o.ts, 1, COUNT(*) FROM o LEFT JOIN c ON o.city = c.city AND "
            "o.ts BETWEEN c.ts - INTERVAL '1' HOUR AND c.ts GROUP BY o.city, o.ts",
            "more than the rows of its inputs",
        ),
    ],
)
def test_what_windows_and_joins_have_shown_no_query_tells(root: Path, query: str, why: str) -> None:
    made = session(root, "built")
    ask(
        made,
        "CREATE TABLE changes (city STRING, ends TIMESTAMP(3), total INT, n BIGINT) "
        "WITH ('connector'='blackhole')",
    )
    with pytest.raises(NotSupportedError, match=why):
        ask(
            made,
            f"CREATE SAVEPOINT '{root}/new' FOR INSERT INTO changes {query} WITH STATE (a AS SELECT 1)",
        )
