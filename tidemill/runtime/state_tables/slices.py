"""Slices of windows beside the tables of values of the same slices: each value has its slice.

values:  (key a, due 12, value 7, first 4)       CUMULATE: the first step that has the value
slices:  (key a, due 4): 1 value that it has first
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, single, vector
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.watermarks import END, NONE
from tidemill.operators.window.assigners.assigner import Assigner
from tidemill.operators.window.store.first_slice_distinct import FIRST
from tidemill.state.layout import Layout
from tidemill.state.run import DUE
from tidemill.state.store import StateStore

_ALL = NONE, END - 1


def have_slices(store: StateStore, rows: pa.Table, keys: Sequence[str], sets: Layout) -> bool:
    """Whether every value in ``sets`` is of one of the slices ``rows``."""
    names = [DUE, *keys]
    own = rows.select(names)
    both = pa.concat_tables([own, store.timeline(sets).range(*_ALL).select(names).cast(own.schema)])
    columns = [single(both.column(name)) for name in names]
    heads = group_rows(hash_columns(columns, len(both)), columns).heads
    return not (heads >= len(rows)).any()


def first_values(
    store: StateStore, rows: pa.Table, keys: Sequence[str], firsts: Layout, windows: Assigner
) -> Ints | None:
    """By slice the number of values in ``firsts`` that it has first; a slice may stand for steps before it.
    None if a value is of no slice."""
    values, names = store.timeline(firsts).range(*_ALL), [DUE, *keys]
    own = rows.select(names)
    both = pa.concat_tables([own, values.select(names).cast(own.schema)])
    last = windows.last_ends(vector(single(both.column(DUE))).values)
    columns = [pa.array(last), *(single(both.column(name)) for name in keys)]
    groups = group_rows(hash_columns(columns, len(both)), columns)
    owner = np.empty(len(both), np.int64)
    owner[groups.order] = groups.ids()
    time = vector(single(both.column(DUE))).values.copy()
    time[len(rows) :] = vector(single(values.column(FIRST))).values
    is_slice = np.arange(len(both)) < len(rows)
    order = np.lexsort((is_slice, time, owner))
    ahead = np.where(is_slice[order], np.arange(len(both)), len(both))
    ahead = np.minimum.accumulate(ahead[::-1])[::-1]
    of = order[np.minimum(ahead, len(both) - 1)]
    if ((ahead == len(both)) | (owner[of] != owner[order])).any():
        return None
    counts: Ints = np.bincount(of[~is_slice[order]], minlength=len(rows))
    return counts
