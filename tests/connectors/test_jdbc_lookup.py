"""Asking a database by key: what is found, how often it is asked, and what happens when it is not there."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.connectors.postgres import Server
from tests.runtime.databases import query
from tidemill.connectors.jdbc.lookup import KEYS_PER_REQUEST, JdbcLookup
from tidemill.connectors.jdbc.urls import Database
from tidemill.errors import ConnectorError
from tidemill.types import logical as t
from tidemill.types.logical import Field

FIELDS = (Field("id", t.INT), Field("name", t.STRING), Field("day", t.DATE))


def table(tmp_path: Path, keys: tuple[str, ...], **more: Any) -> JdbcLookup:
    url = f"jdbc:sqlite:{tmp_path}/shop.db"
    made: dict[str, Any] = {
        "database": Database(url),
        "table": "goods",
        "fields": FIELDS,
        "keys": keys,
        "retries": 2,
    } | more
    return JdbcLookup(**made)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    url = f"jdbc:sqlite:{tmp_path}/shop.db"
    query(url, "CREATE TABLE goods (id INTEGER, name TEXT, day TEXT)")
    rows = [(1, "a:b", "2024-05-01"), (1, "c", "2024-05-02"), (2, "a:b", "2024-05-01"), (3, None, None)]
    for row in rows:
        query(url, f"INSERT INTO goods VALUES ({', '.join('NULL' if v is None else repr(v) for v in row)})")
    return tmp_path


def found(table: JdbcLookup, **keys: list[object]) -> tuple[list[tuple[object, ...]], int]:
    types = {f.name: k for f, k in zip(FIELDS, (pa.int32(), pa.string(), pa.date32()), strict=True)}
    answer = table.lookup(pa.table({name: pa.array(v, types[name]) for name, v in keys.items()}))
    rows = [(row["id"], row["name"], str(row["day"])) for row in answer.rows.to_pylist()]
    return sorted(rows, key=str), answer.requests


def test_all_rows_of_a_key(shop: Path) -> None:
    rows, requests = found(table(shop, ("id",)), id=[1, 3, 7])
    assert rows == [(1, "a:b", "2024-05-01"), (1, "c", "2024-05-02"), (3, None, "None")]
    assert requests == 1


def test_several_keys(shop: Path) -> None:
    day = dt.date(2024, 5, 1)
    rows, _ = found(table(shop, ("name", "day")), name=["a:b", "c"], day=[day, day])
    assert rows == [(1, "a:b", "2024-05-01"), (2, "a:b", "2024-05-01")]


def test_many_keys_are_few_requests(shop: Path) -> None:
    rows, requests = found(table(shop, ("id",)), id=list(range(2, 2 + 2 * KEYS_PER_REQUEST + 1)))
    assert [row[0] for row in rows] == [2, 3]
    assert requests == 3


def test_a_database_that_is_down(tmp_path: Path) -> None:
    pauses: list[float] = []
    gone = table(tmp_path / "nowhere", ("id",), pause=pauses.append)
    with pytest.raises(
        ConnectorError, match=r"table 'goods': unable to open database file \(asked 3 times\)"
    ):
        found(gone, id=[1])
    assert pauses == [0.1, 0.2]


COPIED = (
    Field("k", t.STRING),
    Field("n", t.BIGINT),
    Field("d", t.DecimalType(precision=6, scale=2)),
    Field("x", t.DOUBLE),
    Field("b", t.BOOLEAN),
    Field("day", t.DATE),
    Field("ts", t.TimestampType(precision=6)),
    Field("s", t.STRING),
)
TEXTS = ("plain", "", "it's", 'a "b", c', "back\\slash", "two\nlines", "{brace}", "NULL", "é")


def copied_table(postgres: Server, keys: tuple[str, ...], fields: tuple[Field, ...] = COPIED) -> JdbcLookup:
    return JdbcLookup(database=Database(postgres.url), table="goods", fields=fields, keys=keys, retries=0)


@pytest.fixture
def filled(postgres: Server) -> Server:
    postgres.clear()
    query(
        postgres.url,
        "CREATE TABLE goods (k VARCHAR(20), n BIGINT, d NUMERIC, x FLOAT8, b BOOLEAN, day DATE, ts TIMESTAMP,"
        " s TEXT)",
    )
    with postgres.connect() as open:
        for number, key in enumerate(TEXTS):
            open.execute(
                "INSERT INTO goods VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
                (key, number, "1.005", float("nan") if number else float("-inf"), bool(number % 2),
                 dt.date(2024, 5, 1 + number), dt.datetime(2024, 5, 1, 0, 0, number, 100 * number), key),
            )  # fmt: skip
        open.execute("INSERT INTO goods (k, n) VALUES ('null', NULL)")
    return postgres


def test_columns_come_by_copy_as_by_the_driver(filled: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    table = copied_table(filled, ("k",))
    keys = pa.table({"k": pa.array([*TEXTS, "null", "none"])})
    answer = table.lookup(keys)
    assert answer.requests == 1
    rows = sorted(answer.rows.to_pylist(), key=lambda row: str(row["k"]))
    assert sorted(row["k"] for row in rows) == sorted([*TEXTS, "null"])
    assert [row["s"] for row in rows if row["k"] != "null"] == sorted(TEXTS)
    (missing,) = [row for row in rows if row["k"] == "null"]
    assert {v for name, v in missing.items() if name != "k"} == {None}
    (plain,) = [row for row in rows if row["k"] == "plain"]
    assert (plain["n"], plain["d"], plain["x"], plain["b"]) == (0, Decimal("1.01"), float("-inf"), False)
    assert (plain["day"], plain["ts"]) == (dt.date(2024, 5, 1), dt.datetime(2024, 5, 1))
    assert repr(sorted(table.scan().to_pylist(), key=lambda row: str(row["k"]))) == repr(rows)
    monkeypatch.setattr("tidemill.connectors.jdbc.lookup.can_be_copied", lambda fields: False)
    slow = sorted(table.lookup(keys).rows.to_pylist(), key=lambda row: str(row["k"]))
    assert repr(slow) == repr(rows)


def test_what_does_not_fit_is_for_the_driver_to_say(filled: Server) -> None:
    query(filled.url, "UPDATE goods SET d = 123456.7 WHERE k = 'plain'")
    (row,) = copied_table(filled, ("n",)).lookup(pa.table({"n": pa.array([0], pa.int64())})).rows.to_pylist()
    assert (row["k"], row["d"]) == ("plain", None)
    fields = (Field("n", t.BIGINT), Field("k", t.INT))
    with pytest.raises(ConnectorError, match="'goods': a value does not fit"):
        copied_table(filled, ("n",), fields).lookup(pa.table({"n": pa.array([1], pa.int64())}))


def test_several_keys_in_postgres(filled: Server) -> None:
    keys = pa.table({"n": pa.array([0, 1, 2], pa.int64()), "s": pa.array(["plain", "x", "it's"])})
    found = copied_table(filled, ("n", "s")).lookup(keys).rows.to_pylist()
    assert sorted(row["n"] for row in found) == [0, 2]
