"""Comparison and conditionals: NULL, NaN, rows, text against other types, result types."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from tests.functions.calls import Node, call, column, constant, kinds, shown
from tidemill.functions.api import SignatureError
from tidemill.types import logical as t

NAN = constant(float("nan"), t.DOUBLE)
NO_INT = constant(None, t.INT)


def test_nan_is_unequal_and_unordered(spark: SparkSession) -> None:
    frame = spark.sql("SELECT CAST('NaN' AS DOUBLE) AS n, 1D AS x, CAST(NULL AS DOUBLE) AS u")
    n, x, u = (column(name, t.DOUBLE) for name in "nxu")
    nodes = [call(o, n, n) for o in ("=", "<>", "<", ">", "<=", ">=")]
    nodes += [call("<", x, n), call("=", n, u), call("<>", u, n), call("IN", n, x, n)]
    assert shown(frame, nodes) == [False, True, *[False] * 5, None, None, False]


def test_text_compares_by_code_point_without_padding(spark: SparkSession) -> None:
    padded = constant("ab", t.STRING).cast(t.CharType(length=4))
    nodes = [call("=", padded, "ab"), call("<", "B", "a"), call("<", "é", "z"), call(">", "😀", "z")]
    assert shown(spark, nodes) == [False, True, False, True]


def test_text_becomes_the_other_type(spark: SparkSession) -> None:
    nodes = [
        call("=", date(2024, 1, 5), "2024-1-5"),
        call("<", constant("2023-12-31 00:00:00", t.STRING), datetime(2024, 1, 1)),
        call("=", "yes", True),
        call("BETWEEN", date(2024, 1, 5), "2024-01-01", "2024-01-05"),
    ]
    assert shown(spark, nodes) == [True, True, True, True]


def test_text_meets_numbers_where_order_or_a_list_is_asked(spark: SparkSession) -> None:
    text = constant("5", t.STRING)
    nodes = [
        call(">", 7, "5"),
        call(">=", 5, "5.5"),
        call("BETWEEN", text, 1, 9),
        call("IN", 5, "4", "5"),
        call("IN", text, 5, 7),
        call("IN", constant("x", t.STRING), 5, 7),
    ]
    assert shown(spark, nodes) == [True, True, True, True, True, False]
    with pytest.raises(SignatureError, match="compatible types"):
        call("IN", 5, "5", 7)


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ("a", 1, r"implicit type conversion between CHAR\(1\) and INT is not supported"),
        (date(2024, 1, 1), datetime(2024, 1, 1), "Cannot apply '=' to arguments of type"),
        (True, 1, "Cannot apply '=' to arguments of type '<BOOLEAN> = <INTEGER>'"),
    ],
)
def test_what_cannot_be_compared(left: object, right: object, message: str) -> None:
    with pytest.raises(SignatureError, match=message):
        call("=", left, right)


def test_numbers_compare_by_value(spark: SparkSession) -> None:
    nodes = [
        call("=", 5, Decimal("5.00")),
        call("<", 5, Decimal("5.01")),
        call("=", 5, 5.0),
        call("=", Decimal("0.1"), 0.1),
        call(">", constant(2**62, t.BIGINT), Decimal("4611686018427387903.5")),
    ]
    assert shown(spark, nodes) == [True] * 5


def test_rows_compare_field_by_field(spark: SparkSession) -> None:
    """As values: NULL equals NULL inside; ``(a, b) = (c, d)`` is taken apart before (``binder``)."""

    def pair(a: object, b: object) -> Node:
        return call("ROW", a, b)

    one = pair(1, "a")
    nodes = [
        call("=", pair(1, "a"), one),
        call("=", pair(NO_INT, "a"), one),
        call("=", pair(2, constant(None, t.STRING)), one),
        call("<>", pair(NO_INT, "b"), one),
        call("IN", pair(NO_INT, "a"), one, pair(2, "z")),
        call("IS NOT DISTINCT FROM", pair(NO_INT, "a"), pair(NO_INT, "a")),
    ]
    assert shown(spark, nodes) == [True, False, False, True, False, True]
    assert kinds(nodes[:2]) == ["BOOLEAN NOT NULL", "BOOLEAN"]


def test_maps_compare_whatever_the_order_of_entries(spark: SparkSession) -> None:
    left, right = call("MAP", "a", 1, "b", 2), call("MAP", "b", 2, "a", 1)
    nodes = [call("=", left, right), call("IS DISTINCT FROM", left, call("MAP", "a", 1))]
    assert shown(spark, nodes) == [True, True]


def test_null_in_between_and_in(spark: SparkSession) -> None:
    nodes = [
        call("BETWEEN", 5, NO_INT, 3),
        call("BETWEEN", 5, NO_INT, 10),
        call("BETWEEN", 5, 10, 1, symmetric="TRUE"),
        call("IN", 1, 2, NO_INT),
        call("IN", 1, 1, NO_INT),
        call("IS DISTINCT FROM", NO_INT, 1),
        call("IS NOT DISTINCT FROM", NO_INT, NO_INT),
    ]
    assert shown(spark, nodes) == [False, None, True, None, True, True, True]


def test_logic_is_three_valued(spark: SparkSession) -> None:
    unknown = constant(None, t.BOOLEAN)
    nodes = [
        call("AND", unknown, False),
        call("AND", unknown, True),
        call("OR", unknown, True),
        call("NOT", unknown),
        call("IS TRUE", unknown),
        call("IS NOT TRUE", unknown),
        call("IS NOT FALSE", unknown),
        call("IS UNKNOWN", unknown),
    ]
    assert shown(spark, nodes) == [False, None, True, None, False, True, True, True]
    assert str(nodes[4].type) == "BOOLEAN NOT NULL"


def test_conditionals_find_flinks_types() -> None:
    i, b, d = column("i", t.INT), column("b", t.BIGINT), column("d", t.DOUBLE)
    nodes = [
        call("CASE", True, "a", True, "abc", ""),
        call("CASE", True, 1, Decimal("2.5")),
        call("CASE", True, 1, None),
        call("IF", column("c", t.BOOLEAN), "big", "small"),
        call("COALESCE", i, b, 0),
        call("COALESCE", i, Decimal("1.25")),
        call("IFNULL", i, -1),
        call("NULLIF", i, d),
        call("GREATEST", constant(1.0, t.FloatType()), 2.0),
        call("CASE", True, constant(1.0, t.FloatType()), 2.0),
        call("LEAST", constant(Decimal("1"), t.DecimalType()), constant(1.0, t.FloatType())),
    ]
    assert kinds(nodes) == [
        "VARCHAR(3) NOT NULL",
        "DECIMAL(11, 1) NOT NULL",
        "INT",
        "VARCHAR(5)",
        "BIGINT NOT NULL",
        "DECIMAL(12, 2) NOT NULL",
        "INT NOT NULL",
        "INT",
        "DOUBLE NOT NULL",
        "FLOAT NOT NULL",
        "FLOAT NOT NULL",
    ]


def test_conditionals_evaluate_only_the_chosen_branch(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 0 AS z, CAST(NULL AS INT) AS u")
    zero, unknown = column("z", t.INT), column("u", t.INT)
    nodes = [
        call("CASE", call("=", zero, 0), 0, call("/", 100, zero)),
        call("IF", call("<>", zero, 0), call("%", 10, zero), -1),
        call("COALESCE", call("NULLIF", zero, 0), 7),
        call("GREATEST", 1, unknown, 3),
        call("LEAST", 3, 1, 2),
        call("NULLIF", 5, unknown),
    ]
    assert shown(frame, nodes) == [0, -1, 7, None, 1, 5]
