"""Decimals of more digits than Python's default context has, where they are made of Python's values."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from tidemill.operators.aggregates.variance import as_result
from tidemill.plan.binder.expressions.literals import widened
from tidemill.plan.expressions import Literal
from tidemill.types.logical import DecimalType
from tidemill.user_functions.values import from_python

NINES = "99999999999999999999.999999999999999999"


@pytest.mark.parametrize("text", [NINES, f"-{NINES}", "12345678901234567890.123456789012345678"])
def test_what_functions_give(text: str) -> None:
    found = from_python([Decimal(text)], DecimalType(precision=38, scale=18))
    assert list(map(str, found.to_pylist())) == [text]


def test_variances() -> None:
    found = as_result(np.array([1e25, 1e30, 1e308, np.nan]), np.ones(4, np.bool_), pa.decimal128(38, 10))
    assert found.to_pylist() == [Decimal("1e25"), None, None, None]


def test_literals_of_a_wider_type() -> None:
    narrow = DecimalType(precision=30, scale=10, nullable=False)
    given = Literal(type=narrow, value=Decimal("98765432109876543210.0123456789"))
    found = widened(given, DecimalType(precision=38, scale=18))
    assert found is not None
    assert str(found.value) == "98765432109876543210.012345678900000000"
