"""The results at several ends of windows with one start: each window holds the rows of the windows that end
before it, and more.

The pieces are sorted once. A result is made for every piece at which a result is emitted, not for every
end: at an end without rows a window emits the same result again. Cost: a merge of all pieces for every
doubling of the longest window (see ``PartialAggregates.prefixes``), and the emitted results. If rows are kept
for DISTINCT, each value counts at its first row, so these rows merge as well. Other kept rows are processed
again for every result.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import contiguous
from tidemill.changelog.columns import Ints, single, vector
from tidemill.operators.api import EpochContext
from tidemill.operators.window.store.first_slice_distinct import FirstSliceDistinct
from tidemill.operators.window.store.partial_aggregates import (
    Accumulated,
    Collected,
    PartialAggregates,
    at_ends,
    ends_of,
)
from tidemill.state.run import WEIGHT
from tidemill.state.store import StateStore


def last_places(segments: Ints, slices: Ints, asked: Ints, upto: Ints) -> Ints:
    """The place of the last piece of each segment ``asked`` whose slice ends at or before ``upto``: there is
    one. Pieces are in the order of (``segments``, ``slices``)."""
    times, ranks = np.unique(np.concatenate([slices, upto]), return_inverse=True)
    ranks, width = ranks.reshape(-1), len(times)
    own = segments * width + ranks[: len(slices)]
    found: Ints = np.searchsorted(own, asked * width + ranks[len(slices) :], side="right") - 1
    return found


def shown_at(
    pieces: PartialAggregates,
    table: pa.Table,
    starts: Ints,
    last: Ints,
    state: StateStore,
    epoch: EpochContext,
) -> tuple[pa.Table, Ints]:
    """``table``: pieces whose segments begin at ``starts``. For each place in ``last`` the results of its
    segment up to there: the rows, and which place each is of (none if all has been taken back)."""
    if isinstance(pieces, Collected):
        pieces, table = _merging(pieces, table, starts)
    distinct, views = np.unique(last, return_inverse=True)
    held = pieces.prefixes(table, starts, distinct)
    if isinstance(pieces, Accumulated):
        results = contiguous(pieces.told(held))
    else:
        results = contiguous(pieces.results(contiguous(held), state.scratch(), epoch))
    of, views = ends_of(results), views.reshape(-1)
    order = np.argsort(of, kind="stable")
    first, counts = np.searchsorted(of[order], views), np.bincount(of, minlength=len(distinct))[views]
    rows = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
    return results.take(pa.array(order[rows])), np.repeat(np.arange(len(last)), counts)


def _merging(pieces: Collected, table: pa.Table, starts: Ints) -> tuple[PartialAggregates, pa.Table]:
    """``table``, piece by piece, as accumulators, if nothing but DISTINCT is in their way."""
    firsts = FirstSliceDistinct(group=pieces.group, keys=pieces.keys)
    if not firsts.serves or len(table) == 0:
        return pieces, table
    merging = Accumulated(group=firsts.summing, keys=pieces.keys)
    weights = vector(single(table.column(WEIGHT))).values
    places = np.repeat(np.arange(len(table)), weights)
    rows = contiguous(at_ends(table.drop_columns([WEIGHT]), places, places))
    segments = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(table)))
    told = firsts.told_once(rows, segments[places])
    merged = merging.folded(pa.concat_tables([merging.cut(firsts.plain(rows)), told]))
    return merging, merged.take(pa.array(np.argsort(ends_of(merged))))
