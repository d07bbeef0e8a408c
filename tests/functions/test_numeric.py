"""Numeric functions where Spark's own would differ in value or type."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.functions.calls import Node, call, column, constant, kinds, shown
from tidemill.errors import NotSupportedError
from tidemill.types import logical as t

PRICE = t.DecimalType(precision=10, scale=3)


def price(text: str) -> Node:
    return constant(Decimal(text), PRICE)


def test_rounding_shapes_decimal_types() -> None:
    nodes = [
        call("ROUND", price("1")),
        call("ROUND", price("1"), 2),
        call("ROUND", price("1"), -1),
        call("ROUND", price("1"), column("n", t.INT)),
        call("TRUNCATE", price("1"), 2),
        call("FLOOR", price("1")),
        call("CEIL", constant(1.5, t.DOUBLE)),
        call("SIGN", price("1")),
    ]
    assert [k.removesuffix(" NOT NULL") for k in kinds(nodes)] == [
        "DECIMAL(8, 0)",
        "DECIMAL(10, 2)",
        "DECIMAL(8, 0)",
        "DECIMAL(10, 3)",
        "DECIMAL(10, 2)",
        "DECIMAL(10, 0)",
        "DOUBLE",
        "DECIMAL(10, 3)",
    ]


def test_rounding_values(spark: SparkSession) -> None:
    nodes = [
        call("ROUND", -15, -1),
        call("ROUND", 2.5),
        call("ROUND", 1.005, 2),
        call("ROUND", price("-0.995"), 2),
        call("TRUNCATE", -1.999, 2),
        call("TRUNCATE", 1.15, 2),
        call("TRUNCATE", price("-0.995"), 2),
        call("TRUNCATE", 19, -1),
        call("FLOOR", -2.5),
        call("FLOOR", 1e300),
        call("CEIL", price("-0.995")),
        call("ROUND", price("123.455"), call("+", 0, column("CAST(1 AS INT)", t.INT))),
    ]
    expected = [-20, 3.0, 1.01, "-1.00", -1.99, 1.15, "-0.99", 10, -3.0, 1e300, "0", "123.500"]
    assert shown(spark, nodes) == expected
    negative_zeros = [call("CEIL", -0.5).cast(t.STRING), call("FLOOR", -0.0).cast(t.STRING)]
    assert shown(spark, negative_zeros) == ["-0.0", "-0.0"]


def test_outside_the_domain_is_nan_or_infinity(spark: SparkSession) -> None:
    nodes = [
        call("LN", 0.0),
        call("LN", -1),
        call("LOG10", -1.0),
        call("LOG2", 8),
        call("LOG", 1, 8),
        call("LOG", 2, 8),
        call("SQRT", -1),
        call("POWER", 0, -1),
        call("LN", constant(None, t.DOUBLE)),
    ]
    text = [n.cast(t.STRING) for n in nodes]
    assert shown(spark, text) == [
        "-Infinity",
        "NaN",
        "NaN",
        "3.0",
        "Infinity",
        "3.0",
        "NaN",
        "Infinity",
        None,
    ]


def test_integers_keep_their_type(spark: SparkSession) -> None:
    nodes = [
        call("ABS", constant(-(2**31), t.INT)),
        call("SIGN", -7),
        call("FLOOR", 5),
        call("BIN", constant(-1, t.TinyIntType())),
    ]
    assert shown(spark, nodes) == [-(2**31), -1, 5, "1" * 64]
    assert kinds(nodes[:3]) == ["INT NOT NULL"] * 3


def test_random_integers_stay_below_their_bound(spark: SparkSession) -> None:
    frame = spark.range(200)
    sql = call("RAND_INTEGER", 3, 5).sql
    found = {row[0] for row in frame.selectExpr(sql).collect()}
    assert found == {0, 1, 2, 3, 4}
    with pytest.raises(PySparkException, match="bound must be positive"):
        shown(spark, [call("RAND_INTEGER", 0)])


def test_a_seed_must_be_constant() -> None:
    with pytest.raises(NotSupportedError, match="constant seed"):
        call("RAND", column("s", t.INT))
