"""Floats and decimals as Java prints them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tidemill.functions.text.numbers import java_decimal, java_double, java_float


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (100.0, "100.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (-1.25e10, "-1.25E10"),
        (0.1, "0.1"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_doubles(value: float, text: str) -> None:
    assert java_double(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1, "0.1"), (16777216.0, "1.6777216E7"), (1.5, "1.5"), (3.4028235e38, "3.4028235E38"), (-0.0, "-0.0")],
)
def test_floats_have_the_digits_of_32_bits(value: float, text: str) -> None:
    assert java_float(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [("1.50", "1.5"), ("100", "1E+2"), ("0.0000001", "1E-7"), ("0.00", "0"), ("-7", "-7")]
)
def test_decimals_lose_their_zeros(value: str, text: str) -> None:
    assert java_decimal(Decimal(value)) == text
