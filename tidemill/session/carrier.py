"""Rows of a result as the runtime hands them over: a RowKind and the carrier values, by position.

Carriers are ``types.physical``'s; ``session.values`` turns them into what a user sees.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tidemill.changelog.rowkind import KIND_COLUMN, RowKind

ChangelogRow = tuple[RowKind, tuple[Any, ...]]


def rows_of(table: pa.Table, width: int) -> Iterator[ChangelogRow]:
    """The first ``width`` columns of an Arrow table by row, with their kinds (+I where it has none)."""
    columns = [table.column(i).to_pylist() for i in range(width)]
    if KIND_COLUMN in table.column_names:
        kinds = [RowKind(k) for k in table.column(KIND_COLUMN).to_pylist()]
    else:
        kinds = [RowKind.INSERT] * table.num_rows
    if not columns:
        return iter([(kind, ()) for kind in kinds])
    return zip(kinds, zip(*columns, strict=True), strict=True)
