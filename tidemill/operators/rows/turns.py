"""Rows of an epoch in turns: the first row of each key, then the second, and so on."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, vector
from tidemill.changelog.grouping import Groups
from tidemill.changelog.rowkind import KIND_COLUMN, RowKind


def turns(table: pa.Table, groups: Groups, *, updates: bool = False) -> list[Ints]:
    """The row numbers of each turn, ascending. With ``updates`` a -U and the following +U of its key are one
    turn, because an update does not delete the key."""
    begins = np.ones(len(groups.order), np.bool_)
    if updates and KIND_COLUMN in table.schema.names:
        kinds = vector(table.column(KIND_COLUMN)).values[groups.order]
        begins[1:] = (kinds[1:] != RowKind.UPDATE_AFTER) | (kinds[:-1] != RowKind.UPDATE_BEFORE)
        begins[groups.starts] = True
    count = np.cumsum(begins)
    turn: Ints = count - np.repeat(count[groups.starts], groups.sizes)
    by_turn = np.argsort(turn, kind="stable")
    ends = np.cumsum(np.bincount(turn))
    return [np.sort(groups.order[rows]) for rows in np.split(by_turn, ends[:-1])]
