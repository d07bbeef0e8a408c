"""NumPy views of Arrow arrays, and arrays over NumPy values. What stands under a NULL is arbitrary."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Values = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]


def numbers(array: pa.Array) -> Values:
    """The values of numbers, dates and times, which are integers here."""
    kind = array.type
    letter = "f" if pa.types.is_floating(kind) else "i"
    data = array.buffers()[1]
    values = np.frombuffer(b"" if data is None else data, f"{letter}{kind.bit_width // 8}")
    return values[array.offset : array.offset + len(array)]


def decimal_limbs(array: pa.Array) -> Ints:
    """The two limbs of each decimal, the low one first."""
    data = array.buffers()[1]
    limbs = np.frombuffer(b"" if data is None else data, np.int64).reshape(-1, 2)
    return limbs[array.offset : array.offset + len(array)]


def with_validity(kind: pa.DataType, values: Values, like: pa.Array) -> pa.Array:
    """The array of ``kind`` over ``values``, NULL if ``like`` is NULL."""
    valid = pc.is_valid(like).buffers()[1] if like.null_count else None
    return pa.Array.from_buffers(
        kind, len(like), [valid, pa.py_buffer(np.ascontiguousarray(values))], like.null_count
    )


def text_bytes(array: pa.Array) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """The offsets of texts, one more than there are texts, and the bytes that they point into."""
    _, offset_buffer, data = array.buffers()
    empty = np.zeros(1, np.int32)
    offsets = (
        empty if offset_buffer is None or offset_buffer.size == 0 else np.frombuffer(offset_buffer, np.int32)
    )
    offsets = offsets[array.offset : array.offset + len(array) + 1]
    return offsets, np.frombuffer(b"" if data is None else data, np.uint8)
