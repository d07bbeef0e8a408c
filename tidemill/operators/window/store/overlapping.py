"""Pieces of slices merged into pieces of windows, if many windows share a slice.

The slices of a key's window are neighbours. So the pieces are sorted once, and the content of a window is
merged from a few runs of 1, 2, 4, ... neighbours, which all windows share (see ``Accumulated.runs``). Cost: a
merge of all pieces and all windows per doubling of a window's pieces. Merging each piece into each of its
windows would need as many merges as it has windows, which is cheaper only for few windows.
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
    # A window is computed at its first piece, and not again at later pieces of the key.
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
