"""64-bit hashes of key columns, the same in every process and version.

Equal keys (as ``values.same_at`` sees them) have equal hashes; the reverse is likely, never
assumed. State is ordered by these hashes, so changing a constant here orphans old state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import (
    Hashes,
    Ints,
    Values,
    is_fixed,
    single,
    validity,
    vector,
)
from tidemill.changelog.values import canonical, identity_bits
from tidemill.native.hashing import hash_texts

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
        hashes = _hash_fixed(identity_bits(vec.values))
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
    """Of text and bytes."""
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    offset_buffer = array.buffers()[1]
    n = len(array)
    if n == 0 or offset_buffer is None:
        return np.full(n, _NULL, np.uint64)
    valid = validity(array)
    hashes = None if wide else hash_texts(array)
    if hashes is None:
        hashes = _hash_words(array, wide)
    return hashes if valid is None else np.where(valid, hashes, _NULL)


def _hash_words(array: pa.Array, wide: bool) -> Hashes:
    """Eight bytes at a time: as many passes as the longest has words, each over fewer rows."""
    _, offset_buffer, data = array.buffers()
    n = len(array)
    stored = np.frombuffer(offset_buffer, np.int64 if wide else np.int32)
    offsets: Ints = stored[array.offset : array.offset + n + 1].astype(np.int64, copy=False)
    at: Ints = offsets[:-1].copy()
    left: Ints = np.diff(offsets)
    hashes = mix(left.astype(np.uint64) + _STEP)
    words = _Words.of(data)
    rows = np.flatnonzero(left)
    while len(rows):
        hashes[rows] = mix(hashes[rows] * _STEP + words.load(at[rows], left[rows]))
        at[rows] += 8
        left[rows] -= 8
        rows = rows[left[rows] > 0]
    return hashes


@dataclass(frozen=True, slots=True)
class _Words:
    """A byte buffer as little-endian words at every offset."""

    view: Hashes

    @classmethod
    def of(cls, data: pa.Buffer | None) -> _Words:
        raw = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
        if len(raw) < 8:
            raw = np.concatenate([raw, np.zeros(8 - len(raw), np.uint8)])
        return cls(np.ndarray((len(raw) - 7,), np.dtype("<u8"), raw.data, 0, (1,)))

    def load(self, at: Ints, left: Ints) -> Hashes:
        """The word at each offset, zero beyond the ``left`` bytes that belong to it."""
        # A word that would cross the buffer's end is read from before it and shifted into place.
        start = np.minimum(at, len(self.view) - 1)
        word = self.view[start] >> ((at - start) << 3).astype(np.uint64)
        unused = (np.maximum(8 - left, 0) << 3).astype(np.uint64)
        return (word << unused) >> unused
