"""Literals: their types and values, and which texts Flink refuses. All answers are recorded from Flink."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from tests.plan.environment import sample
from tidemill.errors import SqlSyntaxError, ValidationError
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Literal

DAY = dt.datetime(2020, 1, 1)
MS = 1000
HOUR = 3600 * MS


def constant(text: str) -> tuple[str, Any]:
    plan = sample().bind(f"SELECT {text}")
    assert isinstance(plan, n.Project)
    (found,) = plan.expressions
    assert isinstance(found, Literal), found
    return str(found.type).removesuffix(" NOT NULL"), found.value


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("TIMESTAMP '2020-01-01'", "TIMESTAMP(0)", DAY),
        ("TIMESTAMP ' 2020-1-1'", "TIMESTAMP(0)", DAY),
        ("TIMESTAMP '2020-01-01.5'", "TIMESTAMP(1)", DAY.replace(microsecond=500000)),
        ("TIMESTAMP '2020-01-01  1:2:3'", "TIMESTAMP(0)", DAY.replace(hour=1, minute=2, second=3)),
        ("TIMESTAMP '2020-01-01 10:00:00.'", "TIMESTAMP(0)", DAY.replace(hour=10)),
        ("TIMESTAMP '20-01-01 00:00:00.12'", "TIMESTAMP(2)", dt.datetime(20, 1, 1, microsecond=120000)),
        ("TIME ' 1:2: 3'", "TIME(0)", HOUR + 123 * MS),
        ("TIME '10:00:00.123456789012'", "TIME(3)", 10 * HOUR + 123),
        ("DATE ' 2020- 1-001'", "DATE", DAY.date()),
        ("INTERVAL ' 1 ' DAY", "INTERVAL SECOND(3)", 24 * HOUR),
        ("INTERVAL -'-1' HOUR", "INTERVAL SECOND(3)", HOUR),
        ("INTERVAL '-1-2' YEAR TO MONTH", "INTERVAL MONTH", -14),
        ("INTERVAL '1 2:3:4.5' DAY TO SECOND", "INTERVAL SECOND(3)", 26 * HOUR + 184500),
        ("INTERVAL '1.123456' SECOND", "INTERVAL SECOND(3)", 1123),
        ("INTERVAL '1.1234567' SECOND(2, 9)", "INTERVAL SECOND(3)", 1123),
        ("INTERVAL '1' WEEK", "INTERVAL SECOND(3)", 168 * HOUR),
        ("1e-400", "DOUBLE", 0.0),
        ("0e999", "DOUBLE", 0.0),
        ("4.9e-324", "DOUBLE", 5e-324),
        ("-9223372036854775808", "BIGINT", -(2**63)),
        ("0" * 5000 + "1", "INT", 1),
        ("5.", "INT", 5),
        ("922337203685477580.7", "DECIMAL(19, 1)", Decimal("922337203685477580.7")),
        ("-922337203685477580.8", "DECIMAL(19, 1)", Decimal("-922337203685477580.8")),
        ("0" * 44 + "1.5", "DECIMAL(38, 1)", Decimal("1.5")),
        ("0." + "0" * 37 + "1", "DECIMAL(38, 38)", Decimal("1e-38")),
    ],
)
def test_constants(text: str, kind: str, value: Any) -> None:
    assert constant(text) == (kind, value)


@pytest.mark.parametrize("form", ["TIMESTAMP", "DATE", "TIME", "TIMESTAMP WITH LOCAL TIME ZONE"])
@pytest.mark.parametrize(
    "text",
    ["", "abc", "2020-01-01 ", "2020-01-01T10:00:00", "2020-01-01 10:00", "10:00", "10:00:00 ", "24:00:00",
     "2020-02-30", "2020/01/01", "0000-01-01", "10000-01-01", "-2020-01-01", "2020-01-01 -1:00:00",
     "10:00:60", "10:00:00.12a", "2020-01-01 10:00:00Z", "9" * 5000 + "-01-01"],
)  # fmt: skip
def test_other_texts_are_no_moment(form: str, text: str) -> None:
    shown = form.split()[0]
    with pytest.raises(
        SqlSyntaxError, match=f"^Illegal {shown} literal '{text}': not in format '[yMdHms: -]+' "
    ):
        constant(f"{form} '{text}'")


@pytest.mark.parametrize(
    "text",
    ["'' DAY", "'x' DAY", "'-' YEAR", "'1.5' DAY", "'--1' DAY", "'+-1' DAY", "'- 1' DAY", "'１' DAY",
     "'1-2' DAY TO HOUR", "'1:2' DAY TO HOUR", "'1 2 3' DAY TO MINUTE", "'1 2' YEAR TO MONTH",
     "'1  2:3:4.5' DAY TO SECOND", "'1.' SECOND", "'.5' SECOND", "'1.1234567' SECOND",
     "'1.123' SECOND(2, 2)"],
)  # fmt: skip
def test_other_texts_are_no_interval(text: str) -> None:
    with pytest.raises(ValidationError, match=r"^Illegal interval literal format"):
        constant(f"INTERVAL {text}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1e400", "Numeric literal '1E400' out of range (at line 1, column 8)"),
        ("-1.8e308", "Numeric literal '-1.8E308' out of range"),
        ("9223372036854775808", "Numeric literal '9223372036854775808' out of range"),
        (
            "123456789012345678901234567890123456789.",
            "'123456789012345678901234567890123456789' out of range",
        ),
        ("1234567890123456789.5", "Numeric literal '1234567890123456789.5' out of range"),
        ("-922337203685477580.9", "Numeric literal '-922337203685477580.9' out of range"),
        ("9" * 5000, "out of range"),
        ("0." + "0" * 38 + "1", "out of range"),
        ("INTERVAL '100' DAY", "Interval field value 100 exceeds precision of DAY(2) field"),
        ("INTERVAL '2147483648' SECOND(10)", "value 2,147,483,648 exceeds precision of SECOND(10) field"),
        ("INTERVAL '1' DAY(11)", "Interval leading field precision '11' out of range for INTERVAL DAY(11)"),
        ("INTERVAL '1' DAY(0)", "Interval leading field precision '0' out of range"),
        ("INTERVAL '2147483647' YEAR(10)", "Interval literal '2147483647' is out of range"),
        ("INTERVAL '2:63' MINUTE TO SECOND", "Interval field value 63 is out of range for SECOND"),
        ("1 ORDER BY " + "9" * 5000, "out of range"),
    ],
)
def test_numbers_out_of_range(text: str, message: str) -> None:
    with pytest.raises(ValidationError) as e:
        constant(text)
    assert message in str(e.value)


def test_a_moment_outside_of_the_calendar_in_utc() -> None:
    environment = sample()
    environment.time_zone = "Asia/Tokyo"
    with pytest.raises(ValidationError, match="out of range in UTC"):
        environment.bind("SELECT TIMESTAMP WITH LOCAL TIME ZONE '0001-01-01'")
