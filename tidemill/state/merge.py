"""Merging runs of one state table: equal identities become one row.

Inputs come newest first, each sorted by hash; the output is sorted by hash. Rows of a growing table stay
as they are. Cost: linear in the rows (a stable sort of sorted pieces), one comparison per pair of equal
hashes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask, Vec, single, to_arrow, vector
from tidemill.changelog.grouping import Groups, group_rows, sort_order
from tidemill.state.layout import Layout, conform
from tidemill.state.run import DELETED, HASH, TIME, WEIGHT


def merge_tables(layout: Layout, tables: Sequence[pa.Table], *, last: bool, now: int) -> pa.Table:
    """One sorted table; ``last``: nothing older lies below, so tombstones can go."""
    schema = layout.schema
    table = pa.concat_tables([conform(t, schema) for t in tables]).combine_chunks()
    if len(table) == 0:
        return table
    if layout.growing:
        return table.take(pa.array(sort_order(vector(table.column(HASH)).values)))
    identity = [single(table.column(f.name)) for f in layout.identity]
    groups = group_rows(vector(table.column(HASH)).values, identity)
    if layout.additive:
        return _merge_weights(table, groups)
    rows = groups.heads
    keep = _alive(table, rows, layout, now, last)
    return table.take(pa.array(rows if keep is None else rows[keep]))


def expired(times: Ints, layout: Layout, now: int) -> Mask:
    """Whether a record last written at ``times`` (ms) reads as absent at ``now``."""
    return times + layout.ttl <= now


def _merge_weights(table: pa.Table, groups: Groups) -> pa.Table:
    weights = vector(table.column(WEIGHT)).values
    if groups.count == len(table) and weights.all():
        return table.take(pa.array(groups.order))
    sums = np.add.reduceat(weights[groups.order], groups.starts)
    keep = np.flatnonzero(sums)
    merged = table.take(pa.array(groups.heads[keep]))
    at = merged.schema.get_field_index(WEIGHT)
    return merged.set_column(at, merged.schema.field(at), to_arrow(Vec(sums[keep]), pa.int64()))


def _alive(table: pa.Table, rows: Ints, layout: Layout, now: int, last: bool) -> Mask | None:
    """Which of ``rows`` stay; None for all of them."""
    keep: Mask | None = None
    if last:
        deleted = vector(table.column(DELETED))
        gone = deleted.values & deleted.mask()
        if gone.any():
            keep = ~gone[rows]
    if layout.ttl:
        # An older version was written earlier, so it has expired too: no tombstone is needed.
        fresh = ~expired(vector(table.column(TIME)).values[rows], layout, now)
        keep = fresh if keep is None else keep & fresh
    return keep
