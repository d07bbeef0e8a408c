"""Reduces a task's changes to the last change of each key.

Between tasks an upsert of a key wins over a delete: an update that moves a row to another task is a delete
there and an upsert here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.rowkind import KIND_COLUMN

Rows = npt.NDArray[np.int64]


def last_changes(table: pa.Table, keys: Sequence[str]) -> tuple[Rows, Rows]:
    """Ascending row numbers of the last change of each key: those to upsert, and those to delete."""
    last = _last_of_each(table.select(list(keys)))
    kinds = (
        np.asarray(table.column(KIND_COLUMN).combine_chunks())
        if KIND_COLUMN in table.column_names
        else np.zeros(table.num_rows, dtype=np.int8)
    )
    goes = (kinds & 1) == 1
    return last[~goes[last]], last[goes[last]]


def picked(table: pa.Table, rows: Rows) -> pa.Table:
    """The ``rows`` of the table; their numbers are ascending."""
    return table if len(rows) == table.num_rows else table.take(pa.array(rows))


def _last_of_each(keys: pa.Table) -> npt.NDArray[np.int64]:
    """Row numbers of the last row of each key, ascending."""
    first = keys.column(0).combine_chunks()
    plain = pa.types.is_integer(first.type) and not first.null_count
    codes = np.asarray(first) if plain and keys.num_columns == 1 else _codes(keys.column(0))[0]
    for column in keys.columns[1:]:
        more, count = _codes(column)
        _, codes = np.unique(codes * count + more, return_inverse=True)
    _, from_the_end = np.unique(codes[::-1], return_index=True)
    return np.sort(keys.num_rows - 1 - from_the_end)


def _codes(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.int64], int]:
    """A code for each row's value, and an upper bound of the codes."""
    encoded = pc.dictionary_encode(column.combine_chunks(), null_encoding="encode")
    return np.asarray(encoded.indices).astype(np.int64), len(encoded.dictionary) + 1
