"""Totals of real sales that bad rows have spoilt: mended in a savepoint, they go on as if the rows had never
been there."""

from __future__ import annotations

import csv
import sqlite3
import time
from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.goldens.comparer import SHARED
from tests.session.environments import ask, new_session
from tidemill.session.environment import TableEnvironment

SALES = SHARED / "data" / "online_retail"
DAYS = sorted(SALES.glob("*.csv"))[:5]
BEFORE, SPOILT = 2, "France"
"""Days before the savepoint; the country of which bad rows come."""
LATER = "Japan"
"""No sale before the savepoint is from there."""
SECONDS = 120.0
INSERT = (
    "INSERT INTO totals SELECT Country, COUNT(*), SUM(Quantity), CAST(SUM(pence) AS BIGINT), MAX(Quantity), "
    "CAST(MIN(UnitPrice) * 100 AS BIGINT) FROM "
    "(SELECT *, CAST(Quantity * UnitPrice * 100 AS BIGINT) AS pence FROM sales) GROUP BY Country"
)
Sale = list[str]
Total = tuple[int, int, int, int, int]

pytestmark = pytest.mark.skipif(not DAYS, reason="the real sales are not there")


def sales(day: Path) -> list[Sale]:
    with day.open(newline="") as file:
        return list(csv.reader(file))


def totals(rows: Sequence[Sale]) -> dict[str, Total]:
    """By country: rows, quantity, pence, largest quantity, least price in pence."""
    found = defaultdict[str, list[tuple[int, int]]](list)
    for _, _, _, quantity, _, price, _, country in rows:
        found[country].append((int(quantity), int(Decimal(price) * 100)))
    return {
        country: (
            len(own),
            sum(q for q, _ in own),
            sum(q * p for q, p in own),
            max(q for q, _ in own),
            min(p for _, p in own),
        )
        for country, own in found.items()
    }


def bad(rows: Sequence[Sale]) -> list[Sale]:
    """Sales of the spoilt country once more, a thousand times as many for nothing; and some elsewhere."""
    own = [row for row in rows if row[7] == SPOILT][:7]
    more = [[*row[:3], str(int(row[3]) * 1000), row[4], "0.0", *row[6:]] for row in own]
    return [*more, *([*row[:7], LATER] for row in more[:3])]


def put(folder: Path, name: str, rows: Sequence[Sale]) -> None:
    with (folder / "in" / f".{name}").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    (folder / "in" / f".{name}").rename(folder / "in" / f"{name}.csv")


def shows(folder: Path, wanted: dict[str, Total]) -> None:
    """Waits until the sink has these totals."""
    end, got = time.monotonic() + SECONDS, None
    while got != wanted:
        assert time.monotonic() < end, (got, wanted)
        time.sleep(0.05)
        with sqlite3.connect(folder / "db") as db:
            got = {country: total for country, *total in db.execute("SELECT * FROM totals").fetchall()}
            got = {country: tuple(total) for country, total in got.items()}


def session(folder: Path, checkpoint: str, parallelism: int, **more: str) -> TableEnvironment:
    made = new_session(
        parallelism__default=str(parallelism),
        execution__checkpointing__dir=str(folder / checkpoint),
        tidemill__epoch__max_rows="1500",
        **more,
    )
    ask(
        made,
        "CREATE TABLE sales (InvoiceNo STRING, StockCode STRING, Description STRING, Quantity INT, "
        "InvoiceDate TIMESTAMP(0), UnitPrice DECIMAL(10, 2), CustomerID STRING, Country STRING) WITH "
        f"('connector'='filesystem', 'path'='{folder}/in', 'format'='csv', "
        "'source.monitor-interval'='100 ms')",
        "CREATE TABLE totals (country STRING, n BIGINT, quantity BIGINT, pence BIGINT, largest INT, "
        "least BIGINT, PRIMARY KEY (country) NOT ENFORCED) WITH ('connector'='jdbc', "
        f"'url'='jdbc:sqlite:{folder}/db', 'table-name'='totals')",
    )
    return made


def mend(folder: Path, savepoint: str, right: Total) -> str:
    """A savepoint with the right totals of the spoilt country, and without the other one."""
    editor = new_session(execution__runtime_mode="batch", parallelism__default="2")
    ask(editor, f"CREATE CATALOG s0 WITH ('type'='savepoint', 'path'='{savepoint}')")
    payload = ask(editor, "SELECT column_name FROM s0.state.`columns` WHERE `role` = 'payload'")
    (pence,) = (name for (name,) in payload if name.startswith("SUM") and "UnitPrice" in name)
    rows, quantity, worth, largest, least = right
    values = {
        "COUNT(*)": rows,
        "SUM(Quantity)": quantity,
        pence: worth,
        "MAX(Quantity)": largest,
        "MIN(UnitPrice)": Decimal(least) / 100,
    }
    assert set(values) == {name for (name,) in payload}
    sets = ", ".join(f"`{name}` = {value}" for name, value in values.items())
    ask(editor, f"SET 'tidemill.savepoint.target' = '{folder}/updated'")
    editor.execute_sql(f"UPDATE s0.state.group_aggregate_1 SET {sets} WHERE Country = '{SPOILT}'").wait()
    ask(
        editor,
        f"CREATE CATALOG s1 WITH ('type'='savepoint', 'path'='{folder}/updated')",
        f"SET 'tidemill.savepoint.target' = '{folder}/mended'",
    )
    editor.execute_sql(f"DELETE FROM s1.state.group_aggregate_1 WHERE Country = '{LATER}'").wait()
    return f"{folder}/mended"


def test_mended_totals_go_on_as_if_bad_rows_had_never_come(spark: SparkSession, tmp_path: Path) -> None:
    days = [sales(day) for day in DAYS]
    before, after = ([row for day in part for row in day] for part in (days[:BEFORE], days[BEFORE:]))
    spoiling = bad(before)
    right, last = totals(before), totals(before + after)
    assert len(spoiling) == 10
    assert LATER not in right
    # Each country that is mended has a sale afterwards, which shows its total.
    assert {SPOILT, LATER} <= set(totals(after))
    (tmp_path / "in").mkdir()
    with sqlite3.connect(tmp_path / "db") as db:
        db.execute(
            "CREATE TABLE totals (country TEXT PRIMARY KEY, n BIGINT, quantity BIGINT, pence BIGINT, "
            "largest INT, least BIGINT)"
        )
    job = session(tmp_path, "first", 2).execute_sql(INSERT).job
    assert job is not None
    for number, day in enumerate(days[:BEFORE]):
        put(tmp_path, f"day{number}", day)
    put(tmp_path, "bad", spoiling)
    spoilt = totals(before + spoiling)
    assert {country for country in spoilt if spoilt[country] != right.get(country)} == {SPOILT, LATER}
    shows(tmp_path, spoilt)
    savepoint = job.stop_with_savepoint(str(tmp_path / "kept"))
    mended = mend(tmp_path, savepoint, right[SPOILT])
    going_on = session(tmp_path, "second", 3, execution__state_recovery__path=mended)
    job = going_on.execute_sql(INSERT).job
    assert job is not None
    for number, day in enumerate(days[BEFORE:], BEFORE):
        put(tmp_path, f"day{number}", day)
    shows(tmp_path, last)
    job.cancel()
