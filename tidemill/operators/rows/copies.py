"""Combines equal rows into one row with their count (``$copies``) before the exchange, for DISTINCT.

    (k=1, v=5), (k=1, v=5), (k=1, v=7)      ->      (k=1, v=5, $copies=2), (k=1, v=7, $copies=1)

This needs insert-only rows, and calls for which the order of equal rows does not matter. The cost of a key
behind the exchange is then its number of distinct values instead of rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import COPIES, contiguous
from tidemill.changelog.columns import Hashes, single
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.aggregates.registry import merges
from tidemill.operators.api import HASH_COLUMN

LOCAL_GAIN = 0.5
"""Rows are combined while that leaves at most this share of them."""
SAMPLE_ROWS = 1 << 14
_SURELY_LARGER = 1.2
"""How far beyond that share a chunk is guessed to be before combining it is not tried."""
_COPIES_GAIN = 0.2
"""The share of equal rows: the others would be brought together once more behind the exchange."""


def counts_copies(call: AggregateSpec) -> bool:
    """Whether one row with count ``n`` gives ``call`` the same result as ``n`` equal rows, to the last
    digit."""
    return not call.user and (call.distinct or merges(call, pa.types.is_integer))


def columns_read(calls: Sequence[AggregateSpec]) -> tuple[str, ...]:
    """The columns that ``calls`` read."""
    names = (name for c in calls for name in (*c.args, *(() if c.filter is None else (c.filter,))))
    return tuple(dict.fromkeys(names))


def combine_equal_rows(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """The distinct rows of the columns ``names``, with ``$hash`` and ``$copies``; all rows if too many of
    them are distinct."""
    table = contiguous(table)
    columns = [single(table.column(name)) for name in names]
    first = min(SAMPLE_ROWS, len(table))
    if not is_worth_combining(
        hash_columns([c.slice(0, first) for c in columns], first), len(table), _COPIES_GAIN
    ):
        return with_single_copies(table, names)
    groups = group_rows(hash_columns(columns, len(table)), columns)
    if groups.count > _COPIES_GAIN * len(table):
        return with_single_copies(table, names)
    rows = table.select([*names, HASH_COLUMN]).take(pa.array(groups.heads))
    return rows.append_column(COPIES, pa.array(np.asarray(groups.sizes, np.int64)))


def with_single_copies(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Each row with ``$copies`` 1, in the form of ``combine_equal_rows``."""
    return table.select([*names, HASH_COLUMN]).append_column(COPIES, pa.array(np.ones(len(table), np.int64)))


def is_worth_combining(sample: Hashes, rows: int, gain: float = LOCAL_GAIN) -> bool:
    """Estimates from a ``sample`` whether combining equal rows leaves at most the share ``gain`` of
    ``rows``."""
    repeated = len(sample) - len(np.unique(sample))
    if rows <= len(sample) or repeated == 0:
        return repeated >= (1 - gain) * rows
    # The number of distinct values that would repeat so often if all were equally frequent.
    distinct = len(sample) ** 2 / (2 * repeated)
    return bool(distinct * -np.expm1(-rows / distinct) <= _SURELY_LARGER * gain * rows)
