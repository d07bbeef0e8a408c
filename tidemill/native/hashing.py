"""Hashes of texts by the compiled core."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidemill.native.library import library

Hashes = np.ndarray[tuple[int], np.dtype[np.uint64]]


def hash_texts(array: pa.Array) -> Hashes | None:
    """One hash per value of a string or binary array, as ``changelog.hashing`` has them; of NULL any. None if
    there is no compiled core."""
    core = library()
    _, offsets, data = array.buffers()
    if core is None or offsets is None:
        return None
    hashes = np.empty(len(array), np.uint64)
    first = offsets.address + 4 * array.offset
    core.tidemill_hash_texts(0 if data is None else data.address, first, len(array), hashes.ctypes.data)
    return hashes
