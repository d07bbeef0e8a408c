"""NumPy views of Arrow columns: zero-copy values plus a validity mask.

Fixed-width Arrow types become one NumPy array (temporal types as their integers, DECIMAL as its two
64-bit limbs, shape ``(n, 2)``, low limb first); booleans are unpacked. Everything else (text, bytes,
nested) stays in Arrow and moves by ``take``. Values under a NULL are arbitrary: look at ``valid``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Hashes = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Values = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Vec:
    """Fixed-width values; ``valid`` None means that no row is NULL."""

    values: Values
    valid: Mask | None = None

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: Values) -> Vec:
        return Vec(self.values[rows], None if self.valid is None else self.valid[rows])

    def mask(self) -> Mask:
        return np.ones(len(self.values), np.bool_) if self.valid is None else self.valid


def single(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """One contiguous array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def is_fixed(kind: pa.DataType) -> bool:
    """Whether columns of this Arrow type have a ``Vec``."""
    return dtype_of(kind) is not None or pa.types.is_boolean(kind) or pa.types.is_decimal128(kind)


def dtype_of(kind: pa.DataType) -> np.dtype[Any] | None:
    """The NumPy type of an Arrow number or temporal type; None for all else."""
    if pa.types.is_floating(kind):
        return np.dtype(f"f{kind.bit_width // 8}")
    if pa.types.is_unsigned_integer(kind):
        return np.dtype(f"u{kind.bit_width // 8}")
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        return np.dtype(f"i{kind.bit_width // 8}")
    return None


def validity(array: pa.Array) -> Mask | None:
    """True where a value is there; None when there is no NULL."""
    if array.null_count == 0:
        return None
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.bool_)
    return _bits(array.buffers()[0], array.offset, len(array))


def vector(column: pa.ChunkedArray | pa.Array) -> Vec:
    """The ``Vec`` of a fixed-width column; shares memory except for booleans."""
    array = single(column)
    valid = validity(array)
    data = array.buffers()[1]
    if pa.types.is_boolean(array.type):
        return Vec(_bits(data, array.offset, len(array)), valid)
    start, stop = array.offset, array.offset + len(array)
    if pa.types.is_decimal128(array.type):
        limbs = np.frombuffer(data, np.uint64) if data is not None else np.zeros(0, np.uint64)
        return Vec(limbs[: 2 * stop].reshape(-1, 2)[start:stop], valid)
    dtype = dtype_of(array.type)
    if dtype is None:
        raise TypeError(f"{array.type} has no fixed width")
    values = np.frombuffer(data, dtype) if data is not None and data.size else np.zeros(0, dtype)
    return Vec(values[start:stop], valid)


def to_arrow(vec: Vec, kind: pa.DataType) -> pa.Array:
    """The Arrow array of ``kind`` over the same memory (booleans are packed)."""
    n = len(vec.values)
    bitmap, nulls = None, 0
    if vec.valid is not None:
        nulls = n - int(np.count_nonzero(vec.valid))
        bitmap = pa.py_buffer(np.packbits(vec.valid, bitorder="little")) if nulls else None
    if pa.types.is_boolean(kind):
        data = np.packbits(vec.values, bitorder="little")
    else:
        data = np.ascontiguousarray(vec.values, dtype_of(kind))
    return pa.Array.from_buffers(kind, n, [bitmap, pa.py_buffer(data)], nulls)


def zeros(kind: pa.DataType, n: int) -> Values:
    """The values of ``n`` zeros of a fixed-width type."""
    if pa.types.is_decimal128(kind):
        return np.zeros((n, 2), np.uint64)
    return np.zeros(n, np.bool_ if pa.types.is_boolean(kind) else dtype_of(kind))


def _bits(buffer: pa.Buffer | None, offset: int, n: int) -> Mask:
    if buffer is None or n == 0:
        return np.zeros(n, np.bool_)
    first = offset // 8
    packed = np.frombuffer(buffer, np.uint8)[first : (offset + n + 7) // 8]
    bits = np.unpackbits(packed, bitorder="little")
    return bits[offset - 8 * first : offset - 8 * first + n].view(np.bool_)


def key_bits(values: Values) -> Values:
    """Values that are equal integers where SQL grouping calls the numbers equal (all NaN alike)."""
    if values.dtype.kind != "f":
        return values
    bits = values.view(np.dtype(f"i{values.dtype.itemsize}"))
    missing = np.isnan(values)
    if missing.any():
        bits = np.where(missing, np.array(np.nan, values.dtype).view(bits.dtype), bits)
    return bits


def equal_at(left: pa.Array, left_rows: Values, right: pa.Array, right_rows: Values) -> Mask:
    """Whether ``left[left_rows[i]]`` and ``right[right_rows[i]]`` group together; NULL equals NULL."""
    if is_fixed(left.type):
        return _fixed_equal(vector(left).take(left_rows), vector(right).take(right_rows))
    if pa.types.is_null(left.type):
        return np.ones(len(left_rows), np.bool_)
    if pa.types.is_nested(left.type):
        left, right = canonical(left), canonical(right)
    a, b = left.take(pa.array(left_rows)), right.take(pa.array(right_rows))
    same = pc.equal(a, b)
    if same.null_count == 0:
        return vector(same).values
    both = pc.and_(pc.is_null(a), pc.is_null(b))
    return vector(pc.or_(pc.fill_null(same, False), both)).values


def rows_equal(
    left: Sequence[pa.Array], left_rows: Values, right: Sequence[pa.Array], right_rows: Values
) -> Mask:
    """``equal_at`` over all columns of a key; no columns: always equal."""
    same = np.ones(len(left_rows), np.bool_)
    for a, b in zip(left, right, strict=True):
        same &= equal_at(a, left_rows, b, right_rows)
    return same


def canonical(array: pa.Array) -> pa.Array:
    """A nested column as text that is equal exactly where the values group together.

    The one place that walks values in Python: nested grouping keys are rare and Arrow cannot
    compare them.
    """
    return pa.array([None if v is None else repr(v) for v in array.to_pylist()], pa.string())


def _fixed_equal(a: Vec, b: Vec) -> Mask:
    x, y = key_bits(a.values), key_bits(b.values)
    same: Mask = (x == y).all(axis=1) if x.ndim == 2 else x == y
    if a.valid is None and b.valid is None:
        return same
    left, right = a.mask(), b.mask()
    return np.where(left & right, same, left == right)
