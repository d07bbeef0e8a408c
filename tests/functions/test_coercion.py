"""Common types: Flink's planner has two rules that differ in a few pairs."""

from __future__ import annotations

import pytest

from tidemill.functions.coercion import common_type, widest
from tidemill.types import logical as t

FLOAT, DECIMAL = t.FloatType(), t.DecimalType(precision=10, scale=2)
STAMP3, STAMP6 = t.TimestampType(precision=3), t.TimestampType(precision=6)
INSTANT3 = t.LocalZonedTimestampType(precision=3)


def char(length: int) -> t.LogicalType:
    return t.CharType(length=length)


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ((t.TinyIntType(), t.SmallIntType()), "SMALLINT"),
        ((t.INT, DECIMAL), "DECIMAL(12, 2)"),
        ((t.BIGINT, DECIMAL), "DECIMAL(21, 2)"),
        ((t.DecimalType(precision=38, scale=10), t.DecimalType(precision=38, scale=20)), "DECIMAL(38, 10)"),
        ((FLOAT, t.DOUBLE), "FLOAT"),
        ((t.DOUBLE, FLOAT), "DOUBLE"),
        ((DECIMAL, FLOAT), "DOUBLE"),
        ((t.BIGINT, FLOAT), "FLOAT"),
        ((char(3), char(3)), "CHAR(3)"),
        ((char(1), char(3)), "VARCHAR(3)"),
        ((char(3), t.STRING), "STRING"),
        ((t.BinaryType(length=1), t.BinaryType(length=2)), "VARBINARY(2)"),
        ((STAMP3, STAMP6), "TIMESTAMP(6)"),
        ((STAMP3, INSTANT3), "TIMESTAMP(3)"),
        ((STAMP6, INSTANT3), "TIMESTAMP_LTZ(6)"),
        ((t.NullType(), t.INT.with_nullable(False)), "INT"),
        ((t.INT.with_nullable(False), t.BIGINT.with_nullable(False)), "BIGINT NOT NULL"),
        ((t.ArrayType(element=t.INT), t.ArrayType(element=t.BIGINT)), "ARRAY<BIGINT>"),
        ((t.DATE, STAMP3), "None"),
        ((t.INT, t.STRING), "None"),
        ((t.BOOLEAN, t.INT), "None"),
    ],
)
def test_operators_and_set_operations(types: tuple[t.LogicalType, ...], expected: str) -> None:
    assert str(common_type(types)) == expected


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ((FLOAT, t.DOUBLE), "DOUBLE"),
        ((DECIMAL, FLOAT), "FLOAT"),
        ((FLOAT, DECIMAL), "DOUBLE"),
        ((t.INT, DECIMAL, t.DOUBLE), "DOUBLE"),
        ((STAMP6, INSTANT3), "TIMESTAMP_LTZ(6)"),
        ((t.NullType(), t.INT), "INT"),
    ],
)
def test_functions_of_any_types(types: tuple[t.LogicalType, ...], expected: str) -> None:
    assert str(widest(types)) == expected
