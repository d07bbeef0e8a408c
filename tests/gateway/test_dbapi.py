"""The DB-API's values, in Arrow as Tidemill's gateway gives them and in JSON as Flink's does; canceling."""

from __future__ import annotations

import datetime as dt
import json
import threading
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.gateway.fakes import Gate, gateway
from tidemill import dbapi
from tidemill.changelog.rowkind import KIND_COLUMN
from tidemill.client.gateway_client import GatewayClient
from tidemill.config.option import Configuration
from tidemill.dbapi import pages
from tidemill.dbapi.connection import Connection
from tidemill.dbapi.values import type_code
from tidemill.errors import ConnectorError
from tidemill.functions.text.endpoint_json import endpoint_json
from tidemill.gateway.endpoints.rest import arrow_pages
from tidemill.gateway.endpoints.rest.endpoint import RestEndpoint
from tidemill.gateway.endpoints.rest.types import type_json
from tidemill.types import logical as t
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_type

ROW = t.RowType(fields=(Field("a b", t.INT), Field("at", t.TimeType())))
MAP = t.MapType(key=t.INT, value=ROW)
INSTANT = dt.datetime(2020, 1, 1, 0, 0, 0, 120_000, dt.UTC)
CLOCK, TIME = 36_672_000, dt.time(10, 11, 12)
CASES: list[tuple[t.LogicalType, Any, Any, Any]] = [
    (t.BIGINT, 2**63 - 1, 2**63 - 1, 2**63 - 1),
    (t.DecimalType(precision=5, scale=2), Decimal("1.50"), Decimal("1.50"), Decimal("1.50")),
    (t.STRING, "é", "é", "é"),
    (t.BYTES, b"\xff", b"\xff", b"\xff"),
    (t.DATE, dt.date(7, 2, 3), dt.date(7, 2, 3), dt.date(7, 2, 3)),
    (t.TimeType(), CLOCK, TIME, TIME),
    (t.LocalZonedTimestampType(precision=3), INSTANT, INSTANT, INSTANT),
    (t.DayTimeIntervalType(), -1500, dt.timedelta(seconds=-1.5), dt.timedelta(seconds=-1.5)),
    (t.ArrayType(element=t.TimeType()), [CLOCK, None], [TIME, None], [TIME, None]),
    (ROW, {"a b": 1, "at": None}, (1, None), {"a b": 1, "at": None}),
    (
        MAP,
        [{"key": 7, "value": {"a b": 1, "at": CLOCK}}],
        {7: (1, TIME)},
        [{"key": 7, "value": {"a b": 1, "at": TIME}}],
    ),
    (t.MultisetType(element=t.INT), [{"key": 7, "value": 2}], {7: 2}, [{"key": 7, "value": 2}]),
]  # fmt: skip


def columns(kind: t.LogicalType) -> list[dict[str, Any]]:
    return [{"name": "v", "logicalType": type_json(kind)}]


@pytest.mark.parametrize(("kind", "carried", "value", "in_arrow"), CASES, ids=[str(c[0]) for c in CASES])
def test_a_value_as_python_knows_it(kind: t.LogicalType, carried: Any, value: Any, in_arrow: Any) -> None:
    carriers = pa.table({"v": pa.array([carried, None], arrow_type(kind))})
    page = arrow_pages.read(arrow_pages.written(carriers, {"columns": columns(kind)}))["results"]
    ((row, empty),) = map(list, pages.changes(page["columns"], [page["data"]]))
    assert (row, empty) == (("INSERT", (value,)), ("INSERT", (None,)))
    assert pages.table(page["columns"], [page["data"]]).to_pydict() == {"v": [in_arrow, None]}
    assert pages.table(page["columns"], []).schema == pages.table(page["columns"], [page["data"]]).schema


@pytest.mark.parametrize(("kind", "carried", "value"), [c[:3] for c in CASES], ids=[str(c[0]) for c in CASES])
def test_json_has_the_same_values_but_keys_of_maps(kind: t.LogicalType, carried: Any, value: Any) -> None:
    written = (
        f'{{"kind": "INSERT", "fields": [{"null" if carried is None else endpoint_json(kind)(carried)}]}}'
    )
    page = json.loads(written, parse_float=Decimal)
    ((row,),) = map(list, pages.changes(columns(kind), [[page]]))
    keyed = {str(k): v for k, v in value.items()} if isinstance(value, dict) else value
    assert row == ("INSERT", (keyed,))


def test_names_by_which_libraries_know_types_and_rows() -> None:
    """polars reads ``ARRAY<...>``, and fails at a bare ARRAY; a tuple with named values is a struct to it."""
    assert type_code(type_json(t.ArrayType(element=t.ArrayType(element=t.INT)))) == "ARRAY<ARRAY<INTEGER>>"
    decimals = t.ArrayType(element=t.DecimalType(precision=5, scale=2))
    assert type_code(type_json(decimals)) == "ARRAY<DECIMAL(5, 2)>"
    assert type_code(type_json(MAP)) == "MAP"
    carriers = pa.table({"v": pa.array([{"a b": 1, "at": None}], arrow_type(ROW))})
    (((_, (row,)),),) = map(list, pages.changes(columns(ROW), [carriers]))
    assert (row._fields, row._asdict()) == (("a b", "at"), {"a b": 1, "at": None})


def test_a_changelog_is_no_table() -> None:
    inserts = pa.table({"v": [1, 2], KIND_COLUMN: pa.array([0, 0], pa.int8())})
    assert pages.table(columns(t.BIGINT), [inserts]).to_pydict() == {"v": [1, 2]}
    deletes = pa.table({"v": [1, 2], KIND_COLUMN: pa.array([0, 3], pa.int8())})
    with pytest.raises(dbapi.NotSupportedError, match=r"changes\(\) reads it"):
        pages.table(columns(t.BIGINT), [inserts, deletes])


def test_pages_of_another_version_are_refused() -> None:
    content = arrow_pages.written(pa.table({"v": [1]}), {"version": 2, "columns": []})
    with pytest.raises(ConnectorError, match="different versions"):
        arrow_pages.read(content)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    made, _ = gateway(tmp_path_factory.mktemp("gateway"), {"wait": GATE})
    endpoint = RestEndpoint(made, Configuration({"sql-gateway.endpoint.rest.port": "0"}))
    endpoint.start()
    yield endpoint.address
    endpoint.stop()
    made.close()


GATE = Gate()


def test_rows_come_in_arrow_where_the_gateway_has_it(address: str) -> None:
    with dbapi.connect(address) as connection, connection.cursor() as cursor:
        assert cursor.execute("x").fetch_arrow_table().to_pydict() == {"n": [0, 1, 2]}
        assert cursor.fetchall() == []
        assert cursor.execute("x").fetchone() == (0,)
        with pytest.raises(dbapi.ProgrammingError, match="fetched already"):
            cursor.fetch_arrow_table()
        assert cursor.fetchall() == [(1,), (2,)]
    with Connection(GatewayClient(address).open()) as connection, connection.cursor() as cursor:
        assert cursor.execute("x").fetchall() == [(0,), (1,), (2,)]
        with pytest.raises(dbapi.NotSupportedError, match="no Arrow"):
            cursor.execute("x").fetch_arrow_table()


def test_a_canceled_cursor_says_so(address: str) -> None:
    with dbapi.connect(address) as connection:
        first, second = connection.cursor(), connection.cursor()
        first.execute("x")
        second.execute("x")
        first.cancel()
        with pytest.raises(dbapi.OperationalError, match=r"^The statement was canceled\.$"):
            first.fetchall()
        assert len(second.fetchall()) == 3
        second.cancel()  # it has ended
        assert second.fetchall() == []

        def cancel() -> None:
            assert GATE.running.wait(60)
            first.cancel()

        waiting = threading.Thread(target=cancel)
        waiting.start()
        with pytest.raises(dbapi.OperationalError, match=r"^The statement was canceled\.$"):
            first.execute("wait")
        waiting.join()
