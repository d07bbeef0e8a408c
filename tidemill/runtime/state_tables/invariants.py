"""What must hold of the records of an aggregation, whoever writes them.

- A key is there if it has rows: ``COUNT(*)`` is more than 0, and no other count is more than that.
- Counts are not NULL, and not below 0. Where values were counted, their sum is not NULL.
- What is derived from other tables of the operator (distinct values, values kept for MIN and MAX under
  retraction) stays as it is: a new key has none of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.columns import Mask
from tidemill.changelog.values import rows_same
from tidemill.errors import ValidationError

Columns = Mapping[str, pa.Array]
_ROWS, _COUNT, _SUM, _DISTINCT = "COUNT(*)", "COUNT(", "SUM(", "(DISTINCT "


def is_derived(column: str, *, has_more: bool) -> bool:
    """Whether other tables tell what ``column`` holds; ``has_more``: whether the operator has others."""
    return has_more and (_DISTINCT in column or not column.startswith((_COUNT, _SUM)))


def check_records(rows: Columns, there: Mask, stored: Columns, shown: str) -> None:
    """``rows``: records to write. ``stored``: the derived columns of those that are ``there`` already, of the
    same keys. ValidationError names the column; ``shown``: what the table is called."""
    for column, why in (*_changed(rows, there, stored), *_miscounted(rows, stored)):
        raise ValidationError(f"A row for '{shown}' breaks the state: column '{column}' {why}.")


def _changed(rows: Columns, there: Mask, stored: Columns) -> Iterator[tuple[str, str]]:
    places = np.arange(len(there))
    for name, before in stored.items():
        empty = pc.is_null(rows[name])
        if pa.types.is_integer(before.type):
            empty = pc.or_kleene(empty, pc.equal(rows[name], 0))
        same = rows_same([rows[name]], places, [before], places)
        if not np.where(there, same, pc.fill_null(empty, False).to_numpy(zero_copy_only=False)).all():
            yield name, "is made of another table of the operator and cannot be changed"


def _miscounted(rows: Columns, derived: Columns) -> Iterator[tuple[str, str]]:
    counts = [name for name in rows if name.startswith(_COUNT) and name not in derived]
    for name in counts:
        least, total = (1 if name == _ROWS else 0), _SUM + name.removeprefix(_COUNT)
        if _any(pc.less(pc.fill_null(rows[name], -1), least)):
            yield name, f"must be {least} or more"
        if _ROWS in counts and _any(pc.greater(rows[name], rows[_ROWS])):
            yield name, f"counts more rows than '{_ROWS}'"
        if total in rows and _any(pc.and_(pc.greater(rows[name], 0), pc.is_null(rows[total]))):
            yield total, f"must not be NULL where '{name}' is more than 0"


def _any(mask: pa.Array) -> bool:
    return bool(pc.any(mask).as_py())
