"""Batches of a database's changes: the columns asked for, then each row's kind and its place in the order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN
from tidemill.types.logical import Field
from tidemill.types.physical import spark_schema

FOLLOWING = 1 << 60
"""Row numbers of changes are beyond those of all snapshots."""


def change_schema(fields: tuple[Field, ...], *, changes: bool, sequence: bool) -> str:
    """As Spark DDL. ``changes``: rows have a column with their kind; ``sequence``: and one with their
    number."""
    parts = [spark_schema(fields)] if fields else []
    parts += [f"`{KIND_COLUMN}` TINYINT"] if changes else []
    parts += [f"`{SEQUENCE_COLUMN}` BIGINT"] if sequence else []
    return ", ".join(parts)


def change_batch(
    columns: Sequence[pa.Array], fields: tuple[Field, ...], kinds: Any | None, sequence: Any | None
) -> pa.RecordBatch:
    """``columns`` of ``fields``; ``kinds`` and ``sequence``: numbers for each row, None: no such column."""
    arrays, names = list(columns), [field.name for field in fields]
    for numbers, kind, name in ((kinds, pa.int8(), KIND_COLUMN), (sequence, pa.int64(), SEQUENCE_COLUMN)):
        if numbers is not None:
            arrays.append(pa.array(numbers, kind))
            names.append(name)
    return pa.record_batch(arrays, names=names)
