"""Whether bytes are UTF-8, at the speed of memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def is_utf8(data: pa.Buffer) -> bool:
    offsets = pa.py_buffer(np.array([0, data.size], dtype=np.int64))
    try:
        pa.Array.from_buffers(pa.large_string(), 1, [None, offsets, data]).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
