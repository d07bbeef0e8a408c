"""Room for the columns that the compiled core writes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

SKIPPED = (0, 0, 0, 0)
_TEXT = 1
NUMBERS = {
    pa.int8(): 2,
    pa.int16(): 3,
    pa.int32(): 4,
    pa.int64(): 5,
    pa.float32(): 6,
    pa.float64(): 7,
}
COLUMN = np.dtype([("kind", "u8"), ("values", "u8"), ("offsets", "u8"), ("valid", "u8")])
"""``Column`` of ``native/src/csv.rs``; the arrays are told by their addresses."""


class Target:
    """Room for one column of ``rows`` records out of ``size`` bytes."""

    def __init__(self, kind: pa.DataType, rows: int, size: int, nullable: bool) -> None:
        self.kind = kind
        self.is_text = kind == pa.string()
        self.values = np.empty(size if self.is_text else rows * kind.bit_width // 8, np.uint8)
        self.offsets = np.zeros(rows + 1 if self.is_text else 0, np.int32)
        self.valid = np.ones(rows if nullable else 0, np.uint8)

    def described(self) -> tuple[int, int, int, int]:
        kind = _TEXT if self.is_text else NUMBERS[self.kind]
        return (kind, self.values.ctypes.data, self.offsets.ctypes.data, self.valid.ctypes.data)

    def array(self, rows: int) -> pa.Array:
        valid = None
        if len(self.valid) and not self.valid[:rows].all():
            valid = pa.py_buffer(np.packbits(self.valid[:rows], bitorder="little"))
        if not self.is_text:
            return pa.Array.from_buffers(self.kind, rows, [valid, pa.py_buffer(self.values)])
        text = pa.py_buffer(self.values[: self.offsets[rows]])
        return pa.Array.from_buffers(self.kind, rows, [valid, pa.py_buffer(self.offsets), text])
