"""Residual conditions over pairs: three-valued logic, one boolean per pair, TRUE alone matches."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest

from tidemill.operators.join.residual import (
    OPERATIONS,
    CastTerm,
    ColumnTerm,
    ComputedTerm,
    ConstantTerm,
    ElapsedTerm,
    Residual,
)

T, F, N = True, False, None
PAIRS = list(product((T, F, N), repeat=2))
BOTH = pa.table(
    {"l": pa.array([a for a, _ in PAIRS], pa.bool_()), "r": pa.array([b for _, b in PAIRS], pa.bool_())}
)
L, R = ColumnTerm("l"), ColumnTerm("r")

LOGIC: dict[str, list[bool | None]] = {
    "AND": [T, F, N, F, F, F, N, F, N],
    "OR": [T, T, T, T, F, N, T, N, N],
    "=": [T, F, N, F, T, N, N, N, N],
    "<>": [F, T, N, T, F, N, N, N, N],
    "IS NOT DISTINCT FROM": [T, F, F, F, T, F, F, F, T],
    "IS DISTINCT FROM": [F, T, T, T, F, T, T, T, F],
}
TESTS: dict[str, list[bool | None]] = {
    "NOT": [F, T, N],
    "IS NULL": [F, F, T],
    "IS NOT NULL": [T, T, F],
    "IS TRUE": [T, F, F],
    "IS NOT TRUE": [F, T, T],
    "IS FALSE": [F, T, F],
    "IS NOT FALSE": [T, F, T],
}


@pytest.mark.parametrize("operation", LOGIC)
def test_logic_of_two(operation: str) -> None:
    condition = ComputedTerm(operation, (L, R))
    assert Residual(condition).matches(BOTH).tolist() == [bool(v) for v in LOGIC[operation]]
    # What is unknown is told from what is false by negating it.
    negated = ComputedTerm("NOT", (condition,))
    assert Residual(negated).matches(BOTH).tolist() == [v is False for v in LOGIC[operation]]


@pytest.mark.parametrize("operation", TESTS)
def test_logic_of_one(operation: str) -> None:
    table = pa.table({"l": pa.array([T, F, N], pa.bool_())})
    assert OPERATIONS[operation](table.column("l")).to_pylist() == TESTS[operation]


def test_numbers_compare_across_types() -> None:
    pairs = pa.table(
        {"l": pa.array([1, 2, 3, None], pa.int32()), "r": pa.array([2**40, 2, 1, 1], pa.int64())}
    )
    expected = {
        "<": [T, F, F, F],
        "<=": [T, T, F, F],
        ">": [F, F, T, F],
        ">=": [F, T, T, F],
    }
    for operation, matches in expected.items():
        assert Residual(ComputedTerm(operation, (L, R))).matches(pairs).tolist() == matches


def test_arithmetic_wraps_as_in_flink() -> None:
    top = 2**31 - 1
    pairs = pa.table({"l": pa.array([top, 5], pa.int32()), "r": pa.array([1, -7], pa.int32())})
    total = ComputedTerm("+", (L, R))
    small = Residual(ComputedTerm("<", (total, ConstantTerm(0, pa.int32()))))
    assert small.matches(pairs).tolist() == [True, True]
    wide = ComputedTerm("+", (CastTerm(L, pa.int64()), CastTerm(R, pa.int64())))
    assert Residual(ComputedTerm("<", (wide, ConstantTerm(0, pa.int64())))).matches(pairs).tolist() == [F, T]


@pytest.mark.parametrize(("value", "expected"), [(True, [T, T]), (False, [F, F]), (None, [F, F])])
def test_a_constant_holds_for_every_pair(value: bool | None, expected: list[bool]) -> None:
    pairs = pa.table({"l": [1, 2]})
    assert Residual(ConstantTerm(value, pa.bool_())).matches(pairs).tolist() == expected


def test_no_pairs_no_matches() -> None:
    assert len(Residual(ComputedTerm("=", (L, R))).matches(BOTH.slice(0, 0))) == 0


def test_signs_wrap_as_in_flink() -> None:
    low = -(2**31)
    rows = pa.table({"l": pa.array([low, -5, 7, None], pa.int32())})
    assert ComputedTerm("ABS", (L,)).of(rows).to_pylist() == [low, 5, 7, None]
    assert ComputedTerm("UNARY -", (L,)).of(rows).to_pylist() == [low, 5, -7, None]


def test_division_and_elapsed_units_as_in_flink() -> None:
    """Doubles divide by zero; units are whole, cut towards zero, and wrap."""
    doubles = pa.table({"l": [1.0, -1.0, 7.0], "r": [0.0, 0.0, 2.0]})
    assert ComputedTerm("/", (L, R)).of(doubles).to_pylist() == [float("inf"), float("-inf"), 3.5]
    stamps = [[0, 1_999, 2**33 * 1_000, None], [1_999, 0, 0, 5]]
    times = pa.table({n: pa.array(v, pa.timestamp("us")) for n, v in zip("lr", stamps, strict=True)})
    assert ElapsedTerm((L, R), 1_000).of(times).to_pylist() == [1, -1, 0, None]


def test_choices_take_the_first_that_holds() -> None:
    case = ComputedTerm(
        "CASE", (L, ConstantTerm(1, pa.int8()), R, ConstantTerm(2, pa.int8()), ConstantTerm(3, pa.int8()))
    )
    found = case.of(BOTH).to_pylist()
    assert found == [1 if a else 2 if b else 3 for a, b in PAIRS]
    assert ComputedTerm("COALESCE", (L, R)).of(BOTH).to_pylist() == [b if a is N else a for a, b in PAIRS]
