"""Merge runs of one state table, so that rows with the same identity become one row.

    newest: (k=1, n=7), (k=2, deleted)
    oldest: (k=1, n=5), (k=2, n=3), (k=3, n=9)
    merged: (k=1, n=7), (k=3, n=9)             if no older layer is below

Inputs come newest first, and all are sorted by code, as is the output. Rows of a growing table stay as
they are.

Cost: linear in the rows (a stable sort of sorted pieces), and one comparison per pair of equal codes.
Memory: a merge step is bounded in bytes, and a larger merge writes several runs, one after another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask, Vec, single, to_arrow, vector
from tidemill.changelog.grouping import Groups, group_ordered, group_rows, sort_order
from tidemill.errors import StateError
from tidemill.state.layout import Layout, conform
from tidemill.state.packing import unpacked_bytes
from tidemill.state.run import DELETED, DUE, HASH, TIME, WEIGHT, RunReader

_OFFSETS = (1 << 31) - 1
"""Bytes that one Arrow column of text can hold."""


def merge_readers(
    layout: Layout, readers: Sequence[RunReader], slice_bytes: int, *, last: bool, now: int
) -> list[RunReader]:
    """The rows of ``readers``, newest first, as runs with ascending ranges; see ``merge_tables``."""
    merged: list[RunReader] = []
    epochs = min(r.epochs[0] for r in readers), max(r.epochs[1] for r in readers)
    for slice_ in _slices(layout, list(readers), slice_bytes):
        table = merge_tables(layout, [r.own_rows for r in slice_], last=last, now=now)
        if len(table):
            merged.append(RunReader.of_table(readers[0].storage, table, epochs))
    return merged


def _slices(layout: Layout, readers: list[RunReader], limit: int) -> Iterator[list[RunReader]]:
    """``readers`` in ranges of codes of at most ``limit`` bytes, if codes can divide them."""
    size = sum(unpacked_bytes(r.table) for r in readers)
    if size <= limit:
        yield readers
        return
    largest = max(readers, key=lambda r: r.rows)
    middle = largest.code(largest.rows // 2)
    below = [r.cut(0, at) for r in readers if (at := r.at(middle)) > 0]
    above = [r.cut(at, r.rows) for r in readers if (at := r.at(middle)) < r.rows]
    if below and above:
        yield from _slices(layout, below, limit)
        yield from _slices(layout, above, limit)
    elif size <= _OFFSETS or largest.bounds[0] == largest.bounds[1]:
        if size > _OFFSETS:
            raise StateError(
                f"State table '{layout.name}': one key has {size} bytes of rows; the limit is {_OFFSETS}",
                hint="Give the key fewer or shorter rows.",
            )
        yield readers
    else:
        # Half of the largest run has its lowest code: the next code is where to split.
        middle = largest.code(0) + 1
        yield [r.cut(0, at) for r in readers if (at := r.at(middle)) > 0]
        yield from _slices(
            layout, [r.cut(at, r.rows) for r in readers if (at := r.at(middle)) < r.rows], limit
        )


def merge_tables(layout: Layout, tables: Sequence[pa.Table], *, last: bool, now: int) -> pa.Table:
    """One sorted table. ``last``: no older layer is below, so tombstones can go."""
    schema = layout.schema
    table = pa.concat_tables([conform(t, schema) for t in tables]).combine_chunks()
    if len(table) == 0:
        return table
    if layout.growing:
        return table.take(pa.array(_by_code(layout, table)))
    groups = _groups(layout, table)
    if layout.additive:
        return _merge_weights(table, groups)
    rows = groups.heads
    keep = _alive(table, rows, layout, now, last)
    return table.take(pa.array(rows if keep is None else rows[keep]))


def expired(times: Ints, layout: Layout, now: int) -> Mask:
    """Whether a record that was last written at ``times`` (ms) is expired at ``now``."""
    return times + layout.ttl <= now


def _by_code(layout: Layout, table: pa.Table) -> Ints:
    """The rows in the order of their codes."""
    hashes = vector(table.column(HASH)).values
    if not layout.by_time:
        return sort_order(hashes)
    order: Ints = np.lexsort((hashes, vector(table.column(DUE)).values))
    return order


def _groups(layout: Layout, table: pa.Table) -> Groups:
    """Equal identities, in the order of codes."""
    identity = [single(table.column(f.name)) for f in layout.identity]
    hashes = vector(table.column(HASH)).values
    if not layout.by_time:
        return group_rows(hashes, identity)
    order = _by_code(layout, table)
    dues, hashes = vector(table.column(DUE)).values[order], hashes[order]
    is_new = np.ones(len(order), np.bool_)
    np.logical_or(dues[1:] != dues[:-1], hashes[1:] != hashes[:-1], out=is_new[1:])
    return group_ordered(order, is_new, identity)


def _merge_weights(table: pa.Table, groups: Groups) -> pa.Table:
    weights = vector(table.column(WEIGHT)).values
    if groups.count == len(table) and weights.all():
        return table.take(pa.array(groups.order))
    sums = np.add.reduceat(weights[groups.order], groups.starts)
    keep = np.flatnonzero(sums)
    merged = table.take(pa.array(groups.heads[keep]))
    index = merged.schema.get_field_index(WEIGHT)
    return merged.set_column(index, merged.schema.field(index), to_arrow(Vec(sums[keep]), pa.int64()))


def _alive(table: pa.Table, rows: Ints, layout: Layout, now: int, last: bool) -> Mask | None:
    """Which of ``rows`` stay; None for all of them."""
    keep: Mask | None = None
    if last:
        deleted = vector(table.column(DELETED))
        is_deleted = deleted.values & deleted.mask()
        if is_deleted.any():
            keep = ~is_deleted[rows]
    if layout.ttl:
        # An older version was written earlier, so it has expired too: no tombstone is needed.
        is_live = ~expired(vector(table.column(TIME)).values[rows], layout, now)
        keep = is_live if keep is None else keep & is_live
    return keep
