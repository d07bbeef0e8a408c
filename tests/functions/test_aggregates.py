"""Aggregates in batch: types, NULLs, wrapping, rounding, FILTER, DISTINCT, arrival order."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.functions.evaluating import aggregate
from tidemill.functions import registry
from tidemill.functions.api import GROUPED, Argument, SignatureError
from tidemill.types import logical as t

INTS = "(1, 1), (4, 2), (9, 3), (NULL, 4)"
WIDE = t.DecimalType(precision=38, scale=20)


@pytest.mark.parametrize(
    ("name", "kind", "rows", "result", "value"),
    [
        ("COUNT", t.INT, INTS, "BIGINT NOT NULL", 3),
        ("SUM", t.INT, INTS, "INT", 14),
        ("AVG", t.INT, INTS, "INT", 4),
        ("AVG", t.INT, "(-7, 1), (0, 1), (0, 1)", "INT", -2),
        ("SUM", t.INT, "(2147483647, 1), (1, 1)", "INT", -2147483648),
        ("AVG", t.BIGINT, "(9223372036854775807L, 1), (9223372036854775807L, 1)", "BIGINT", -1),
        ("SUM", t.TinyIntType(), "(127Y, 1), (127Y, 1)", "TINYINT", -2),
        ("STDDEV_POP", t.INT, INTS, "INT", 3),
        ("STDDEV", t.INT, INTS, "INT", 4),
        ("VAR_POP", t.INT, "(2000000000, 1), (-2000000000, 1)", "INT", 2147483647),
        ("VARIANCE", t.INT, "(5, 1)", "INT", None),
        ("VAR_SAMP", t.INT, "(10, 1), (27, 1), (24, 1), (15, 1)", "INT", 62),
        ("STDDEV_SAMP", t.BIGINT, "(3L, 1), (NULL, 1), (9L, 1), (15L, 1)", "BIGINT", 6),
        ("VAR_POP", t.DOUBLE, "(2.0D, 1)", "DOUBLE", 0.0),
        # Far from zero squares are large, and their differences small.
        ("VAR_SAMP", t.BIGINT, "(1000000001L, 1), (1000000002L, 1), (1000000006L, 1)", "BIGINT", 7),
        ("VAR_POP", t.BIGINT, "(5000000000L, 1), (5000000004L, 1)", "BIGINT", 4),
        ("VAR_SAMP", t.INT, "(2147483647, 1), (2147483646, 1), (2147483645, 1)", "INT", 1),
        ("STDDEV_POP", t.BIGINT, "(2147483647L, 1), (-2147483647L, 1)", "BIGINT", 2147483647),
        ("STDDEV_POP", t.INT, "(2147483647, 1), (-2147483648, 1)", "INT", 2147483647),
        # As Java casts: by way of an INT.
        ("VAR_SAMP", t.TinyIntType(), "(100Y, 1), (-100Y, 1), (120Y, 1)", "TINYINT", -48),
        ("MIN", t.STRING, "('b', 1), ('B', 1), (NULL, 1)", "STRING", "B"),
        ("MAX", t.BOOLEAN, "(false, 1), (true, 1)", "BOOLEAN", True),
        ("COLLECT", t.INT, "(2, 1), (1, 1), (2, 1), (NULL, 1)", "MULTISET<INT> NOT NULL", [(1, 1), (2, 2)]),
        ("JSON_ARRAYAGG", t.STRING, "('ü\"/', 1), (NULL, 1)", "VARCHAR(2000) NOT NULL", '["ü\\"/"]'),
    ],
)
def test_values(
    spark: SparkSession, name: str, kind: t.LogicalType, rows: str, result: str, value: object
) -> None:
    assert aggregate(spark, name, (kind,), rows) == (result, value)


@pytest.mark.parametrize(
    ("name", "rows", "value"),
    [
        ("VAR_SAMP", "(10, 1), (27, 1), (24, 1), (15, 1), (27, 1), (NULL, 1)", 62),
        ("VAR_POP", "(-2, 1), (2, 1), (2, 1)", 4),
        ("VAR_POP", "(0, 1), (0, 1)", 0),
        ("VAR_POP", "(2000000001, 1), (2000000005, 1), (2000000005, 1)", 4),
        ("VAR_SAMP", "(7, 1), (7, 1)", None),
        ("VAR_SAMP", "(NULL, 1)", None),
    ],
)
def test_variances_of_distinct_integers_are_whole_where_they_should_be(
    spark: SparkSession, name: str, rows: str, value: int | None
) -> None:
    assert aggregate(spark, name, (t.INT,), rows, distinct=True) == ("INT", value)


@pytest.mark.parametrize(
    ("name", "rows", "result", "value"),
    [
        ("SUM", "('0.5', 1), ('1.5', 1)", "DECIMAL(38, 20)", "2.00000000000000000000"),
        ("SUM", "('999999999999999999', 1), ('1', 1)", "DECIMAL(38, 20)", None),
        (
            "AVG",
            "('0.00000000000000000001', 1), ('2', 1), ('2', 1)",
            "DECIMAL(38, 20)",
            "1.33333333333333333334",
        ),
        ("VAR_POP", "('1', 1), ('4', 1)", "DECIMAL(38, 20)", "2.25000000000000000000"),
    ],
)
def test_decimals(spark: SparkSession, name: str, rows: str, result: str, value: str | None) -> None:
    typed = rows.replace("('", "(CAST('").replace("', 1)", "' AS DECIMAL(38,20)), 1)")
    found, number = aggregate(spark, name, (WIDE,), typed)
    assert (found, None if number is None else str(number)) == (result, value)


@pytest.mark.parametrize(
    ("name", "nothing"),
    [
        ("COUNT", 0),
        ("SUM", None),
        ("$SUM0", 0),
        ("AVG", None),
        ("COLLECT", []),
        ("ARRAY_AGG", None),
        ("MIN", None),
    ],
)
def test_no_rows(spark: SparkSession, name: str, nothing: object) -> None:
    assert aggregate(spark, name, (t.INT,), INTS, where="a > 30")[1] == nothing


def test_order_of_arrival_decides(spark: SparkSession) -> None:
    rows = "('b', 2), ('a', 1), (NULL, 0), ('b', 5), (NULL, 6)"
    values = {
        name: aggregate(spark, name, (t.STRING,), rows, sequence="g")[1]
        for name in ("FIRST_VALUE", "LAST_VALUE", "LISTAGG", "ARRAY_AGG")
    }
    assert values == {
        "FIRST_VALUE": "a",
        "LAST_VALUE": "b",
        "LISTAGG": "a,b,b",
        "ARRAY_AGG": [None, "a", "b", "b", None],
    }
    distinct = aggregate(spark, "ARRAY_AGG", (t.STRING,), rows, sequence="g", distinct=True)[1]
    assert distinct == [None, "a", "b"]


def test_distinct_and_filter_reach_every_part(spark: SparkSession) -> None:
    rows = "(1, 1), (4, 1), (4, 1), (6, 1), (100, 0)"
    found = {
        name: aggregate(spark, name, (t.INT,), rows, distinct=True, where="g = 1")[1]
        for name in ("COUNT", "SUM", "AVG", "VAR_POP", "COLLECT")
    }
    assert found == {"COUNT": 3, "SUM": 11, "AVG": 3, "VAR_POP": 4, "COLLECT": [(1, 1), (4, 1), (6, 1)]}


def test_options_of_texts(spark: SparkSession) -> None:
    rows = "('b', 2), ('a', 1), (NULL, 3)"
    assert aggregate(spark, "LISTAGG", (t.STRING,), rows, {"SEPARATOR": "\\'"}, sequence="g")[1] == "a\\'b"
    nulls = aggregate(spark, "JSON_ARRAYAGG", (t.STRING,), rows, {"NULLS": "NULL ON NULL"}, sequence="g")
    assert nulls[1] == '["a","b",null]'
    ignored = aggregate(spark, "ARRAY_AGG", (t.STRING,), rows, {"NULLS": "IGNORE NULLS"}, sequence="g")
    assert ignored[1] == ["a", "b"]


def test_json_objects(spark: SparkSession) -> None:
    rows = "('b', 2, 1), ('a', NULL, 2)"
    kinds = (t.STRING, t.INT)
    assert aggregate(spark, "JSON_OBJECTAGG", kinds, rows, sequence="g")[1] == '{"a":null,"b":2}'
    absent = {"NULLS": "ABSENT ON NULL"}
    assert aggregate(spark, "JSON_OBJECTAGG", kinds, rows, absent, sequence="g")[1] == '{"b":2}'
    with pytest.raises(PySparkException, match="Key is already present"):
        aggregate(spark, "JSON_OBJECTAGG", kinds, "('b', 2, 1), ('b', 3, 2)")
    for options in ({}, absent):
        with pytest.raises(PySparkException, match="a key is NULL"):
            aggregate(spark, "JSON_OBJECTAGG", kinds, "('b', 2, 1), (NULL, 3, 2), (NULL, 4, 3)", options)


def test_percentiles(spark: SparkSession) -> None:
    many = t.ArrayType(element=t.DOUBLE)
    assert aggregate(spark, "PERCENTILE", (t.INT, t.DOUBLE), "(1, 0.5D, 1), (4, 0.5D, 1)")[1] == 2.5
    weighted = "(1, 0.5D, 2, 1), (3, 0.5D, 4, 1)"
    assert aggregate(spark, "PERCENTILE", (t.INT, t.DOUBLE, t.INT), weighted)[1] == 3.0
    rows = "(1, array(0.0D, 0.25D, 1.0D), 1), (3, array(0.0D, 0.25D, 1.0D), 1), (NULL, array(0.0D), 1)"
    assert aggregate(spark, "PERCENTILE", (t.INT, many), rows) == ("ARRAY<DOUBLE>", [1.0, 1.5, 3.0])


@pytest.mark.parametrize("name", ["SUM", "AVG"])
def test_the_sum_of_negative_zeros(spark: SparkSession, name: str) -> None:
    """As in streaming."""
    rows = "(CAST('-0.0' AS DOUBLE), 1), (CAST('-0.0' AS DOUBLE), 2)"
    assert repr(aggregate(spark, name, (t.DOUBLE,), rows)[1]) == "0.0"


def test_single_value_refuses_a_second_row(spark: SparkSession) -> None:
    assert aggregate(spark, "SINGLE_VALUE", (t.INT,), "(7, 1)")[1] == 7
    with pytest.raises(PySparkException, match="more than one element"):
        aggregate(spark, "SINGLE_VALUE", (t.INT,), INTS)


@pytest.mark.parametrize(
    ("name", "grouped", "result"),
    [
        ("SUM", "TRUE", "INT NOT NULL"),
        ("SUM", "FALSE", "INT"),
        ("AVG", "TRUE", "INT NOT NULL"),
        ("VAR_SAMP", "TRUE", "INT"),
        ("VAR_POP", "TRUE", "INT NOT NULL"),
        ("$SUM0", "FALSE", "INT NOT NULL"),
        ("ARRAY_AGG", "TRUE", "ARRAY<INT NOT NULL> NOT NULL"),
        ("FIRST_VALUE", "FALSE", "INT"),
    ],
)
def test_nullability(name: str, grouped: str, result: str) -> None:
    function = registry.aggregate(name)
    assert function is not None
    argument = Argument(t.IntType(nullable=False))
    assert str(function.resolve((argument,), {GROUPED: grouped}).result) == result


@pytest.mark.parametrize(
    ("name", "kinds", "message"),
    [
        ("SUM", (t.STRING,), "'SUM(<VARCHAR(2147483647)>)'. Supported form(s): 'SUM(<NUMERIC>)'"),
        ("SUM", (t.INT, t.INT), "Invalid number of arguments to function 'SUM'. Was expecting 1 arguments"),
        ("MIN", (t.ArrayType(element=t.INT),), "Min aggregate function does not support type: ''ARRAY''"),
        ("MAX", (t.NullType(),), "Illegal use of 'NULL'"),
        ("LISTAGG", (t.INT,), "'LISTAGG(<CHARACTER>)'"),
        ("LISTAGG", (t.STRING, t.STRING), "Argument to function 'LISTAGG' must be a literal"),
        ("JSON_OBJECTAGG", (t.INT, t.INT), "JSON_OBJECTAGG_NULL_ON_NULL(<INTEGER>, <INTEGER>)"),
        ("PERCENTILE", (t.STRING, t.DOUBLE), "Invalid input arguments."),
    ],
)
def test_refusals(name: str, kinds: tuple[t.LogicalType, ...], message: str) -> None:
    function = registry.aggregate(name)
    assert function is not None
    with pytest.raises(SignatureError) as error:
        function.resolve(tuple(map(Argument, kinds)), {})
    assert message in str(error.value)
