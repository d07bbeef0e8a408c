"""Carriers become Python values, Flink's text and JSON."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tidemill.functions.text.cast import cast
from tidemill.session.rows import values
from tidemill.session.rows.row import Row
from tidemill.types import logical as t

BERLIN = ZoneInfo("Europe/Berlin")
MAP = t.MapType(key=t.STRING, value=t.INT)
ROW = t.RowType(fields=(t.Field("a", t.INT), t.Field("b", t.STRING)))


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (t.BOOLEAN, True, "TRUE"),
        (t.INT, -7, "-7"),
        (t.DOUBLE, 0.001, "0.001"),
        (t.DOUBLE, 0.0001, "1.0E-4"),
        (t.DOUBLE, 12345678.0, "1.2345678E7"),
        (t.DOUBLE, 1234567.0, "1234567.0"),
        (t.DOUBLE, -0.0, "-0.0"),
        (t.DOUBLE, float("-inf"), "-Infinity"),
        (t.FloatType(), 0.10000000149011612, "0.1"),
        (t.DecimalType(precision=10, scale=3), Decimal("1.5"), "1.500"),
        (t.BYTES, b"\x0a\xff", "x'0aff'"),
        (t.DATE, dt.date(9, 1, 2), "0009-01-02"),
        (t.TimeType(), 3_723_004, "01:02:03"),
        (t.TimeType(precision=3), 3_723_004, "01:02:03.004"),
        (t.TimestampType(precision=3), dt.datetime(2020, 1, 1, 0, 0, 0, 123456), "2020-01-01 00:00:00.123"),
        (t.TimestampType(precision=0), dt.datetime(2020, 1, 1), "2020-01-01 00:00:00"),
        (
            t.LocalZonedTimestampType(precision=0),
            dt.datetime(2020, 7, 1, tzinfo=dt.UTC),
            "2020-07-01 02:00:00",
        ),
        (t.YearMonthIntervalType(), -14, "-1-02"),
        (t.DayTimeIntervalType(), 90_061_001, "+1 01:01:01.001"),
        (t.ArrayType(element=t.INT), [1, None], "[1, NULL]"),
        (MAP, [{"key": "k", "value": 1}], "{k=1}"),
        (t.MultisetType(element=t.STRING), [{"key": "k", "value": 2}], "{k=2}"),
        (ROW, {"a": 1, "b": None}, "(1, NULL)"),
    ],
)
def test_text_is_flinks_cast_to_string(kind: t.LogicalType, value: Any, text: str) -> None:
    assert cast(kind, BERLIN)(value) == text


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        (t.BIGINT, 2**62, 2**62),
        (t.BOOLEAN, False, False),
        (t.DOUBLE, float("nan"), "NaN"),
        (t.DOUBLE, 0.1, 0.1),
        (t.FloatType(), 0.10000000149011612, 0.1),
        (t.STRING, None, None),
        (t.DATE, dt.date(2020, 1, 2), "2020-01-02"),
    ],
)
def test_json(kind: t.LogicalType, value: Any, shown: Any) -> None:
    assert values.json_value(kind, BERLIN)(value) == shown


def test_rendered_values_pass() -> None:
    as_json, as_text = values.or_rendered(values.json_value), values.or_rendered(cast)
    assert as_json(t.DATE, BERLIN)("2020-01-02") == "2020-01-02"
    assert as_json(t.DOUBLE, BERLIN)(float("inf")) == "Infinity"
    assert as_text(t.BOOLEAN, BERLIN)(True) == "TRUE"


def test_python_values() -> None:
    assert values.python_value(t.TimeType(precision=3), 1001) == dt.time(0, 0, 1, 1000)
    assert values.python_value(t.DayTimeIntervalType(), 1500) == dt.timedelta(seconds=1.5)
    assert values.python_value(MAP, [{"key": "k", "value": 1}]) == {"k": 1}
    arrays = t.MapType(key=t.ArrayType(element=t.INT), value=t.INT)
    assert values.python_value(arrays, [{"key": [1], "value": 2}]) == {(1,): 2}
    row = values.python_value(ROW, {"a": 1, "b": "x"})
    assert row == (1, "x")
    assert isinstance(row, Row)
    assert row["b"] == "x"
    assert row.as_dict() == {"a": 1, "b": "x"}
    instant = values.python_value(t.LocalZonedTimestampType(), dt.datetime(2020, 1, 1))
    assert instant == dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
