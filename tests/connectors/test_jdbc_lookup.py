"""Asking a database by key: what is found, how often it is asked, and what happens when it is not there."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

from tests.runtime.databases import query
from tidemill.connectors.jdbc.lookup import KEYS_PER_REQUEST, JdbcLookup
from tidemill.connectors.jdbc.urls import Database
from tidemill.errors import ConnectorError
from tidemill.types import logical as t
from tidemill.types.logical import Field

FIELDS = (Field("id", t.INT), Field("name", t.STRING), Field("day", t.DATE))


def table(tmp_path: Path, keys: tuple[str, ...], **more: object) -> JdbcLookup:
    url = f"jdbc:sqlite:{tmp_path}/shop.db"
    made = {"database": Database(url), "table": "goods", "fields": FIELDS, "keys": keys, "retries": 2} | more
    return JdbcLookup(**made)  # type: ignore[arg-type]


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
