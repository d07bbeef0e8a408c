"""Rows of a result as the runtime hands them over: a RowKind and the carrier values, by position.

Times outside of the years 1 to 9999 have no Python object: to read them so is an error that names them.

Carriers are ``types.physical``'s; ``session.values`` turns them into what a user sees.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from tidemill.changelog.rowkind import KIND_COLUMN, RowKind
from tidemill.errors import ExecutionError, InternalError

ChangelogRow = tuple[RowKind, tuple[Any, ...]]


def rows_of(table: pa.Table, width: int) -> Iterator[ChangelogRow]:
    """The first ``width`` columns of an Arrow table by row, with their kinds (+I where it has none)."""
    columns = [_values(table, i) for i in range(width)]
    if KIND_COLUMN in table.column_names:
        kinds = [RowKind(k) for k in table.column(KIND_COLUMN).to_pylist()]
    else:
        kinds = [RowKind.INSERT] * table.num_rows
    if not columns:
        return iter([(kind, ()) for kind in kinds])
    return zip(kinds, zip(*columns, strict=True), strict=True)


def _values(table: pa.Table, place: int) -> list[Any]:
    """The values of a column; ExecutionError for a time that Python has no object for."""
    column = table.column(place)
    try:
        return list(column.to_pylist())
    except OverflowError as e:
        raise ExecutionError(
            f"Column '{table.column_names[place]}' has a value outside of the years 1 to 9999, which Python "
            f"has no datetime for: {_first_too_far(column)}",
            hint="CAST the column to STRING in the query, or take the rows with to_spark().",
        ) from e


def _first_too_far(column: pa.ChunkedArray) -> str:
    for row, value in enumerate(column, start=1):
        try:
            value.as_py()
        except OverflowError:
            # Within a collection the value is not worth a search.
            known = pa.types.is_temporal(value.type)
            return f"{_text(value)} in row {row}" if known else f"row {row}"
    raise InternalError("a column without values that are too far away")


def _text(value: pa.Scalar) -> str:
    return str(np.datetime_as_string(pa.array([value]).to_numpy(zero_copy_only=False))[0])
