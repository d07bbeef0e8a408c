"""Writes and reads tables of a lakehouse without Spark, as its tasks would."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import KIND_COLUMN
from tidemill.connectors.api import Offset, ReadLimit, Sink
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_schema

UNLIMITED = ReadLimit()
Rows = Sequence[Mapping[str, Any]]


def batch(declared: CatalogTable, rows: Rows, kinds: Sequence[int] | None = None) -> pa.RecordBatch:
    """``rows`` as a frame would carry them, with ``$kind`` for ``kinds``."""
    schema = arrow_schema(tuple(Field(c.name, c.type) for c in declared.physical_columns))
    made = pa.RecordBatch.from_pylist([dict(row) for row in rows], schema)
    if kinds is None:
        return made
    return made.append_column(KIND_COLUMN, pa.array(kinds, pa.int8()))


def staged(target: Sink, *tasks: pa.RecordBatch | list[pa.RecordBatch], epoch: int = 1) -> list[str]:
    """The tokens of an epoch; a task for each batch, or list of batches."""
    stager = target.stager(epoch)
    assert stager is not None
    listed = [task if isinstance(task, list) else [task] for task in tasks]
    return [out.column(0)[0].as_py() for task in listed for out in stager(task)]


def delta_rows(root: Path) -> list[dict[str, Any]]:
    """The newest version of a Delta table, by another reader."""
    rows: list[dict[str, Any]] = (
        pa.RecordBatchReader.from_stream(DeltaTable(root).scan()).read_all().to_pylist()
    )
    return rows


def offsets(source: Any, limit: ReadLimit = UNLIMITED, start: Offset | None = None) -> list[Offset]:
    """The ends of all ranges that there are now."""
    found: list[Offset] = []
    while True:
        end = source.next_offset(found[-1] if found else start, limit)
        if source.is_empty(found[-1] if found else start, end):
            return found
        found.append(end)


def rows(source: Any, start: Offset | None, end: Offset) -> list[dict[str, Any]]:
    """Those of a range."""
    return [row for out in source.reader.read(source.pieces(start, end)) for row in out.to_pylist()]


def all_rows(source: Any) -> list[dict[str, Any]]:
    """Those of a bounded source."""
    end = source.next_offset(None, ReadLimit())
    assert source.is_finished(end)
    return rows(source, None, end)
