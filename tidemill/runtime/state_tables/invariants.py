"""The invariants of the rows of state tables, whoever writes them.

For records of an aggregation:

- A key is there if it has rows: ``COUNT(*)`` is more than 0, and no other count is more than that.
- Counts are not NULL, and not below 0. Where values were counted, their sum is not NULL; where none were, it
  is 0 or NULL. Only a count that a changed query has added is NULL in records from before: there it is 0.
- Columns that tell what other tables of the operator hold (distinct values, values kept for MIN and MAX under
  retraction) stay as they are: a new key has none of these.

Of all rows: no column is NULL whose type in the query is NOT NULL, and a row is there 1 time or more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.columns import Mask, vector
from tidemill.changelog.values import rows_same
from tidemill.operators.window.assigners.assigner import Assigner
from tidemill.operators.window.clock import Clock
from tidemill.operators.window.store.first_slice_distinct import FIRST
from tidemill.state.run import DUE

Columns = Mapping[str, pa.Array]
Broken = tuple[Mask, str, str]
"""Which rows break the state, by which column, and why."""
ROWS = "COUNT(*)"
_COUNT, _SUM, _DISTINCT, _ADDED = "COUNT(", "SUM(", "(DISTINCT ", " SINCE "


def is_derived(column: str, *, has_more: bool) -> bool:
    """Whether other tables tell what ``column`` holds; ``has_more``: whether the operator has others."""
    return has_more and (_DISTINCT in column or not column.startswith((_COUNT, _SUM)))


def check_required(rows: Columns, required: Iterable[str]) -> Iterator[Broken]:
    for name in required:
        if name in rows:
            yield _mask(pc.is_null(rows[name])), name, "must not be NULL"


def check_times(rows: Columns, name: str) -> Iterator[Broken]:
    """``name``: the column that says how often a row is there."""
    yield _mask(pc.less(pc.fill_null(rows[name], 0), 1)), name, "must be 1 or more"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenWindows:
    """The windows of an operator whose time has come to ``watermark``."""

    windows: Assigner
    clock: Clock
    watermark: int

    def broken(self, rows: Columns) -> Iterator[Broken]:
        """A slice is due when it ends, in milliseconds, and a window that has it is open."""
        ends, windows = vector(rows[DUE]).values, self.windows
        what = "window" if windows.whole else "slice of the windows"
        yield windows.slice_ends(ends - 1) != ends, DUE, f"must be the end of a {what}, in milliseconds"
        last = windows.last_ends(ends)
        yield last < windows.first_ends(ends), DUE, "is the end of a slice that no window has"
        over = last <= self.clock.ended(self.watermark)
        yield over, DUE, "has passed: all windows that have the rows ended before the watermark"
        if FIRST in rows:
            first = vector(rows[FIRST].fill_null(0)).values
            yield last != ends, DUE, "must be the end of the last window of the value, in milliseconds"
            apart = (windows.slice_ends(first - 1) != first) | (windows.last_ends(first) != ends)
            yield apart, FIRST, "must be the end of a step of the window, in milliseconds"


def check_records(rows: Columns, there: Mask, stored: Columns) -> Iterator[Broken]:
    """``rows``: records to write. ``stored``: the derived columns of those that are ``there`` already, of the
    same keys."""
    yield from _changed(rows, there, stored)
    yield from _miscounted(rows, stored)


def _changed(rows: Columns, there: Mask, stored: Columns) -> Iterator[Broken]:
    places = np.arange(len(there))
    for name, before in stored.items():
        empty = pc.is_null(rows[name])
        if pa.types.is_integer(before.type):
            empty = pc.or_kleene(empty, pc.equal(rows[name], 0))
        same = rows_same([rows[name]], places, [before], places)
        broken = ~np.where(there, same, _mask(empty))
        yield broken, name, "is made of another table of the operator and cannot be changed"


def _miscounted(rows: Columns, derived: Columns) -> Iterator[Broken]:
    counts = [name for name in rows if name.startswith(_COUNT) and name not in derived]
    for name in counts:
        least, total = (1 if name == ROWS else 0), _SUM + name.removeprefix(_COUNT)
        count = pc.fill_null(rows[name], 0 if _ADDED in name else -1)
        yield _mask(pc.less(count, least)), name, f"must be {least} or more"
        if ROWS in counts:
            yield _mask(pc.greater(count, rows[ROWS])), name, f"counts more rows than '{ROWS}'"
        if total in rows:
            lacks = pc.and_(pc.greater(count, 0), pc.is_null(rows[total]))
            yield _mask(lacks), total, f"must not be NULL where '{name}' is more than 0"
            if pa.types.is_floating(rows[total].type):
                endless = pc.invert(pc.is_finite(rows[total]))
                yield _mask(endless), total, "must be a finite number"
            if _is_exact(rows[total].type):
                over = pc.and_(pc.equal(count, 0), pc.not_equal(rows[total], 0))
                yield _mask(over), total, f"must be 0 or NULL where '{name}' is 0"


def _is_exact(kind: pa.DataType) -> bool:
    """Floats that were added and taken away again can leave a rest."""
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def _mask(values: pa.Array) -> Mask:
    found: Mask = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
    return found
