"""Literals arrive in Spark with their exact value and carrier type; shared texts mean one value."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

from pyspark.sql import SparkSession

from tidemill.functions.literals import literal_sql
from tidemill.functions.sharing import share
from tidemill.types import logical as t
from tidemill.types.physical import spark_type

VALUES: tuple[tuple[object, t.LogicalType, object], ...] = (
    ('it\'s \\n \n\t\r "q" `b` ${x} \0 😀', t.STRING, 'it\'s \\n \n\t\r "q" `b` ${x} \0 😀'),
    (-(2**63), t.BIGINT, -(2**63)),
    (-(2**31), t.INT, -(2**31)),
    (-128, t.TinyIntType(), -128),
    (0.1, t.DOUBLE, 0.1),
    (5e-324, t.DOUBLE, 5e-324),
    (float("-inf"), t.DOUBLE, float("-inf")),
    (Decimal("1E-20"), t.DecimalType(precision=38, scale=20), Decimal("0.00000000000000000001")),
    (Decimal("-1.50"), t.DecimalType(precision=5, scale=2), Decimal("-1.50")),
    (b"\x00\xff'", t.BYTES, bytearray(b"\x00\xff'")),
    (date(1, 1, 1), t.DATE, date(1, 1, 1)),
    (datetime(1969, 12, 31, 23, 59, 59, 1), t.TimestampType(), datetime(1969, 12, 31, 23, 59, 59, 1)),
    (37_230_123, t.TimeType(precision=3), 37_230_123),
    (-14, t.YearMonthIntervalType(), -14),
    (2**40, t.DayTimeIntervalType(), 2**40),
    (None, t.ArrayType(element=t.INT), None),
    ([1, None], t.ArrayType(element=t.INT), [1, None]),
    (True, t.BOOLEAN, True),
)


def test_values_and_carriers(spark: SparkSession) -> None:
    texts = [f"{literal_sql(value, kind)} AS c{i}" for i, (value, kind, _) in enumerate(VALUES)]
    frame = spark.range(1).selectExpr(*texts)
    carriers = [
        spark.range(1).selectExpr(f"CAST(NULL AS {spark_type(k)})").dtypes[0][1] for _, k, _ in VALUES
    ]
    assert [kind for _, kind in frame.dtypes] == carriers
    assert list(frame.collect()[0]) == [expected for _, _, expected in VALUES]


def test_an_instant(spark: SparkSession) -> None:
    sql = literal_sql(datetime(1969, 12, 31, 23, 59, 59, 5, tzinfo=UTC), t.LocalZonedTimestampType())
    assert spark.range(1).selectExpr(f"unix_micros({sql})").collect()[0][0] == -999_995


def test_long_and_random_texts_are_evaluated_once(spark: SparkSession) -> None:
    random = share("rand()", lambda r: f"{r} - {r}")
    long = " + ".join(["1"] * 100)
    nested = share(f"({long})", lambda x: share(f"({x} + {long})", lambda y: f"{x} * 1000 + {y}"))
    assert list(spark.range(1).selectExpr(random, nested).collect()[0]) == [0.0, 100_200]
    assert nested.count(long) == 2


def test_short_texts_are_repeated() -> None:
    assert share("a", lambda x: f"{x} + {x}") == "a + a"
