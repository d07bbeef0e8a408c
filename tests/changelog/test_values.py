"""Kernels hold the decisions of ``types.values`` on every pair of hostile values."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.hostile_values import COMPARISONS, ORDERED, VALUES, equal, identity, place
from tidemill.changelog import values as v
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import hash_column
from tidemill.operators.aggregates.extreme import Extreme, as_array, as_cell
from tidemill.operators.join.residual import OPERATIONS
from tidemill.operators.rows.ordering import OrderKey, codes
from tidemill.types import logical as t
from tidemill.types.physical import arrow_type

KINDS = pytest.mark.parametrize("kind", VALUES, ids=str)
SORTED = pytest.mark.parametrize("kind", ORDERED, ids=str)


def column(kind: t.LogicalType, values: list[Any]) -> pa.Array:
    if isinstance(kind, t.RowType):
        values = [
            None if r is None else dict(zip((f.name for f in kind.fields), r, strict=True)) for r in values
        ]
    return pa.array(values, arrow_type(kind))


def pairs(kind: t.LogicalType) -> tuple[list[tuple[Any, Any]], pa.Array, pa.Array]:
    found = list(product(VALUES[kind], repeat=2))
    return found, column(kind, [a for a, _ in found]), column(kind, [b for _, b in found])


@KINDS
def test_identity_and_hash_agree(kind: t.LogicalType) -> None:
    found, left, right = pairs(kind)
    rows = np.arange(len(found))
    same = v.same_at(left, rows, right, rows).tolist()
    assert same == [identity(a) == identity(b) for a, b in found]
    hashes = (hash_column(left) == hash_column(right)).tolist()
    assert hashes == same
    groups = group_rows(hash_column(left), [left])
    assert groups.count == len({identity(a) for a, _ in found})


def test_every_nan_is_one() -> None:
    other = np.array([0x7FF8000000000001, 0xFFF8000000000000], np.uint64).view(np.float64)
    array = pa.array(np.append(other, np.nan))
    assert len(set(hash_column(array).tolist())) == 1
    assert len(set(v.ranks(array).tolist())) == 1


@SORTED
@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("nulls_first", [True, False])
def test_codes_are_the_order(kind: t.LogicalType, ascending: bool, nulls_first: bool) -> None:
    """Of any two, so the order is total; ties are identities."""
    values = list(VALUES[kind])
    found = codes(column(kind, values), OrderKey("x", ascending, nulls_first)).tolist()
    for (a, x), (b, y) in product(zip(values, found, strict=True), repeat=2):
        if a is None or b is None:
            null_first = (a is None) - (b is None)
            assert (y > x) - (y < x) == (null_first if nulls_first else -null_first)
            continue
        wanted = (place(a) > place(b)) - (place(a) < place(b))
        assert (x > y) - (x < y) == (wanted if ascending else -wanted), (a, b)
        assert (x == y) == (identity(a) == identity(b))


@SORTED
@pytest.mark.parametrize("least", [True, False])
def test_the_better_of_two(kind: t.LogicalType, least: bool) -> None:
    found, left, right = pairs(kind)
    extreme = Extreme(least, arrow_type(kind))
    best = as_array(extreme.better(as_cell(left), as_cell(right)), arrow_type(kind)).to_pylist()
    for (a, b), c in zip(found, best, strict=True):
        there = [x for x in (a, b) if x is not None]
        wanted = None if not there else (min if least else max)(there, key=place)
        assert identity(c) == identity(wanted), (a, b)


@KINDS
def test_equal_in_a_join_condition(kind: t.LogicalType) -> None:
    found, left, right = pairs(kind)
    assert OPERATIONS["="](left, right).to_pylist() == [equal(a, b) for a, b in found]
    opposite = [None if equal(a, b) is None else not equal(a, b) for a, b in found]
    assert OPERATIONS["<>"](left, right).to_pylist() == opposite


@SORTED
@pytest.mark.parametrize("operator", COMPARISONS)
def test_compared_in_a_join_condition(kind: t.LogicalType, operator: str) -> None:
    found, left, right = pairs(kind)
    wanted = [None if a is None or b is None else COMPARISONS[operator](a, b) for a, b in found]
    assert OPERATIONS[operator](left, right).to_pylist() == wanted


def test_decimals_of_any_scales_compare() -> None:
    left, right = t.DecimalType(precision=38, scale=0), t.DecimalType(precision=38, scale=30)
    a = column(left, [1, 10**37])
    b = column(right, [1, 2])
    assert OPERATIONS["="](a, b).to_pylist() == [True, False]
    assert OPERATIONS[">"](a, b).to_pylist() == [False, True]
