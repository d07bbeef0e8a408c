"""Looks up the pieces of single windows, for early and late results."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import contiguous
from tidemill.changelog.columns import Ints, Vec, single, to_arrow
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.operators.window.store.partial_aggregates import (
    END,
    Accumulated,
    PartialAggregates,
    at_ends,
    ends_of,
)
from tidemill.state.run import WEIGHT
from tidemill.state.timeline import TimeTable, by_time_order


def window_pieces(
    pieces: PartialAggregates, windows: pa.Table, parts: tuple[Ints, Ints], slices: TimeTable
) -> pa.Table:
    """The pieces of ``windows``, whose slices are ``parts``, by window. Cost: one search for every
    slice and key, however many windows share it."""
    owners, slice_ends = parts
    if len(owners) == 0:
        return pieces.schema.empty_table()
    slice_keys = contiguous(at_ends(windows, owners, slice_ends))
    columns = [slice_keys.column(name).chunk(0) for name in slice_keys.column_names]
    groups = group_rows(hash_columns(columns, len(slice_keys)), columns)
    queries, pieces_found = _lookup(pieces, slice_keys.take(pa.array(groups.heads)), slices)
    # Each piece goes to all windows that have its slice.
    sizes = groups.sizes[queries]
    rows = np.repeat(np.arange(len(queries)), sizes)
    member_index = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    members = groups.order[np.repeat(groups.starts[queries], sizes) + member_index]
    return at_ends(pieces_found, rows, ends_of(windows)[owners[members]])


def _lookup(pieces: PartialAggregates, slice_keys: pa.Table, slices: TimeTable) -> tuple[Ints, pa.Table]:
    """The pieces of distinct slices and keys, and the row of ``slice_keys`` of each."""
    names = [name for name in slice_keys.column_names if name != END]
    ends = ends_of(slice_keys)
    hashes = hash_columns([slice_keys.column(name) for name in names], len(slice_keys))
    order = by_time_order(ends, hashes)
    ends, hashes, picks = ends[order], hashes[order], pa.array(order)
    keys = [single(slice_keys.column(name)).take(picks) for name in names]
    if isinstance(pieces, Accumulated):
        answers = slices.lookup(ends, hashes, keys)
        rows = np.flatnonzero(answers.there)
        read = {f.name: answers.array(f.name).take(pa.array(rows)) for f in pieces.layout.columns}
    else:
        gathered = slices.gather(ends, hashes, keys, np.arange(len(ends)))
        rows = gathered.queries
        read = {f.name: gathered.column(f.name) for f in pieces.layout.values}
        read[WEIGHT] = gathered.column(WEIGHT)
    read[END] = to_arrow(Vec(ends[rows]), pa.int64())
    read |= {name: key.take(pa.array(rows)) for name, key in zip(names, keys, strict=True)}
    pieces_found = pa.table([read[name] for name in pieces.schema.names], schema=pieces.schema)
    return order[rows], pieces_found
