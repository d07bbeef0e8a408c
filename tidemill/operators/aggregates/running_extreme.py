"""MIN and MAX after every row of a retracting input: a heap per group with lazy removal.

This is the only kernel that loops over rows in Python. The next extreme after a retraction depends on all
rows before. A heap finds it in O(log n); array operations would need a pass per row. Speed: about a million
rows a second.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidemill.changelog.columns import Ints, Mask


@dataclass(frozen=True, slots=True)
class HeldValues:
    """The values of each group before the epoch: entries ``offsets[g]:offsets[g + 1]``."""

    codes: Ints
    counts: Ints
    offsets: Ints


def running_least(codes: Ints, weights: Ints, starts: Ints, values_before: HeldValues) -> tuple[Ints, Mask]:
    """Per row in group order: the least code that is there after it, and whether there is one.

    ``weights`` +1 or -1 per row, 0 for a row that does not count. Taking away what is not there is
    remembered as a debt of that value, as Flink's map view does.
    """
    ends = np.append(starts[1:], len(codes)).tolist()
    least = np.zeros(len(codes), np.int64)
    present = np.zeros(len(codes), np.bool_)
    all_codes, all_weights = codes.tolist(), weights.tolist()
    before, counts = values_before.codes.tolist(), values_before.counts.tolist()
    for group, (start, end) in enumerate(zip(starts.tolist(), ends, strict=True)):
        low, high = values_before.offsets[group], values_before.offsets[group + 1]
        copies = dict(zip(before[low:high], counts[low:high], strict=True))
        results = _group(all_codes[start:end], all_weights[start:end], copies)
        present_results = [code for code in results if code is not None]
        there = np.array([code is not None for code in results], np.bool_)
        present[start:end] = there
        least[start:end][there] = present_results
    return least, present


def _group(codes: Sequence[int], weights: Sequence[int], copies: dict[int, int]) -> list[int | None]:
    heap = [code for code, count in copies.items() if count > 0]
    heapq.heapify(heap)
    results: list[int | None] = []
    for code, weight in zip(codes, weights, strict=True):
        if weight:
            count = copies.get(code, 0)
            copies[code] = count + weight
            if weight > 0 and count == 0:
                heapq.heappush(heap, code)
        while heap and copies[heap[0]] <= 0:
            heapq.heappop(heap)
        results.append(heap[0] if heap else None)
    return results
