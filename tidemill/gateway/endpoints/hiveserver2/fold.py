"""A changelog read to its end, and the table that it makes: what a wire without row kinds can give of it.

Rows are equal as everywhere (``changelog.values``) and keep the order in which they last came. Memory is that
of the table, and as much again of changes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import single
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.errors import InternalError
from tidemill.gateway.service.operation import Outcome
from tidemill.gateway.service.pages import Pages

_WAIT_SECONDS = 1.0
_ROWS = 50_000
_ALL = 1 << 62


def folded(outcome: Outcome) -> Outcome:
    """Waits for the query's end. A result that is no changelog stays as it is."""
    if not outcome.info.changelog:
        return outcome
    changes = outcome.pages
    try:
        table = _table(changes)
    finally:
        changes.close()
    pages = Pages(schema=table.schema, folder=f"{changes.folder}-table", memory=changes.memory, ahead=_ALL)
    pages.put(table)
    pages.finish()
    return Outcome(outcome.info, pages)


def _table(changes: Pages) -> pa.Table:
    held = _weighted(changes.schema.empty_table())
    fresh: list[pa.Table] = []
    while True:
        changes.wait_rows(_WAIT_SECONDS)
        page = changes.fetch(changes.token)
        if page.rows is None:
            return _rows(_net([held, *fresh]))
        fresh.append(_weighted(page.rows))
        if sum(part.num_rows for part in fresh) > max(_ROWS, held.num_rows):
            held, fresh = _net([held, *fresh]), []


def _weighted(changes: pa.Table) -> pa.Table:
    """With weights where there were kinds: in the last column."""
    kinds = single(changes.column(changes.num_columns - 1)).to_numpy(zero_copy_only=False)
    weights = pa.array(1 - 2 * (kinds.astype(np.int64) & 1))
    return changes.set_column(changes.num_columns - 1, "weight", weights)


def _net(parts: list[pa.Table]) -> pa.Table:
    """Each row once, with the sum of its weights, where that is not 0."""
    table = pa.concat_tables(parts)
    columns = [single(column) for column in table.columns]
    weights = columns.pop().to_numpy(zero_copy_only=False)
    groups = group_rows(hash_columns(columns, table.num_rows), columns)
    if not groups.count:
        return table
    sums = np.add.reduceat(weights[groups.order], groups.starts)
    last = groups.order[groups.starts + groups.sizes - 1]
    kept = np.flatnonzero(sums)
    kept = kept[np.argsort(last[kept])]
    return table.take(last[kept]).set_column(len(columns), "weight", pa.array(sums[kept]))


def _rows(net: pa.Table) -> pa.Table:
    weights = single(net.column(net.num_columns - 1)).to_numpy(zero_copy_only=False)
    if (weights < 0).any():
        raise InternalError("A changelog took away rows that it had never added")
    rows = net.take(np.repeat(np.arange(net.num_rows), weights))
    return rows.select(list(range(net.num_columns - 1)))
