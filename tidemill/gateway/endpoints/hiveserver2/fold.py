"""Folds a finished changelog into its final table, for protocols without row kinds.

Rows are compared as everywhere (``changelog.values``), and sorted by their last change. Memory: twice the
size of the table.
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
    """Waits for the query's end, and returns the final table. Other results than changelogs are unchanged."""
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
    net_rows = _weighted(changes.schema.empty_table())
    new_changes: list[pa.Table] = []
    while True:
        changes.wait_rows(_WAIT_SECONDS)
        page = changes.fetch(changes.token)
        if page.rows is None:
            return _rows(_net([net_rows, *new_changes]))
        new_changes.append(_weighted(page.rows))
        if sum(part.num_rows for part in new_changes) > max(_ROWS, net_rows.num_rows):
            net_rows, new_changes = _net([net_rows, *new_changes]), []


def _weighted(changes: pa.Table) -> pa.Table:
    """``changes`` with a column of weights in place of the last column, the kinds: 1 for +I and +U, -1 for
    others."""
    kinds = single(changes.column(changes.num_columns - 1)).to_numpy(zero_copy_only=False)
    weights = pa.array(1 - 2 * (kinds.astype(np.int64) & 1))
    return changes.set_column(changes.num_columns - 1, "weight", weights)


def _net(parts: list[pa.Table]) -> pa.Table:
    """Each distinct row with the sum of its weights, unless the sum is 0."""
    table = pa.concat_tables(parts)
    columns = [single(column) for column in table.columns]
    weights = columns.pop().to_numpy(zero_copy_only=False)
    groups = group_rows(hash_columns(columns, table.num_rows), columns)
    if not groups.count:
        return table
    sums = np.add.reduceat(weights[groups.order], groups.starts)
    last = groups.order[groups.starts + groups.sizes - 1]
    nonzero = np.flatnonzero(sums)
    nonzero = nonzero[np.argsort(last[nonzero])]
    return table.take(last[nonzero]).set_column(len(columns), "weight", pa.array(sums[nonzero]))


def _rows(net: pa.Table) -> pa.Table:
    weights = single(net.column(net.num_columns - 1)).to_numpy(zero_copy_only=False)
    if (weights < 0).any():
        raise InternalError("A changelog took away rows that it had never added")
    rows = net.take(np.repeat(np.arange(net.num_rows), weights))
    return rows.select(list(range(net.num_columns - 1)))
