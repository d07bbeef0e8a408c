"""Pieces of slices as those of the windows that have them, where many windows share a slice.

Of a key the slices of a window are neighbours. So its pieces are brought into order once, and what a window
holds is made of a few runs of neighbours, of 1, 2, 4, ... pieces, that all windows share (see
``Accumulated.runs``): the cost is a merge of all pieces, and of all windows, for every doubling of the pieces
of a window, where each piece merged into each of its windows would be as many merges as it has windows. Where
it has few that is cheaper.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, single
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.operators.window.assigners.assigner import Assigner
from tidemill.operators.window.store.partial_aggregates import Accumulated, at_ends, ends_of
from tidemill.operators.window.store.views import last_places

_FEW = 2
"""Windows of a slice, on average, up to which its pieces are merged once for each."""


def by_window(pieces: Accumulated, slices: pa.Table, windows: Assigner, after: int, upto: int) -> pa.Table:
    """``slices``, one piece per slice and key, as one piece for each key and window that ends in (``after``,
    ``upto``]."""
    ends = ends_of(slices)
    bounds = np.full(len(ends), after, np.int64), np.full(len(ends), upto, np.int64)
    if _shares(ends, windows, after, upto) <= _FEW * len(ends):
        each = at_ends(slices, *windows.containing(ends, *bounds))
        return pieces.folded(each) if len(each) else each
    keys = [single(slices.column(name)) for name, _ in pieces.keys]
    groups = group_rows(hash_columns(keys, len(slices)), keys)
    numbers = groups.ids()
    order = groups.order[np.lexsort((ends[groups.order], numbers))]
    ends = ends[order]
    # A window counts where its first piece is: not with the one before of the key.
    before = np.maximum(bounds[0], np.roll(windows.last_ends(ends), 1))
    before[groups.starts] = after
    first, window_ends = windows.containing(ends, before, bounds[1])
    last = last_places(numbers, ends, numbers[first], window_ends)
    merged = pieces.runs(slices.take(pa.array(order)), numbers, first, last)
    return at_ends(merged, np.arange(len(window_ends)), window_ends)


def _shares(ends: Ints, windows: Assigner, after: int, upto: int) -> int:
    """How many pieces the windows have, one that several have as often."""
    distinct, counts = np.unique(ends, return_counts=True)
    bounds = np.full(len(distinct), after, np.int64), np.full(len(distinct), upto, np.int64)
    rows, _ = windows.containing(distinct, *bounds)
    return int(counts[rows].sum())
