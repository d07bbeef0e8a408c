"""Sorting rows by columns of any type: each column becomes integers that sort as it does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.columns import Ints, is_fixed, validity, vector


@dataclass(frozen=True, slots=True)
class OrderKey:
    """ORDER BY one column; ``nulls_first`` is resolved (Flink: NULL is lowest)."""

    name: str
    ascending: bool
    nulls_first: bool


def codes(array: pa.Array, key: OrderKey) -> Ints:
    """Integers that order rows as ``key`` says; equal values have equal codes."""
    valid = validity(array)
    ranks = _values(array)
    if not key.ascending:
        ranks = -ranks
    if valid is None:
        return ranks
    lowest, highest = (int(ranks.min()), int(ranks.max())) if len(ranks) else (0, 0)
    return np.where(valid, ranks, lowest - 1 if key.nulls_first else highest + 1)


def _values(array: pa.Array) -> Ints:
    """Ascending codes; arbitrary under a NULL."""
    kind = array.type
    if is_fixed(kind) and not pa.types.is_floating(kind) and not pa.types.is_decimal(kind):
        values = vector(array).values
        if values.dtype.itemsize < 8 or len(values) == 0:
            return values.astype(np.int64)
        if values.min() > np.iinfo(np.int64).min + 2 and values.max() < np.iinfo(np.int64).max - 2:
            return values.astype(np.int64)
    if pa.types.is_decimal128(kind) and kind.precision <= 18:
        return vector(array).values[:, 0].view(np.int64)
    if pa.types.is_nested(kind):
        array = pa.array([None if v is None else repr(v) for v in array.to_pylist()])
    ranks = pc.rank(array, sort_keys="ascending", tiebreaker="dense")
    return np.asarray(ranks).astype(np.int64)


def sort_rows(owners: Ints, order: list[Ints], arrival: Ints) -> Ints:
    """Row numbers sorted by owner, then by the codes, then by arrival."""
    return np.lexsort((arrival, *reversed(order), owners))
