"""Converts between Arrow texts and bytes without Python strings."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def line_bytes(texts: pa.Array) -> pa.Buffer:
    """All texts in one buffer, each followed by a newline: ``["a", "b"]`` is ``a\\nb\\n``. No text is
    NULL."""
    newline, empty = pa.scalar("\n", pa.large_string()), pa.scalar("", pa.large_string())
    lines = pc.binary_join_element_wise(texts.cast(pa.large_string()), newline, empty)
    offsets, data = lines.buffers()[1:]
    ends = memoryview(offsets).cast("q")
    first, last = ends[lines.offset], ends[lines.offset + len(lines)]
    return pa.py_buffer(b"") if data is None else data.slice(first, last - first)


def is_utf8(data: pa.Buffer) -> bool:
    """Whether ``data`` is valid UTF-8."""
    offsets = pa.py_buffer(np.array([0, data.size], dtype=np.int64))
    try:
        pa.Array.from_buffers(pa.large_string(), 1, [None, offsets, data]).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
