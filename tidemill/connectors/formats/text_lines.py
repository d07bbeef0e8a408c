"""Lines of text as bytes, without going through Python strings."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def line_bytes(texts: pa.Array) -> pa.Buffer:
    """Each text and a newline after it, all in one buffer; ``texts`` has no NULL."""
    newline, nothing = pa.scalar("\n", pa.large_string()), pa.scalar("", pa.large_string())
    ended = pc.binary_join_element_wise(texts.cast(pa.large_string()), newline, nothing)
    offsets, data = ended.buffers()[1:]
    ends = memoryview(offsets).cast("q")
    first, last = ends[ended.offset], ends[ended.offset + len(ended)]
    return pa.py_buffer(b"") if data is None else data.slice(first, last - first)


def is_utf8(data: pa.Buffer) -> bool:
    """At the speed of memory."""
    offsets = pa.py_buffer(np.array([0, data.size], dtype=np.int64))
    try:
        pa.Array.from_buffers(pa.large_string(), 1, [None, offsets, data]).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
