"""CREATE SAVEPOINT ... WITH STATE of operators by event time: open windows, and rows that wait for others."""

from __future__ import annotations

import datetime as dt
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


SHAPES = {
    "HOP": "HOP(TABLE o, DESCRIPTOR(ts), INTERVAL '30' MINUTE, INTERVAL '1' HOUR)",
    "CUMULATE": "CUMULATE(TABLE o, DESCRIPTOR(ts), INTERVAL '30' MINUTE, INTERVAL '2' HOUR)",
    "SESSION": "SESSION(TABLE o PARTITION BY city, DESCRIPTOR(ts), INTERVAL '20' MINUTE)",
    "TUMBLE": "TUMBLE(TABLE o, DESCRIPTOR(ts), INTERVAL '1' HOUR)",
    "VISIT": "SESSION(TABLE o PARTITION BY city, DESCRIPTOR(ts), INTERVAL '25' MINUTE)",
}
CALLS = dict.fromkeys(SHAPES, "SUM(price)") | dict.fromkeys(
    ("TUMBLE", "VISIT"), "CAST(COUNT(DISTINCT price) AS INT)"
)
_INSERTS = " ".join(
    f"INSERT INTO {kind.lower()}s SELECT city, window_start, window_end, COUNT(*), {CALLS[kind]} "
    f"FROM TABLE({window}) GROUP BY city, window_start, window_end;"
    for kind, window in SHAPES.items()
)
EACH = f"STATEMENT SET BEGIN {_INSERTS} END"
SLICES = "FROM TABLE(TUMBLE(TABLE o, DESCRIPTOR(ts), INTERVAL '{size}' MINUTE))"


def millis(column: str) -> str:
    return f"CAST(TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', {column}) AS BIGINT) * 1000"


def slices(number: int, size: int, after: str, calls: str) -> str:
    """The table of slices that end ``after`` a time."""
    columns = ", ".join(f"`{c}`" for c in ["city", "due", *calls.split(", ")])
    return f"""window_aggregate_{number} ({columns}) AS (SELECT city, {millis("window_end")}, {calls}
     {SLICES.format(size=size)} WHERE window_end > TIMESTAMP '2024-01-01 {after}'
     GROUP BY city, window_start, window_end)"""


def opened(number: int, kind: str, calls: str, values: str) -> str:
    """The table of sessions that are open at half past one, or of their ``values`` with their weights."""
    columns = "price, weight" if values else ", ".join(f"`{c}`" for c in calls.split(", "))
    of = f"city, window_start, window_end{values and ', '}{values}"
    return f"""window_aggregate_{number} (city, session_start, session_end, {columns}) AS (SELECT * FROM (
     SELECT city, {millis("window_start")}, {millis("window_end")} AS e, {calls}
     FROM TABLE({SHAPES[kind]}) GROUP BY {of})
     WHERE e > {millis("TIMESTAMP '2024-01-01 01:30:00'")} + 1)"""


EACH_STATE = f"""{slices(1, 30, "01:00:00", "SUM(price), COUNT(*)")},
{slices(2, 30, "00:00:00", "SUM(price), COUNT(*)")},
{opened(3, "SESSION", "SUM(price), COUNT(*)", "")},
{slices(4, 60, "01:30:00", "COUNT(*)")},
window_aggregate_4_sets_distinct_price (city, due, price) AS (
 SELECT DISTINCT city, {millis("window_end")}, price {SLICES.format(size=60)}
 WHERE window_end > TIMESTAMP '2024-01-01 01:30:00'),
{opened(5, "VISIT", "price, COUNT(*)", "price")}"""


def each_session(root: Path, name: str, **options: str) -> TableEnvironment:
    made = session(root, name, **options)
    ask(
        made,
        *(
            f"CREATE TABLE {kind.lower()}s (city STRING, s TIMESTAMP(3), e TIMESTAMP(3), n BIGINT, x INT) "
            f"WITH ('connector'='filesystem', 'format'='csv', 'path'='{root}/{name}/{kind}')"
            for kind in SHAPES
        ),
    )
    return made


def described(place: Path) -> dict[tuple[str, str], str]:
    """The types of all columns of state, by table and name."""
    reading = new_session(execution__runtime_mode="batch")
    ask(reading, f"CREATE CATALOG s WITH ('type'='savepoint', 'path'='{place}')")
    columns = ask(reading, "SELECT table_name, column_name, `type` FROM s.state.`columns`")
    assert len({table for table, *_ in columns}) > len(SHAPES)
    return {(table, name): kind for table, name, kind in columns}


@pytest.mark.thorough
def test_all_kinds_of_windows_begin_with_history(spark: SparkSession, root: Path) -> None:
    """The watermark of the last row, half past one, says which windows have ended. Late rows count in the
    windows that are open: a row of 01:05 in those of HOP and CUMULATE that end at two o'clock."""
    made = each_session(root, "built", tidemill__savepoint__watermark="2024-01-01 01:30:00")
    ask(made, f"CREATE SAVEPOINT '{root}/new' FOR {EACH} WITH STATE ({EACH_STATE})")
    tables = described(root / "new")
    (root / "o" / "2.csv").write_text(
        stamped("a 16 01:40", "a 8 01:05", "b 32 01:31", "c 1 01:12", "a 64 02:10", "c 5 00:10")
    )
    origin = {"execution__state_recovery__path": f"{root}/new", "execution__checkpointing__dir": f"{root}/w"}
    going_on = each_session(root, "with", **origin)
    ask(going_on, "SET 'parallelism.default' = '3'", f"EXECUTE {EACH}")
    ask(each_session(root, "without", execution__checkpointing__dir=f"{root}/wo"), f"EXECUTE {EACH}")
    read = described(root / "wo")
    assert {c: kind for c, kind in tables.items() if c in read} == read
    for kind in SHAPES:
        found = []
        for name in ("with", "without"):
            reading = each_session(root, name, execution__runtime_mode="batch")
            found.append(set(ask(reading, f"SELECT * FROM {kind.lower()}s")))
        ended = {row for row in found[1] if row[2] <= dt.datetime(2024, 1, 1, 1, 30)}
        assert found[0] == found[1] - ended, kind
        assert len(found[0]) > 2, kind


def test_a_watermark_is_a_time(spark: SparkSession, root: Path) -> None:
    made = each_session(root, "built", tidemill__savepoint__watermark="noon")
    with pytest.raises(ValidationError, match="watermark' is 'noon', and must be a time"):
        ask(made, f"CREATE SAVEPOINT '{root}/new' FOR {EACH} WITH STATE (a AS SELECT 1)")


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (
            "SELECT city, window_end, SUM(price), COUNT(*) FROM TABLE(HOP(TABLE o, DESCRIPTOR(ts), "
            "INTERVAL '1' HOUR, INTERVAL '2' HOUR)) GROUP BY city, window_start, window_end",
            "without a watermark: its windows share rows with windows that have ended",
        ),
        (
            "SELECT city, window_end, SUM(DISTINCT price), COUNT(*) FROM TABLE(CUMULATE(TABLE o, "
            "DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '2' HOUR)) GROUP BY city, window_start, window_end",
            "CUMULATE keeps more of DISTINCT values than their number",
        ),
        (
            "SELECT LISTAGG(city), window_end, 1, COUNT(*) FROM TABLE(SESSION(TABLE o PARTITION BY price, "
            "DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY price, window_start, window_end",
            "more than accumulators and values",
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
