"""Rows of a result as the runtime hands them over: a RowKind and the carrier values, by position.

Times outside of the years 1 to 9999 have no Python object: to read them so is an error that names them.

Carriers are ``types.physical``'s; ``session.rows.values`` turns them into what a user sees.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa

from tidemill.changelog.rowkind import KIND_COLUMN, RowKind
from tidemill.errors import ExecutionError, InternalError
from tidemill.types.python_values import python_values

ChangelogRow = tuple[RowKind, tuple[Any, ...]]
_ROWS = 4096


def rows_of(table: pa.Table, width: int) -> Iterator[ChangelogRow]:
    """The first ``width`` columns of an Arrow table by row, with their kinds (+I where it has none).

    Python's objects take many times what Arrow's columns do: they are made for a few thousand rows at a time.
    """
    kinds = table.column(KIND_COLUMN) if KIND_COLUMN in table.column_names else None
    for start in range(0, table.num_rows, _ROWS):
        part = table.slice(start, _ROWS)
        columns = [column_values(part, place, start) for place in range(width)]
        rows = zip(*columns, strict=True) if columns else iter([()] * part.num_rows)
        if kinds is None:
            yield from zip(repeat(RowKind.INSERT), rows, strict=False)
        else:
            yield from zip(map(RowKind, kinds.slice(start, _ROWS).to_pylist()), rows, strict=True)


def column_values(table: pa.Table, place: int, before: int = 0) -> list[Any]:
    """The values of a column after ``before`` rows; ExecutionError for a time that Python cannot hold."""
    column = table.column(place)
    try:
        return python_values(column)
    except OverflowError as e:
        raise ExecutionError(
            f"Column '{table.column_names[place]}' has a value outside of the years 1 to 9999, which Python "
            f"has no datetime for: {_first_too_far(column, before)}",
            hint="CAST the column to STRING in the query, or take the rows with to_spark().",
        ) from e


def _first_too_far(column: pa.ChunkedArray, before: int) -> str:
    for row, value in enumerate(column, start=before + 1):
        try:
            value.as_py()
        except OverflowError:
            # Within a collection the value is not worth a search.
            known = pa.types.is_temporal(value.type)
            return f"{_text(value)} in row {row}" if known else f"row {row}"
    raise InternalError("a column without values that are too far away")


def _text(value: pa.Scalar) -> str:
    return str(np.datetime_as_string(pa.array([value]).to_numpy(zero_copy_only=False))[0])
