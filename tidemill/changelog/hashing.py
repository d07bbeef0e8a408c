"""64-bit hashes of key columns, the same in every process and version.

Equal keys (as ``columns.equal_at`` sees them) have equal hashes; the reverse is likely, never
assumed. State is ordered by these hashes, so changing a constant here orphans old state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Hashes, Values, canonical, is_fixed, key_bits, single, vector

_NULL = np.uint64(0x9E3779B97F4A7C15)
_STEP = np.uint64(0xD6E8FEB86659FD93)
_HIGH = np.uint64(0xFFFFFFFF00000000)
_HALF = np.uint64(32)


def mix(x: Hashes) -> Hashes:
    """A bijection of 64-bit integers that scatters neighbours (the splitmix64 finaliser)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def hash_columns(columns: Sequence[pa.Array | pa.ChunkedArray], rows: int) -> Hashes:
    """One hash per row over all ``columns``; without columns every row has the same."""
    total = np.full(rows, _STEP, np.uint64)
    for column in columns:
        total = mix(total * _STEP + hash_column(single(column)))
    return total


def hash_column(array: pa.Array) -> Hashes:
    """One hash per value; NULL has its own."""
    if is_fixed(array.type):
        vec = vector(array)
        hashes = _hash_fixed(key_bits(vec.values))
        return hashes if vec.valid is None else np.where(vec.valid, hashes, _NULL)
    if pa.types.is_null(array.type):
        return np.full(len(array), _NULL, np.uint64)
    if pa.types.is_nested(array.type):
        array = canonical(array)
    return _hash_bytes(array)


def pair_code(prefix: Hashes, suffix: Hashes) -> Hashes:
    """The order of a two-part key: 32 bits of the first part's hash, then 32 of the second's."""
    return (prefix & _HIGH) | (suffix >> _HALF)


def code_range(prefix: Hashes) -> tuple[Hashes, Hashes]:
    """The first and last ``pair_code`` of each prefix."""
    low = prefix & _HIGH
    return low, low | ~_HIGH


def _hash_fixed(values: Values) -> Hashes:
    if values.ndim == 2:
        return mix(mix(values[:, 0]) * _STEP + values[:, 1])
    if values.dtype.kind == "u":
        return mix(values.astype(np.uint64))
    return mix(values.astype(np.int64).view(np.uint64))


def _hash_bytes(array: pa.Array) -> Hashes:
    """A sum of bytes times position-dependent odd multipliers, then mixed with the length.

    Works on distinct values only when they are few: texts in streams repeat.
    """
    if not pa.types.is_large_string(array.type) and not pa.types.is_large_binary(array.type):
        array = array.cast(pa.large_binary())
    dictionary = array.dictionary_encode() if _repeats(array) else None
    if dictionary is not None:
        hashes = np.append(_hash_texts(dictionary.dictionary), _NULL)
        codes = vector(dictionary.indices)
        picks = codes.values if codes.valid is None else np.where(codes.valid, codes.values, -1)
        return hashes[picks]
    hashes = _hash_texts(array)
    if array.null_count:
        hashes = np.where(np.asarray(array.is_valid()), hashes, _NULL)
    return hashes


def _repeats(array: pa.Array, sample: int = 512) -> bool:
    if len(array) < 4 * sample:
        return False
    head = array.slice(0, sample)
    return len(head.unique()) < sample // 2


def _hash_texts(array: pa.Array) -> Hashes:
    n = len(array)
    if n == 0:
        return np.zeros(0, np.uint64)
    _, offset_buffer, data = array.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[array.offset : array.offset + n + 1]
    lengths = np.diff(offsets)
    sums = np.zeros(n, np.uint64)
    filled = np.flatnonzero(lengths)
    if len(filled):
        raw = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]].astype(np.uint64)
        starts = offsets[:-1][filled] - offsets[0]
        place = np.arange(len(raw)) - np.repeat(starts, lengths[filled])
        powers = _multipliers(int(lengths.max()))
        sums[filled] = np.add.reduceat(mix(raw + powers[place]), starts)
    return mix(sums * _STEP + lengths.astype(np.uint64))


def _multipliers(n: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    return mix(np.arange(1, n + 1, dtype=np.uint64) * _NULL)
