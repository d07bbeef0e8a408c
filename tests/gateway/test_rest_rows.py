"""Values and types in REST's two row formats."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from tidemill.changelog.rowkind import KIND_COLUMN
from tidemill.gateway.endpoints.rest.rows import rows_json
from tidemill.gateway.endpoints.rest.types import type_json, type_of
from tidemill.types import logical as t
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_type

INSTANT = dt.datetime(2020, 1, 1, 0, 0, 0, 120_000, tzinfo=dt.UTC)
ROW = t.RowType(fields=(Field("a", t.INT), Field('b"', t.TimestampType(precision=0))))
MAP = t.MapType(key=t.STRING, value=t.DecimalType(precision=38, scale=2))
CASES: list[tuple[t.LogicalType, Any, str, str]] = [
    (t.BOOLEAN, True, "true", '"TRUE"'),
    (t.BIGINT, -(1 << 63), "-9223372036854775808", '"-9223372036854775808"'),
    (t.FloatType(), 0.1, "0.1", '"0.1"'),
    (t.DOUBLE, float("nan"), '"NaN"', '"NaN"'),
    (t.DOUBLE, float("-inf"), '"-Infinity"', '"-Infinity"'),
    (t.DOUBLE, 1e16, "1e+16", '"1.0E16"'),
    (t.DecimalType(precision=38, scale=3), Decimal("12345678901234567890123456789012345.678"),
     "12345678901234567890123456789012345.678", '"12345678901234567890123456789012345.678"'),
    (t.DecimalType(precision=10, scale=8), Decimal("0.00000001"), "0.00000001", '"0.00000001"'),
    (t.STRING, 'a"\\\n\u2028\x00é', '"a\\"\\\\\\n\u2028\\u0000é"', '"a\\"\\\\\\n\u2028\\u0000é"'),
    (t.STRING, 'é/\u2028\x7f', '"é/\u2028\x7f"', '"é/\u2028\x7f"'),
    (t.CharType(length=2), "", '""', '""'),
    (t.TinyIntType(), -128, "-128", '"-128"'),
    (t.BYTES, b"\x0a\xff", '"Cv8="', "\"x'0aff'\""),
    (t.DATE, dt.date(7, 2, 3), '"0007-02-03"', '"0007-02-03"'),
    (t.TimeType(precision=3), 36_672_100, '"10:11:12.1"', '"10:11:12.100"'),
    (t.TimestampType(precision=3), dt.datetime(2020, 1, 1, 0, 0, 0, 120_000), '"2020-01-01T00:00:00.12"',
     '"2020-01-01 00:00:00.120"'),
    (t.LocalZonedTimestampType(precision=3), INSTANT, '"2020-01-01T00:00:00.12Z"',
     '"2020-01-01 01:00:00.120"'),
    (t.YearMonthIntervalType(), 14, "14", '"+1-02"'),
    (t.DayTimeIntervalType(), -86_400_001, "-86400001", '"-1 00:00:00.001"'),
    (t.ArrayType(element=t.INT), [1, None], "[1,null]", '"[1, NULL]"'),
    (MAP, [{"key": "k", "value": Decimal("1.50")}, {"key": None, "value": None}], '{"k":1.50,"null":null}',
     '"{k=1.50, NULL=NULL}"'),
    (t.MultisetType(element=t.INT), [{"key": 7, "value": 2}], '{"7":2}', '"{7=2}"'),
    (ROW, {"a": None, 'b"': dt.datetime(2020, 1, 1)}, '{"a":null,"b\\"":"2020-01-01T00:00:00"}',
     '"(NULL, 2020-01-01 00:00:00)"'),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "as_json", "as_text"), CASES)
def test_a_value_in_both_formats(kind: t.LogicalType, value: Any, as_json: str, as_text: str) -> None:
    table = pa.table(
        {"v": pa.array([value, None], arrow_type(kind)), KIND_COLUMN: pa.array([0, 3], pa.int8())}
    )
    fields = (Field("v", kind),)
    for form, text in (("JSON", as_json), ("PLAIN_TEXT", as_text)):
        got = rows_json(table, fields, form, ZoneInfo("Europe/Berlin"))
        rows = f'{{"kind":"INSERT","fields":[{text}]}},{{"kind":"DELETE","fields":[null]}}'
        assert got == f"[{rows}]"
        json.loads(got)
        many = pa.concat_tables([table] * 50)
        assert rows_json(many, fields, form, ZoneInfo("Europe/Berlin")) == f"[{','.join([rows] * 50)}]"


def test_types() -> None:
    assert type_json(t.DayTimeIntervalType(resolution="DAY(3) TO SECOND(3)", nullable=False)) == {
        "type": "INTERVAL_DAY_TIME",
        "nullable": False,
        "resolution": "DAY_TO_SECOND",
        "precision": 3,
        "fractionalPrecision": 3,
    }
    assert type_json(t.YearMonthIntervalType(resolution="MONTH"))["resolution"] == "MONTH"
    assert type_json(MAP) == {
        "type": "MAP",
        "nullable": True,
        "keyType": {"type": "VARCHAR", "nullable": True, "length": t.MAX_LENGTH},
        "valueType": {"type": "DECIMAL", "nullable": True, "precision": 38, "scale": 2},
    }
    assert [f["name"] for f in type_json(ROW)["fields"]] == ["a", 'b"']
    for kind in (c[0] for c in CASES):
        assert type_json(type_of(type_json(kind.with_nullable(False)))) == type_json(
            kind.with_nullable(False)
        )
    assert type_of({"type": "VARIANT", "nullable": True}) == t.STRING
