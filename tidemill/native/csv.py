"""Plain CSV to Arrow columns by the compiled core."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tidemill.native.library import library

_SKIP, _TEXT = 0, 1
_NUMBERS = {
    pa.int8(): 2,
    pa.int16(): 3,
    pa.int32(): 4,
    pa.int64(): 5,
    pa.float32(): 6,
    pa.float64(): 7,
}
_COLUMN = np.dtype([("kind", "u8"), ("values", "u8"), ("offsets", "u8"), ("valid", "u8")])
"""``Column`` of ``native/src/csv.rs``; the arrays are told by their addresses."""


class _Target:
    """Room for one column of ``rows`` records out of ``size`` bytes."""

    def __init__(self, kind: pa.DataType, rows: int, size: int, nullable: bool) -> None:
        self.kind = kind
        self.is_text = kind == pa.string()
        self.values = np.empty(size if self.is_text else rows * kind.bit_width // 8, np.uint8)
        self.offsets = np.zeros(rows + 1 if self.is_text else 0, np.int32)
        self.valid = np.ones(rows if nullable else 0, np.uint8)

    def described(self) -> tuple[int, int, int, int]:
        kind = _TEXT if self.is_text else _NUMBERS[self.kind]
        return (kind, self.values.ctypes.data, self.offsets.ctypes.data, self.valid.ctypes.data)

    def array(self, rows: int) -> pa.Array:
        valid = None
        if len(self.valid) and not self.valid[:rows].all():
            valid = pa.py_buffer(np.packbits(self.valid[:rows], bitorder="little"))
        if not self.is_text:
            return pa.Array.from_buffers(self.kind, rows, [valid, pa.py_buffer(self.values)])
        text = pa.py_buffer(self.values[: self.offsets[rows]])
        return pa.Array.from_buffers(self.kind, rows, [valid, pa.py_buffer(self.offsets), text])


def plain_csv(
    data: pa.Buffer, kinds: Sequence[pa.DataType | None], *, delimiter: str, quote: str, null: str | None
) -> list[pa.Array] | None:
    """The columns of ``data`` that have a kind: whole numbers, floats or strings; None says skip.

    ``delimiter`` and ``quote``: ASCII; an empty quote is none. ``null``: the text that means NULL.

    The result is None without a compiled core, and if ``data`` is not plain: a quote, a carriage return, an
    empty line, a record with another number of fields, a number not spelt by digits alone, invalid UTF-8.
    """
    core = library()
    known = (*_NUMBERS, pa.string(), None)
    if core is None or not data.size or data.size >= 1 << 31 or any(kind not in known for kind in kinds):
        return None
    rows = core.tidemill_count(data.address, data.size, ord("\n")) + 1
    targets = [None if kind is None else _Target(kind, rows, data.size, null is not None) for kind in kinds]
    columns = np.array([(_SKIP, 0, 0, 0) if t is None else t.described() for t in targets], _COLUMN)
    literal = None if null is None else null.encode()
    read = core.tidemill_csv(
        data.address,
        data.size,
        ord(delimiter),
        ord(quote or "\n"),
        literal,
        len(literal or b""),
        columns.ctypes.data,
        len(columns),
        rows,
    )
    return None if read < 0 else [target.array(read) for target in targets if target is not None]
