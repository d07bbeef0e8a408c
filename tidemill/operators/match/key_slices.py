"""Splits rows by ranges of key hashes, so work per key needs only the memory of one range."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from tidemill.changelog.columns import Hashes, Ints

SLICE_ROWS = 1 << 18
"""As many as are worth an array operation, and as fit the processor's caches."""


def key_slices(hashes: Hashes) -> Iterator[Ints]:
    """The row indexes, in order, in slices of ascending hashes. Rows of one hash are in one slice."""
    slices = -(-len(hashes) // SLICE_ROWS)
    if slices < 2:
        yield np.arange(len(hashes))
        return
    first, last = hashes.min(), hashes.max()
    width = (int(last) - int(first)) // slices + 1
    numbers = ((hashes - first) // np.uint64(width)).astype(np.uint16)
    # NumPy sorts such short integers by counting.
    order = np.argsort(numbers, kind="stable")
    for start, stop in pairwise(np.searchsorted(numbers[order], np.arange(slices + 1)).tolist()):
        if start < stop:
            yield order[start:stop]
