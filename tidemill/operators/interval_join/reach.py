"""Finds rows of equal key whose times are within reach of each other, by one sort of each side.

The word of a row is the upper bits of its key's hash followed by its time. A row reaches the words between
two words of its own. Cost: a sort of words per side, a search in each other's order, and the pairs, of which
few have different keys.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidemill.changelog.columns import Hashes, Ints

_TIME_BITS = 28
"""Times that are not further apart than three days are their own numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Per row the hash of its key, and the first and the last time that it reaches."""

    hashes: Hashes
    low: Ints
    high: Ints


def pairs_in_reach(reach: Reach, hashes: Hashes, times: Ints) -> tuple[Ints, Ints]:
    """Pairs of an index in ``reach`` and an index in ``times`` within its reach. A few pairs may have
    different keys, which the caller must remove."""
    if len(times) == 0 or len(reach.hashes) == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    low, high, numbers = _numbered(reach.low, reach.high, times)
    bits = max(int(high.max()), int(low.max()), int(numbers.max())).bit_length()
    there = _words(hashes, numbers, bits)
    there_order = np.argsort(there)
    there = there[there_order]
    first = _words(reach.hashes, low, bits)
    order = np.argsort(first)
    first = first[order]
    starts = np.searchsorted(there, first)
    last = first + (high - low)[order].view(np.uint64)
    some = np.flatnonzero(starts < len(there))
    some = some[there[starts[some]] <= last[some]]
    starts = starts[some]
    counts = np.searchsorted(there, last[some], side="right") - starts
    ends = np.cumsum(counts)
    positions = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts - starts, counts)
    return np.repeat(order[some], counts), there_order[positions]


def _words(hashes: Hashes, numbers: Ints, bits: int) -> Hashes:
    return (hashes & ~np.uint64((1 << bits) - 1)) | numbers.view(np.uint64)


def _numbered(low: Ints, high: Ints, times: Ints) -> tuple[Ints, Ints, Ints]:
    """Small numbers, none negative, that are in the order of the times: distances from the first, or, where
    times are far apart, ranks among ``times``."""
    base = min(int(times.min()), int(low.min()))
    top = max(int(times.max()), int(high.max()))
    if (top - base).bit_length() <= _TIME_BITS:
        return low - base, high - base, times - base
    ordered = np.sort(times)
    # The last that is reached may be the one before the first.
    return (
        np.searchsorted(ordered, low) + 1,
        np.searchsorted(ordered, high, side="right"),
        np.searchsorted(ordered, times) + 1,
    )
