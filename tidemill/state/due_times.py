"""The due times of the rows of a run, which are in their order, found without a look at all rows.

A packed run has each time once, with the row after its last:

    due    5 5 5 8 8 20  ->  5, 8, 20 and 3, 5, 6
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, vector


class DueTimes(Protocol):
    def take(self, rows: Ints) -> Ints:
        """The times of ``rows``."""
        ...

    def ranges(self, times: Ints) -> tuple[Ints, Ints]:
        """For each of ``times`` its first row, and the row after its last; without rows both are the place
        where it belongs."""
        ...


def due_times_of(column: pa.Array) -> DueTimes:
    """``column``: integers in ascending order, perhaps run-end encoded."""
    if not pa.types.is_run_end_encoded(column.type):
        return _OfEachRow(vector(column).values)
    first = column.find_physical_offset()
    runs = slice(first, first + column.find_physical_length())
    ends = vector(column.run_ends).values[runs].astype(np.int64) - column.offset
    return _OnceForAll(vector(column.values).values[runs], np.minimum(ends, len(column)))


@dataclass(frozen=True, slots=True)
class _OfEachRow:
    times: Ints

    def take(self, rows: Ints) -> Ints:
        return self.times[rows]

    def ranges(self, times: Ints) -> tuple[Ints, Ints]:
        start, stop = (np.searchsorted(self.times, times, side) for side in ("left", "right"))
        return start, stop


@dataclass(frozen=True, slots=True)
class _OnceForAll:
    """``ends``: of each time the row after its last."""

    times: Ints
    ends: Ints

    def take(self, rows: Ints) -> Ints:
        if len(self.times) == 1:
            return np.full(len(rows), self.times[0])
        return self.times[np.searchsorted(self.ends, rows, "right")]

    def ranges(self, times: Ints) -> tuple[Ints, Ints]:
        bounds = np.concatenate([[0], self.ends])
        start, stop = (bounds[np.searchsorted(self.times, times, side)] for side in ("left", "right"))
        return start, stop
