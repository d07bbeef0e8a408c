"""Reading and writing dates and times by Java patterns."""

from __future__ import annotations

from datetime import datetime

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.functions.calls import call, column, constant, shown
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.types import logical as t

LEAP = datetime(2024, 2, 29, 23, 59, 59, 999_000)


def test_date_format(spark: SparkSession) -> None:
    patterns = (
        "yyyy-MM-dd HH:mm:ss.SSS",
        "EEE, d MMM yy",
        "hh:mm a",
        "'Q''s' Q",
        "DDD",
        "uuuu年",
        "k K h",
    )
    nodes = [call("DATE_FORMAT", LEAP, p) for p in patterns]
    nodes.append(call("DATE_FORMAT", "2024-2-9 25:2:3.5", "dd HH:mm:ss.SSS"))
    nodes.append(call("DATE_FORMAT", "2024-02-29", "yyyy"))
    assert shown(spark, nodes) == [
        "2024-02-29 23:59:59.999",
        "Thu, 29 Feb 24",
        "11:59 PM",
        "Q's 1",
        "060",
        "2024年",
        "23 11 11",
        "10 01:02:03.000",
        None,
    ]


def test_an_hour_that_a_clock_change_skips(spark: SparkSession) -> None:
    skipped = datetime(2024, 3, 10, 2, 30)
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        found = shown(spark, [call("DATE_FORMAT", skipped, "'at' HH:mm", zone="America/New_York")])
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert found == ["at 02:30"]


@pytest.mark.parametrize(
    ("pattern", "error"),
    [("yyyy b", ValidationError), ("YYYY", NotSupportedError), ("MMMMM", NotSupportedError)],
)
def test_letters_that_mean_nothing_or_too_much(pattern: str, error: type[Exception]) -> None:
    with pytest.raises(error, match="pattern letter"):
        call("DATE_FORMAT", LEAP, pattern)


def test_reading_needs_a_constant_pattern() -> None:
    with pytest.raises(NotSupportedError, match="constant"):
        call("TO_DATE", "2024", column("p", t.STRING))


def test_to_date_is_lenient(spark: SparkSession) -> None:
    cases = {
        ("2024-02-30", "yyyy-MM-dd"): "2024-03-01",
        ("2024-2-9 10:00", "yyyy-MM-dd"): "2024-02-09",
        ("20240229x", "yyyyMMdd"): "2024-02-29",
        ("31.12.99", "dd.MM.yy"): "1999-12-31",
        ("1999-01-01", "yy-MM-dd"): "1999-01-01",
        ("march 5, 2024", "MMM d, yyyy"): "2024-03-05",
        ("2024/13/45", "yyyy/MM/dd"): "2025-02-14",
        ("60 2024", "DDD yyyy"): "2024-02-29",
        ("x", "yyyy"): None,
    }
    nodes = [call("TO_DATE", text, pattern) for text, pattern in cases]
    assert shown(spark, nodes) == list(cases.values())


def test_to_timestamp_is_smart(spark: SparkSession) -> None:
    cases = {
        ("30/02/2024", "dd/MM/yyyy"): "2024-02-29 00:00:00.000",
        ("32/02/2024", "dd/MM/yyyy"): None,
        ("29.02.2024 13:14:15.5", "dd.MM.yyyy HH:mm:ss.S"): "2024-02-29 13:14:15.500",
        ("20240229102030", "yyyyMMddHHmmss"): "2024-02-29 10:20:30.000",
        ("10:20:30 PM", "hh:mm:ss a"): "1970-01-01 22:20:30.000",
        ("2024-02-29 10:20:30", "yyyy-MM-dd hh:mm:ss"): "2024-02-29 00:20:30.000",
        ("2024-2-9", "dd.MM.yyyy"): "2024-02-09 00:00:00.000",
        ("2024/02/29 23:59:59", "yyyy/MM/dd"): None,
        ("feb 05 2024", "MMM dd yyyy"): None,
    }
    nodes = [call("TO_TIMESTAMP", text, pattern) for text, pattern in cases]
    assert shown(spark, nodes) == list(cases.values())


def test_epoch_numbers(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        nodes = [
            call("FROM_UNIXTIME", constant(-14182940, t.BIGINT)),
            call("UNIX_TIMESTAMP", "2024-07-01 00:00", "yyyy-MM-dd HH:mm"),
            call("UNIX_TIMESTAMP", "x"),
            call("UNIX_TIMESTAMP", constant(None, t.STRING)),
            call("TO_TIMESTAMP_LTZ", constant(2_000_000_000, t.INT), 0),
            call("TO_TIMESTAMP_LTZ", 1.5, 0),
            call("TO_TIMESTAMP_LTZ", "2024-02-29 10:00:00"),
            call("TO_TIMESTAMP_LTZ", "2024-02-29 10:00", "yyyy-MM-dd HH:mm", "America/New_York"),
            call("CONVERT_TZ", "1970-01-01 00:00:00", "UTC", "America/Los_Angeles"),
            call("UNIX_TIMESTAMP", "1890-10-10 12:00:00"),
        ]
        found = shown(spark, nodes)
        spark.conf.set("spark.sql.session.timeZone", "Australia/Lord_Howe")
        twice = shown(spark, [call("UNIX_TIMESTAMP", f"2024-04-07 01:{n}:00") for n in (30, 45)])
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert found == [
        "1969-07-20 21:17:40",
        1719784800,
        -(2**63),
        None,
        "2033-05-18 05:33:20.000",
        "1970-01-01 01:00:01.500",
        "2024-02-29 11:00:00.000",
        "2024-02-29 16:00:00.000",
        "1969-12-31 16:00:00",
        -2500116808,
    ]
    assert twice == [1712413800, 1712414700]


def test_an_instant_needs_readable_text(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match="Text 'x7' could not be parsed"):
        shown(spark, [call("TO_TIMESTAMP_LTZ", "x7")])
