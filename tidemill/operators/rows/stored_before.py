"""Retractions of rows that were stored before a column was added: state has NULL in that column.

    stored:  (k=1, a=5)                       a query without b
    then:    +(k=1, a=5, b=7)                 stored as it is
             -(k=1, a=5, b=8)                 takes back (k=1, a=5, b=NULL), which was stored before

A retraction first looks for its exact row. If the row is not stored, it looks for the row without the latest
added column, then without the column before, and so on, because a stored row lacks all columns added after
its epoch. Which of equal rows is removed does not matter. Cost: a sort of the rows of the touched keys, if
there is a retraction.

A row that came after the column may have NULL in it, too. So if the input has retractions, each new row gets
a mark of the epoch, a column only in state, and earlier rows lack the mark as well::

    +(k=1, a=5, b=NULL)              stored with the mark
    -(k=1, a=5, b=8)                 never came: it finds neither b=8 nor a row without the mark
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Hashes, Ints, Mask, Vec, single, to_arrow
from tidemill.changelog.grouping import Groups, group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.operators.rows.grouped import segmented_accumulate
from tidemill.operators.rows.row_difference import copy_number

Columns = Mapping[str, pa.Array]
Late = tuple[tuple[str, int], ...]
"""Columns that rows stored before lack, and the first epochs whose rows have them."""
_MARK = "$since "


def mark(epoch: int) -> str:
    """The column of state that is TRUE in rows that came in this epoch or later."""
    return f"{_MARK}{epoch}"


def is_mark(column: str) -> bool:
    return column.startswith(_MARK)


def marks(late: Late | None) -> tuple[str, ...]:
    """The marks among ``late`` columns."""
    return tuple(name for name, _ in late or () if is_mark(name))


def mark_fields(late: Late | None) -> tuple[pa.Field, ...]:
    return tuple(pa.field(name, pa.bool_()) for name in marks(late))


def marked(table: pa.Table, late: Late | None) -> pa.Table:
    """``table``, of rows that come, with their marks."""
    for name in marks(late):
        table = table.append_column(name, pa.repeat(pa.scalar(True), len(table)))
    return table


def as_stored(owners: Ints, columns: Columns, weights: Ints, old: Mask, late: Late) -> dict[str, pa.Array]:
    """The columns of rows, of which the first are ``old`` (stored) and the others came after them, in this
    order. The ``late`` columns of retracted rows that were stored without them are NULL. ``owners``: the key
    numbers of the rows."""
    stored_columns = dict(columns)
    came = weights[~old]
    if not late or not (came < 0).any() or not old.any():
        return stored_columns
    rows = _unmatched_retractions(owners, stored_columns, weights, old)
    for epoch in sorted({since for _, since in late}, reverse=True):
        if len(rows) == 0:
            break
        lacking = [name for name, since in late if since >= epoch]
        reduced = _with_nulls(stored_columns, lacking, rows)
        is_stored = _is_stored(owners, stored_columns, weights, old, lacking, rows, reduced)
        stored_columns = _replaced(stored_columns, reduced, lacking, rows, is_stored)
        rows = rows[~is_stored]
    return stored_columns


def _identity(owners: Ints, columns: Columns, rows: Ints) -> tuple[list[pa.Array], Hashes]:
    picks = pa.array(rows)
    identity = [to_arrow(Vec(owners[rows]), pa.int64()), *(c.take(picks) for c in columns.values())]
    return identity, hash_columns(identity, len(rows))


def _grouped(owners: Ints, columns: Columns, rows: Ints) -> Groups:
    identity, hashes = _identity(owners, columns, rows)
    return group_rows(hashes, identity)


def _unmatched_retractions(owners: Ints, columns: Columns, weights: Ints, old: Mask) -> Ints:
    """The rows that take back what is not there at their turn."""
    groups = _grouped(owners, columns, np.arange(len(owners)))
    stored_counts, added = _stored_and_added(groups, weights, old)
    owed = np.minimum(stored_counts, 0)
    totals = np.repeat(stored_counts, groups.sizes) + segmented_accumulate(np.add, added, groups.starts)
    lowest = segmented_accumulate(np.minimum, totals, groups.starts)
    debts = np.minimum(lowest, np.repeat(owed, groups.sizes))
    before = np.roll(debts, 1)
    before[groups.starts] = owed
    rows: Ints = np.sort(groups.order[(debts < before) & ~old[groups.order]])
    return rows


def _stored_and_added(groups: Groups, weights: Ints, old: Mask) -> tuple[Ints, Ints]:
    """Per group how many are stored, and in the order of groups what each other row adds."""
    stored_counts = np.add.reduceat(np.where(old, weights, 0)[groups.order], groups.starts)
    return stored_counts, np.where(old, 0, weights)[groups.order]


def _with_nulls(columns: Columns, lacking: list[str], rows: Ints) -> dict[str, pa.Array]:
    picks = pa.array(rows)
    return {
        name: pa.nulls(len(rows), column.type) if name in lacking else column.take(picks)
        for name, column in columns.items()
    }


def _is_stored(
    owners: Ints,
    columns: Columns,
    weights: Ints,
    old: Mask,
    lacking: list[str],
    rows: Ints,
    reduced: Columns,
) -> Mask:
    """Which of ``rows`` are there as they are ``asked`` for: each row that is stored is found once."""
    spare = _spare(owners, columns, weights, old)
    stored = np.flatnonzero(old & (spare > 0))
    for name in lacking:
        stored = stored[columns[name].take(pa.array(stored)).is_null().to_numpy(zero_copy_only=False)]
    if len(stored) == 0:
        return np.zeros(len(rows), np.bool_)
    picks = pa.array(stored)
    both = {n: single(pa.chunked_array([c.take(picks), reduced[n]], c.type)) for n, c in columns.items()}
    numbers = np.concatenate([owners[stored], owners[rows]])
    groups = _grouped(numbers, both, np.arange(len(numbers)))
    ids = np.empty(len(numbers), np.int64)
    ids[groups.order] = groups.ids()
    room = np.bincount(ids[: len(stored)], weights=spare[stored], minlength=groups.count).astype(np.int64)
    wanting = ids[len(stored) :]
    there: Mask = copy_number(wanting) < room[wanting]
    return there


def _spare(owners: Ints, columns: Columns, weights: Ints, old: Mask) -> Ints:
    """Per stored row how many of it the rows that came leave, whatever else they bring; of equal ones the
    first has the number of all."""
    groups = _grouped(owners, columns, np.arange(len(owners)))
    stored_counts, added = _stored_and_added(groups, weights, old)
    lowest = np.minimum.reduceat(segmented_accumulate(np.add, added, groups.starts), groups.starts)
    left = stored_counts + np.minimum(lowest, 0)
    spare = np.zeros(len(owners), np.int64)
    spare[groups.heads] = np.maximum(left, 0)
    return spare


def _replaced(
    columns: Columns, reduced: Columns, lacking: list[str], rows: Ints, there: Mask
) -> dict[str, pa.Array]:
    """``columns`` with what was ``asked`` for in the ``rows`` that were ``there``."""
    size = len(next(iter(columns.values())))
    source_row = np.arange(size)
    source_row[rows[there]] = size + np.flatnonzero(there)
    picks = pa.array(source_row)
    return {
        name: single(pa.chunked_array([column, reduced[name]], column.type)).take(picks)
        if name in lacking
        else column
        for name, column in columns.items()
    }
