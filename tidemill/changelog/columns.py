"""NumPy views of Arrow columns: zero-copy values plus a validity mask.

Fixed-width Arrow types become one NumPy array (temporal types as their integers, DECIMAL as its two
64-bit limbs, shape ``(n, 2)``, low limb first); booleans are unpacked. Everything else (text, bytes,
nested) stays in Arrow and moves by ``take``. Values under a NULL are arbitrary: check ``valid``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

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


_DTYPES = {
    kind.id: np.dtype(code)
    for code, kinds in {
        "i1": (pa.int8(),),
        "i2": (pa.int16(),),
        "i4": (pa.int32(), pa.date32(), pa.time32("ms")),
        "i8": (pa.int64(), pa.date64(), pa.time64("us"), pa.timestamp("us"), pa.duration("us")),
        "u1": (pa.uint8(),),
        "u2": (pa.uint16(),),
        "u4": (pa.uint32(),),
        "u8": (pa.uint64(),),
        "f2": (pa.float16(),),
        "f4": (pa.float32(),),
        "f8": (pa.float64(),),
    }.items()
    for kind in kinds
}
_BOOLEAN, _DECIMAL = pa.bool_().id, pa.decimal128(1).id


def is_fixed(kind: pa.DataType) -> bool:
    """Whether columns of this Arrow type have a ``Vec``."""
    return kind.id in _DTYPES or kind.id in (_BOOLEAN, _DECIMAL)


def dtype_of(kind: pa.DataType) -> np.dtype[Any] | None:
    """The NumPy type of an Arrow number or temporal type; None for all else."""
    return _DTYPES.get(kind.id)


def validity(array: pa.Array) -> Mask | None:
    """The mask of non-NULL values; None if there is no NULL."""
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
    kind = array.type.id
    if kind == _BOOLEAN:
        return Vec(_bits(data, array.offset, len(array)), valid)
    start, stop = array.offset, array.offset + len(array)
    if kind == _DECIMAL:
        limbs = np.frombuffer(data, np.uint64) if data is not None else np.zeros(0, np.uint64)
        return Vec(limbs[: 2 * stop].reshape(-1, 2)[start:stop], valid)
    dtype = _DTYPES.get(kind)
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
    if kind.id == _BOOLEAN:
        data = np.packbits(vec.values, bitorder="little")
    else:
        data = np.ascontiguousarray(vec.values, dtype_of(kind))
    return pa.Array.from_buffers(kind, n, [bitmap, pa.py_buffer(data)], nulls)


def zeros(kind: pa.DataType, n: int) -> Values:
    """The values of ``n`` zeros of a fixed-width type."""
    if kind.id == _DECIMAL:
        return np.zeros((n, 2), np.uint64)
    return np.zeros(n, np.bool_ if kind.id == _BOOLEAN else dtype_of(kind))


def _bits(buffer: pa.Buffer | None, offset: int, n: int) -> Mask:
    if buffer is None or n == 0:
        return np.zeros(n, np.bool_)
    first = offset // 8
    packed = np.frombuffer(buffer, np.uint8)[first : (offset + n + 7) // 8]
    bits = np.unpackbits(packed, bitorder="little")
    return bits[offset - 8 * first : offset - 8 * first + n].view(np.bool_)
