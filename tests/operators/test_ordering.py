"""Sort codes and orders: every type, NULLs at either end, extremes, packed and plain sorts alike."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from tidemill.operators.rows.ordering import OrderKey, codes, sort_rows

LOW, HIGH = -(2**63), 2**63 - 1
ASCENDING: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int8(), [-128, 0, 127]),
    (pa.int64(), [LOW, -1, 0, HIGH]),
    (pa.bool_(), [False, True]),
    (pa.float64(), [float("-inf"), -1.5, 0.0, 2.5, float("inf"), float("nan")]),
    (pa.decimal128(5, 2), [Decimal("-9.99"), Decimal("-0.01"), Decimal("0.10"), Decimal("9.00")]),
    (pa.decimal128(38, 0), [Decimal(-(10**30)), Decimal(5), Decimal(10**30)]),
    (pa.string(), ["", "A", "a", "ab", "é", "\U0001f600"]),
    (pa.binary(), [b"", b"\x01", b"\x80", b"\xff"]),
    (pa.date32(), [datetime.date(1960, 1, 1), datetime.date(2024, 2, 29)]),
    (pa.timestamp("us"), [datetime.datetime(1960, 1, 1), datetime.datetime(2024, 2, 29, 1, 2, 3, 4)]),
]


@pytest.mark.parametrize(("kind", "values"), ASCENDING, ids=[str(k) for k, _ in ASCENDING])
@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("nulls_first", [True, False])
def test_codes_order_as_values_do(
    kind: pa.DataType, values: list[Any], ascending: bool, nulls_first: bool
) -> None:
    array = pa.array([*values[::-1], None, *values], kind)
    made = codes(array, OrderKey("x", ascending, nulls_first))
    wanted = list(range(len(values))) if ascending else list(range(len(values)))[::-1]
    null = -1 if nulls_first else len(values)
    expected = np.array([*wanted[::-1], null, *wanted])
    assert (np.sign(made[:, None] - made) == np.sign(expected[:, None] - expected)).all() or (
        # Differences of extreme codes do not fit: compare instead.
        (made[:, None] < made) == (expected[:, None] < expected)
    ).all()


@settings(max_examples=examples(30), deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    width=st.sampled_from([1, 4, 2**40, 2**62]),
    sorted_arrival=st.booleans(),
)
def test_packed_sorts_are_the_plain_ones(seed: int, width: int, sorted_arrival: bool) -> None:
    rng = np.random.default_rng(seed)
    owners, code = rng.integers(0, 9, 3000), rng.integers(-width, width, 3000)
    arrival = rng.integers(0, 99, 3000)
    arrival = np.sort(arrival) if sorted_arrival else arrival
    assert (sort_rows(owners, [code], arrival) == np.lexsort((arrival, code, owners))).all()
