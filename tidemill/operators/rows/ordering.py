"""Sorting rows by columns of any type: each column becomes integers that sort as it does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, validity
from tidemill.changelog.values import ranks

_WORTH_PACKING = 1024
_INTS = np.iinfo(np.int64)


@dataclass(frozen=True, slots=True)
class OrderKey:
    """ORDER BY one column; ``nulls_first`` is resolved (Flink: NULL is lowest)."""

    name: str
    ascending: bool
    nulls_first: bool


def by_columns(
    columns: Iterable[tuple[str, object]], *, greatest_first: bool = False
) -> tuple[OrderKey, ...]:
    """The order of rows by what they contain, from their first column on; ``columns``: (name, type)."""
    lowest_first = not greatest_first
    return tuple(OrderKey(name=n, ascending=lowest_first, nulls_first=lowest_first) for n, _ in columns)


def codes(array: pa.Array, key: OrderKey) -> Ints:
    """Integers that order rows as ``key`` says; equal values have equal codes."""
    valid = validity(array)
    row_codes = ranks(array) if key.ascending else ~ranks(array)
    if valid is None or len(row_codes) == 0:
        return row_codes
    lowest, highest = int(row_codes.min()), int(row_codes.max())
    if lowest == _INTS.min or highest == _INTS.max:
        # No integer is left for NULL. Only the order matters, so the codes are renumbered.
        row_codes = np.unique(row_codes, return_inverse=True)[1].astype(np.int64)
        lowest, highest = 0, len(row_codes)
    return np.where(valid, row_codes, lowest - 1 if key.nulls_first else highest + 1)


def sort_rows(owners: Ints, order: list[Ints], arrival: Ints) -> Ints:
    """Row numbers sorted by owner, then by the codes, then by arrival."""
    in_order = bool((arrival[1:] >= arrival[:-1]).all())
    parts = [owners, *order] if in_order else [owners, *order, arrival]
    packed = _packed_order(parts)
    return np.lexsort((arrival, *reversed(order), owners)) if packed is None else packed


def _packed_order(parts: list[Ints]) -> Ints | None:
    """One sort of words that hold all parts and the row number, several times as fast as sorting by
    each part; None if 64 bits cannot hold them."""
    size = len(parts[0])
    if size < _WORTH_PACKING:
        return None
    row_bits = (size - 1).bit_length()
    bounds = [(int(part.min()), int(part.max())) for part in parts]
    bits = [(high - low).bit_length() for low, high in bounds]
    if row_bits + sum(bits) > 64 or max(bits) > 62:
        return None
    words = np.zeros(size, np.uint64)
    for part, (low, _), width in zip(parts, bounds, bits, strict=True):
        words = (words << np.uint64(width)) | (part - low).view(np.uint64)
    words = (words << np.uint64(row_bits)) | np.arange(size, dtype=np.uint64)
    words.sort()
    rows: Ints = (words & np.uint64((1 << row_bits) - 1)).view(np.int64)
    return rows
