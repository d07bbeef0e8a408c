"""Hashes follow equality, whatever the layout of the array; equal hashes promise nothing."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from tidemill.changelog.hashing import code_range, hash_column, hash_columns, pair_code

TEXTS = ["", "a", "ab", "abcdefgh", "abcdefghi", "é", "a\0", "x" * 100, "x" * 101, None, "a"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary()])
def test_texts_hash_by_content_not_by_place(kind: pa.DataType) -> None:
    texts = pa.array(TEXTS, pa.string())
    if kind == pa.binary():
        texts = texts.cast(pa.binary())
    alone = [hash_column(texts.slice(i, 1).cast(kind))[0] for i in range(len(TEXTS))]
    together = hash_column(texts.cast(kind))
    assert together.tolist() == alone
    assert alone[1] == alone[-1]
    assert len(set(alone)) == len(TEXTS) - 1


def test_sliced_arrays_hash_like_fresh_ones() -> None:
    texts = pa.array(TEXTS, pa.string())
    fresh = pa.array(TEXTS[3:7], pa.string())
    assert hash_column(texts.slice(3, 4)).tolist() == hash_column(fresh).tolist()
    numbers = pa.array([1, None, 3, 4], pa.int64())
    assert hash_column(numbers.slice(1, 2)).tolist() == hash_column(pa.array([None, 3], pa.int64())).tolist()


def test_numbers_group_as_sql_groups_them() -> None:
    hashes = hash_column(pa.array([0.0, -0.0, float("nan"), -float("nan")], pa.float64()))
    assert hashes[0] != hashes[1]
    assert hashes[2] == hashes[3]


def test_decimals_and_booleans_have_hashes() -> None:
    decimals = hash_column(pa.array([Decimal("1.00"), Decimal("1.01"), None], pa.decimal128(38, 2)))
    assert len(set(decimals.tolist())) == 3
    assert len(set(hash_column(pa.array([True, False, None])).tolist())) == 3


def test_nested_values_hash_by_value() -> None:
    hashes = hash_column(pa.array([[1, 2], [1, 2], [2, 1], None], pa.list_(pa.int32())))
    assert hashes[0] == hashes[1]
    assert len(set(hashes.tolist())) == 3


def test_column_order_and_nulls_matter() -> None:
    a, b = pa.array([1, None], pa.int64()), pa.array([None, 1], pa.int64())
    both = hash_columns([a, b], 2)
    assert both[0] != both[1]
    assert hash_columns([], 2).tolist() == hash_columns([], 3)[:2].tolist()


def test_hashes_are_fixed_for_ever() -> None:
    """State on disk is ordered by them."""
    values = pa.array(["tidemill", None], pa.string())
    assert hash_column(values).tolist() == [16410183690070528280, 11400714819323198485]
    assert hash_column(pa.array([42], pa.int64())).tolist() == [12058926934050108962]


def test_pair_codes_lie_in_their_prefix_range() -> None:
    prefix = np.array([0, 2**63 + 5, 2**64 - 1], np.uint64)
    low, high = code_range(prefix)
    codes = pair_code(prefix, np.array([7, 2**64 - 1, 2**40], np.uint64))
    assert ((codes >= low) & (codes <= high)).all()
