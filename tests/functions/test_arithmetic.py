"""Result types and values of + - * / % beyond what Spark gives by itself."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.functions.calls import Node, call, column, constant, kinds, shown
from tidemill.functions.api import SignatureError
from tidemill.types import logical as t

TINY, SMALL, FLOAT = t.TinyIntType(), t.SmallIntType(), t.FloatType()


def decimal(text: str, precision: int, scale: int) -> Node:
    return constant(Decimal(text), t.DecimalType(precision=precision, scale=scale))


def test_decimal_result_types_shrink_the_scale_past_38_digits() -> None:
    a, b, c, d = (decimal("1", p, s) for p, s in ((10, 3), (4, 2), (30, 10), (20, 14)))
    nodes = [
        call("*", a, b),
        call("*", c, a),
        call("*", c, d),
        call("*", c, c),
        call("*", a, 2),
        call("+", a, c),
        call("/", decimal("1", 10, 2), decimal("1", 4, 1)),
        call("/", 7, decimal("1", 4, 1)),
        call("/", decimal("1", 38, 10), decimal("1", 38, 20)),
        call("MOD", decimal("1", 6, 2), decimal("1", 3, 1)),
        call("+", decimal("1", 38, 0), 1),
    ]
    assert [k.removesuffix(" NOT NULL") for k in kinds(nodes)] == [
        "DECIMAL(15, 5)",
        "DECIMAL(38, 10)",
        "DECIMAL(38, 11)",
        "DECIMAL(38, 6)",
        "DECIMAL(21, 3)",
        "DECIMAL(31, 10)",
        "DECIMAL(16, 7)",
        "DECIMAL(17, 6)",
        "DECIMAL(38, 6)",
        "DECIMAL(4, 2)",
        "DECIMAL(38, 0)",
    ]


def test_mixed_number_types() -> None:
    one_float, one_double = constant(1.0, FLOAT), constant(1.0, t.DOUBLE)
    nodes = [
        call("*", one_float, one_double),
        call("*", one_double, one_float),
        call("+", one_float, decimal("1", 5, 2)),
        call("%", constant(5, t.BIGINT), constant(3, TINY)),
        call("+", constant(5, TINY), constant(3, SMALL)),
        call("/", column("x", t.INT), 2),
    ]
    assert kinds(nodes) == [
        "FLOAT NOT NULL",
        "DOUBLE NOT NULL",
        "DOUBLE NOT NULL",
        "TINYINT NOT NULL",
        "SMALLINT NOT NULL",
        "INT",
    ]


def test_integers_wrap_and_divide_towards_zero(spark: SparkSession) -> None:
    nodes = [
        call("+", 2147483647, 1),
        call("*", constant(2**63 - 1, t.BIGINT), 2),
        call("-", constant(-128, TINY), constant(1, TINY)),
        call("/", -7, 2),
        call("%", -7, 2),
        call("/", constant(-(2**63), t.BIGINT), -1),
        call("UNARY -", constant(-(2**31), t.INT)),
    ]
    assert shown(spark, nodes) == [-(2**31), -2, 127, -3, -1, -(2**63), -(2**31)]


def test_floating_division_by_zero_keeps_the_sign(spark: SparkSession) -> None:
    frame = spark.sql("SELECT -1.5D AS n, 0D AS z, CAST('-0.0' AS DOUBLE) AS m, CAST(NULL AS DOUBLE) AS u")
    n, z, m, u = (column(name, t.DOUBLE) for name in "nzmu")
    text = [call("/", a, b).cast(t.STRING) for a, b in ((n, z), (n, m), (z, z), (u, z), (z, n))]
    assert shown(frame, text) == ["-Infinity", "Infinity", "NaN", None, "-0.0"]


def test_decimal_values_round_half_up_and_overflow_to_null(spark: SparkSession) -> None:
    big = decimal("9" * 38, 38, 0)
    nodes = [
        call("/", decimal("2", 10, 2), decimal("3", 4, 1)),
        call("+", big, 1),
        call("-", big, 1),
        call("MOD", decimal("-10.25", 6, 2), decimal("0.3", 3, 1)),
        call("*", decimal("1234567890.1234567890", 30, 10), decimal("3.14159265358979", 20, 14)),
    ]
    assert shown(spark, nodes) == ["0.6666667", None, "9" * 37 + "8", "-0.05", "3878509413.96969890720"]


@pytest.mark.parametrize(
    ("name", "left", "right", "message"),
    [
        ("/", 1, 0, "/ by zero"),
        ("MOD", 1, 0, "/ by zero"),
        ("/", Decimal("1.5"), 0, "Division by zero"),
        ("%", Decimal("1.5"), Decimal("0.0"), "Division by zero"),
    ],
)
def test_a_zero_divisor_fails(
    spark: SparkSession, name: str, left: object, right: object, message: str
) -> None:
    with pytest.raises(PySparkException, match=message):
        shown(spark, [call(name, left, right)])


def test_a_null_dividend_is_null_whatever_the_divisor(spark: SparkSession) -> None:
    nothing = constant(None, t.INT)
    assert shown(spark, [call("/", nothing, 0), call("/", 1, nothing)]) == [None, None]


def test_text_has_no_arithmetic() -> None:
    with pytest.raises(
        SignatureError, match=r"Cannot apply '\+' to arguments of type '<CHAR\(1\)> \+ <INTEGER>'"
    ):
        call("+", "a", 1)


def test_a_chain_of_divisions_stays_short(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 65536 AS x, 2 AS y")
    node = column("x", t.INT)
    for _ in range(16):
        node = call("/", node, column("y", t.INT))
    assert shown(frame, [node]) == [1]
    assert len(node.sql) < 5_000
