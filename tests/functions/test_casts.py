"""CAST and TRY_CAST against Flink's recorded answers."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.functions.calls import Node, call, constant, of, shown
from tidemill.functions.casts import can_cast, can_cast_implicitly
from tidemill.types import logical as t

FLOAT, TINY = t.FloatType(), t.TinyIntType()
SMALL = t.DecimalType(precision=38, scale=20)
DECIMAL = t.DecimalType(precision=6, scale=2)
TIME = t.TimeType()


def stamp(precision: int) -> t.TimestampType:
    return t.TimestampType(precision=precision)


def instant(precision: int) -> t.LocalZonedTimestampType:
    return t.LocalZonedTimestampType(precision=precision)


def try_all(spark: SparkSession, targets: tuple[t.LogicalType, ...], *texts: str) -> dict[str, list[object]]:
    """TRY_CAST of every text to every target, in one job."""
    nodes = [constant(x, t.STRING).cast(k, safe=True) for x in texts for k in targets]
    values = shown(spark, nodes)
    width = len(targets)
    return {text: values[i * width : (i + 1) * width] for i, text in enumerate(texts)}


def test_text_to_numbers(spark: SparkSession) -> None:
    found = try_all(
        spark,
        (t.INT, TINY, t.DOUBLE, DECIMAL),
        " 42 ",
        "1.9",
        ".5",
        "1e2",
        "\t7",
        "300",
        "12.345",
        "x",
        "inf",
        "",
    )
    assert found == {
        " 42 ": [42, 42, 42.0, "42.00"],
        "1.9": [1, 1, 1.9, "1.90"],
        ".5": [0, 0, 0.5, "0.50"],
        "1e2": [None, None, 100.0, "100.00"],
        "\t7": [None, None, 7.0, "7.00"],
        "300": [300, None, 300.0, "300.00"],
        "12.345": [12, 12, 12.345, "12.35"],
        "x": [None] * 4,
        "inf": [None] * 4,
        "": [None] * 4,
    }


def test_text_to_boolean_is_not_trimmed(spark: SparkSession) -> None:
    found = try_all(spark, (t.BOOLEAN,), "T", "yes", "0", " true", "on")
    assert found == {"T": [True], "yes": [True], "0": [False], " true": [None], "on": [None]}


def test_text_to_dates_and_times(spark: SparkSession) -> None:
    found = try_all(
        spark,
        (t.DATE, TIME, stamp(3), instant(0)),
        "2024-2-9",
        "2024",
        " 2024-02-29 ",
        "2024-02-29 25:00:00",
        "2024-02-30",
        "2024-02-29 24:00:00",
        "10:20:30.75",
        "2024-02-29 10:20:30.1239",
        "2024-02-29T10:20:30",
    )
    assert found == {
        "2024-2-9": ["2024-02-09", None, "2024-02-09 00:00:00.000", "2024-02-09 00:00:00"],
        "2024": ["2024-01-01", None, None, None],
        " 2024-02-29 ": ["2024-02-29", None, None, None],
        "2024-02-29 25:00:00": ["2024-02-29", None, None, None],
        "2024-02-30": [None, None, "2024-02-29 00:00:00.000", "2024-02-29 00:00:00"],
        "2024-02-29 24:00:00": ["2024-02-29", None, "2024-03-01 00:00:00.000", "2024-03-01 00:00:00"],
        "10:20:30.75": [None, "10:20:30", None, None],
        "2024-02-29 10:20:30.1239": ["2024-02-29", None, "2024-02-29 10:20:30.123", "2024-02-29 10:20:30"],
        "2024-02-29T10:20:30": [None, None, None, None],
    }


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        ("300", TINY, "For input string: '300'. Overflow."),
        ("a", t.INT, "For input string: 'a'. Invalid character found."),
        ("", t.BIGINT, "For input string: ''. Input is empty."),
        (" abc ", t.DOUBLE, 'For input string: "abc"'),
        ("x", t.BOOLEAN, "Cannot parse 'x' as BOOLEAN."),
        ("x", t.DATE, "For input string: 'x'."),
        ("x", stamp(3), "Text 'x' could not be parsed"),
        ("99999999", DECIMAL, "For input string: '99999999'. Overflow."),
    ],
)
def test_a_failing_cast_quotes_the_value(
    spark: SparkSession, text: str, target: t.LogicalType, message: str
) -> None:
    with pytest.raises(PySparkException) as error:
        shown(spark, [constant(text, t.STRING).cast(target)])
    assert message in str(error.value)


def test_numbers_narrow_as_on_the_jvm(spark: SparkSession) -> None:
    big, nan = constant(1e10, t.DOUBLE), constant(float("nan"), t.DOUBLE)
    nodes = [
        constant(300, t.BIGINT).cast(TINY),
        big.cast(t.INT),
        big.cast(TINY),
        nan.cast(t.INT),
        constant(-1.9, t.DOUBLE).cast(t.INT),
        constant(2**33 + 5, t.BIGINT).cast(t.INT),
        constant(70000, t.INT).cast(t.DecimalType(precision=4, scale=0)),
        constant(2.5, t.DOUBLE).cast(t.DecimalType(precision=2, scale=0)),
    ]
    assert shown(spark, nodes) == [44, 2147483647, -1, 0, -1, 5, None, "3"]


@pytest.mark.parametrize("kind", [t.FloatType(), t.DOUBLE])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_is_no_decimal(spark: SparkSession, value: float, kind: t.LogicalType) -> None:
    given = constant(value, kind)
    assert shown(spark, [given.cast(DECIMAL, safe=True), constant(1e30, kind).cast(DECIMAL)]) == [None, None]
    with pytest.raises(PySparkException, match="Infinite or NaN"):
        shown(spark, [given.cast(DECIMAL)])


def test_text_of_values(spark: SparkSession) -> None:
    nodes = [
        of(True).cast(t.STRING),
        of(1e10).cast(t.STRING),
        of(1e-4).cast(t.STRING),
        constant("0.00000000000000000001", t.STRING)
        .cast(t.DecimalType(precision=38, scale=20))
        .cast(t.STRING),
        constant("-0.00000001", t.STRING).cast(t.DecimalType(precision=20, scale=10)).cast(t.STRING),
        constant("1969-12-31 23:59:59.5", t.STRING).cast(stamp(3)).cast(t.STRING),
        constant("10:20:30.120", t.STRING).cast(t.TimeType(precision=3)).cast(t.STRING),
        constant(-14, t.YearMonthIntervalType(resolution="MONTH")).cast(t.STRING),
        constant(-5_400_000, t.DayTimeIntervalType()).cast(t.STRING),
        of("ab").cast(t.CharType(length=4)),
        of("äbcdef").cast(t.VarCharType(length=3)),
        constant(-5, t.INT).cast(t.CharType(length=4)),
    ]
    assert shown(spark, nodes) == [
        "TRUE",
        "1.0E10",
        "1.0E-4",
        "0.00000000000000000001",
        "-0.0000000100",
        "1969-12-31 23:59:59.500",
        "10:20:30.12",
        "-1-02",
        "-0 01:30:00.000",
        "ab  ",
        "äbc",
        "-5  ",
    ]


def test_bytes(spark: SparkSession) -> None:
    nodes = [
        of("äb").cast(t.BinaryType(length=4)),
        of("abcdef").cast(t.VarBinaryType(length=3)),
        constant(b"\xc3\xa4\xff", t.BYTES).cast(t.STRING),
    ]
    assert shown(spark, nodes) == ["x'c3a46200'", "x'616263'", "ä\ufffd"]


def test_collections_cast_element_by_element(spark: SparkSession) -> None:
    nothing = constant(None, t.INT)
    array, entries, row = call("ARRAY", 1, nothing), call("MAP", "k", nothing), call("ROW", 1, "z", nothing)
    strings = t.ArrayType(element=t.STRING)
    named = t.RowType(
        fields=(t.Field("a", t.STRING), t.Field("b", t.CharType(length=2)), t.Field("c", t.INT))
    )
    nodes = [array, entries, row, array.cast(strings), row.cast(named), call("MAP", "k", 1, "k", 2)]
    assert shown(spark, nodes) == [
        "[1, NULL]",
        "{k=NULL}",
        "(1, z, NULL)",
        "[1, NULL]",
        "(1, z , NULL)",
        "{k=2}",
    ]


def test_precision_is_cut_towards_the_past(spark: SparkSession) -> None:
    value = constant("1969-12-31 23:59:59.999999", t.STRING).cast(stamp(6))
    nodes = [value.cast(k) for k in (stamp(3), stamp(1), stamp(0), t.DATE, t.TimeType(precision=3), TIME)]
    assert shown(spark, nodes) == [
        "1969-12-31 23:59:59.999",
        "1969-12-31 23:59:59.9",
        "1969-12-31 23:59:59",
        "1969-12-31",
        "23:59:59.999",
        "23:59:59",
    ]


@pytest.mark.parametrize(
    ("source", "target", "explicit", "implicit"),
    [
        (t.INT, t.BIGINT, True, True),
        (t.BIGINT, t.INT, True, False),
        (t.DOUBLE, DECIMAL, True, True),
        (t.INT, t.STRING, True, False),
        (t.STRING, t.INT, True, False),
        (t.DATE, stamp(3), True, False),
        (stamp(3), t.DATE, True, True),
        (t.DATE, TIME, False, False),
        (t.INT, t.DATE, False, False),
        (t.BOOLEAN, t.DATE, False, False),
        (t.ArrayType(element=t.INT), t.ArrayType(element=t.STRING), True, False),
        (t.ArrayType(element=t.INT), t.INT, False, False),
        (t.ArrayType(element=t.INT), t.STRING, True, False),
        (t.NullType(), DECIMAL, True, True),
    ],
)
def test_which_types_convert(
    source: t.LogicalType, target: t.LogicalType, explicit: bool, implicit: bool
) -> None:
    assert (can_cast(source, target), can_cast_implicitly(source, target)) == (explicit, implicit)


def test_the_session_zone_lies_between_timestamps(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        local = constant("2024-07-01 12:00:00", t.STRING).cast(stamp(0))
        there: list[Node] = [local.cast(instant(0)), local.cast(instant(0)).cast(stamp(0))]
        shown_there = shown(spark, there)
        seconds = spark.range(1).selectExpr(f"unix_seconds({there[0].sql})").collect()[0][0]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert (*shown_there, seconds) == ("2024-07-01 12:00:00", "2024-07-01 12:00:00", 1719849600)
