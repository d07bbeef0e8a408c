"""Fields, rounding and shifting of dates and times; before 1970 as after it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime

import pytest
from pyspark.sql import SparkSession

from tests.functions.calls import Node, call, constant, kinds, shown
from tidemill.functions.api import SignatureError
from tidemill.types import logical as t

MOON = datetime(1969, 7, 20, 20, 17, 40, 123_000)
NEW_YEAR = datetime(2021, 1, 3, 12, 30, 0, 500_000)
TIME = t.TimeType()
MONTHS, MILLIS = t.YearMonthIntervalType(resolution="MONTH"), t.DayTimeIntervalType()
HOUR = 3_600_000


def months(count: int) -> Node:
    return constant(count, MONTHS)


def millis(count: int) -> Node:
    return constant(count, MILLIS)


def clock(hour: int, minute: int = 0, second: int = 0) -> Node:
    return constant(((hour * 60 + minute) * 60 + second) * 1000, TIME)


@pytest.fixture
def new_york(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_fields(spark: SparkSession) -> None:
    units = (
        "YEAR",
        "DAY",
        "HOUR",
        "SECOND",
        "MILLISECOND",
        "MICROSECOND",
        "EPOCH",
        "DECADE",
        "CENTURY",
        "DOW",
    )
    nodes = [call("EXTRACT", MOON, unit=u) for u in units]
    nodes += [call("EXTRACT", NEW_YEAR, unit=u) for u in ("WEEK", "ISOYEAR", "ISODOW", "DOY", "MILLENNIUM")]
    nodes += [call("HOUR", clock(18, 1, 8)), call("SECOND", clock(18, 1, 8)), call("HOUR", date(2024, 1, 1))]
    nodes += [call("EXTRACT", months(-14), unit="MONTH"), call("EXTRACT", millis(26 * HOUR), unit="HOUR")]
    expected: list[object] = [1969, 20, 20, 40, 123, 123000, -14182940, 196, 20, 1]
    assert shown(spark, nodes) == [*expected, 53, 2020, 7, 3, 3, 18, 8, 0, -2, 2]
    assert str(nodes[0].type) == "BIGINT NOT NULL"


@pytest.mark.parametrize(("value", "unit"), [(clock(1), "DAY"), (date(2024, 1, 1), "MICROSECOND")])
def test_fields_that_a_type_lacks(value: object, unit: str) -> None:
    with pytest.raises(SignatureError, match=f"unit {unit} can not be applied"):
        call("EXTRACT", value, unit=unit)


def test_floor_and_ceil(spark: SparkSession) -> None:
    nodes = [call("FLOOR", MOON, unit=u) for u in ("SECOND", "HOUR", "WEEK", "QUARTER", "DECADE")]
    nodes += [call("CEIL", MOON, unit=u) for u in ("MINUTE", "DAY", "WEEK", "YEAR")]
    nodes += [call("CEIL", datetime(2024, 12, 1), unit=u) for u in ("MONTH", "DAY", "WEEK")]
    nodes += [call("CEIL", date(2024, 1, 1), unit="YEAR"), call("FLOOR", date(2024, 2, 29), unit="WEEK")]
    nodes += [call("FLOOR", clock(10, 20), unit="HOUR"), call("CEIL", clock(10, 20), unit="HOUR")]
    assert [str(v).removesuffix(".000") for v in shown(spark, nodes)] == [
        "1969-07-20 20:17:40",
        "1969-07-20 20:00:00",
        "1969-07-20 00:00:00",
        "1969-07-01 00:00:00",
        "1960-01-01 00:00:00",
        "1969-07-20 20:18:00",
        "1969-07-21 00:00:00",
        "1969-07-27 00:00:00",
        "1970-01-01 00:00:00",
        "2024-12-01 00:00:00",
        "2024-12-01 00:00:00",
        "2024-12-01 00:00:00",
        "2024-01-01",
        "2024-02-25",
        "10:00:00",
        "11:00:00",
    ]


def test_the_repeated_hour_keeps_its_place(new_york: SparkSession) -> None:
    instant = call("TO_TIMESTAMP_LTZ", constant(1730615400, t.BIGINT), 0)
    floored = call("FLOOR", instant, unit="HOUR")
    assert new_york.range(1).selectExpr(f"unix_seconds({floored.sql})").collect()[0][0] == 1730613600


def test_intervals(spark: SparkSession) -> None:
    nodes = [
        call("+", date(2024, 1, 31), months(1)),
        call("-", date(2024, 1, 31), months(2)),
        call("+", date(2024, 1, 1), millis(36 * HOUR)),
        call("-", date(2024, 1, 1), millis(HOUR)),
        call("+", clock(23, 30), millis(HOUR)),
        call("-", clock(0, 15), millis(HOUR)),
        call("+", MOON, millis(500)),
        call("+", millis(500), MOON),
        call("*", 3, months(13)),
        call("-", millis(HOUR), millis(2 * HOUR)),
        call("UNARY -", months(14)),
        call("+", constant(datetime(2024, 1, 1), t.TimestampType(precision=0)), millis(1500)),
    ]
    assert shown(spark, nodes) == [
        "2024-02-29",
        "2023-11-30",
        "2024-01-02",
        "2024-01-01",
        "00:30:00",
        "23:15:00",
        "1969-07-20 20:17:40.623",
        "1969-07-20 20:17:40.623",
        "+3-03",
        "-0 01:00:00.000",
        "-1-02",
        "2024-01-01 00:00:01",
    ]


def test_timestampadd(spark: SparkSession) -> None:
    nodes = [
        call("TIMESTAMPADD", 1, date(2024, 1, 31), unit="MONTH"),
        call("TIMESTAMPADD", -1, MOON, unit="WEEK"),
        call("TIMESTAMPADD", 1, date(2024, 1, 1), unit="HOUR"),
        call("TIMESTAMPADD", 25, clock(10), unit="HOUR"),
        call("TIMESTAMPADD", 2, clock(10), unit="SQL_TSI_MONTH"),
    ]
    assert shown(spark, nodes) == [
        "2024-02-29",
        "1969-07-13 20:17:40.123",
        "2024-01-01 01:00:00.000000",
        "11:00:00",
        "10:00:00",
    ]


def test_timestampdiff(spark: SparkSession) -> None:
    first, last = datetime(2024, 1, 31, 12), datetime(2024, 2, 29, 11, 59, 59)
    back, forth = datetime(2024, 2, 29), datetime(2023, 2, 28, 23, 59, 59)
    nodes = [call("TIMESTAMPDIFF", first, last, unit=u) for u in ("SECOND", "HOUR", "WEEK", "MONTH")]
    nodes += [
        call("TIMESTAMPDIFF", back, forth, unit=u) for u in ("MINUTE", "DAY", "MONTH", "QUARTER", "YEAR")
    ]
    nodes += [
        call("TIMESTAMPDIFF", date(2024, 2, 29), date(2024, 3, 31), unit="MONTH"),
        call("TIMESTAMPDIFF", date(2024, 3, 31), date(2024, 2, 29), unit="MONTH"),
        call("TIMESTAMPDIFF", clock(10), clock(9, 0, 1), unit="HOUR"),
    ]
    assert shown(spark, nodes) == [2505599, 695, 4, 0, -525600, -365, -12, -4, -1, 1, -1, 0]


def test_overlaps_counts_the_bounds(spark: SparkSession) -> None:
    def period(start: object, end: object) -> Node:
        return call("ROW", start, end)

    days = [date(2024, 1, d) for d in (1, 5, 10)]
    nodes = [
        call("OVERLAPS", period(days[0], days[1]), period(days[1], days[2])),
        call("OVERLAPS", period(days[0], millis(24 * HOUR)), period(days[1], days[2])),
        call("OVERLAPS", period(days[1], days[0]), period(days[0], days[0])),
    ]
    assert shown(spark, nodes) == [True, False, True]


def test_the_clock_has_flinks_types() -> None:
    names = ("CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP", "NOW", "PROCTIME")
    assert kinds([call(n) for n in names]) == [
        "DATE NOT NULL",
        "TIME(0) NOT NULL",
        "TIMESTAMP_LTZ(3) NOT NULL",
        "TIMESTAMP(3) NOT NULL",
        "TIMESTAMP_LTZ(3) NOT NULL",
        "TIMESTAMP_LTZ(3) NOT NULL *PROCTIME*",
    ]
    with pytest.raises(SignatureError, match="must be a rowtime attribute, but was 'TIMESTAMP"):
        call("CURRENT_WATERMARK", MOON)
