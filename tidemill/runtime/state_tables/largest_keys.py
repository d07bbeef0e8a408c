"""The keys with the most rows in the tables that keep several rows a key: distinct values, sides of joins.

    SELECT * FROM largest_keys ORDER BY row_count DESC LIMIT 3

Each partition of a table tells its largest keys. As a key lies in one partition, they have the largest.
Cost: a read of these tables in Spark's workers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import single
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.connectors.task_frames import assigned
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import StateError
from tidemill.runtime.state_tables.naming import OperatorState, StoredTable
from tidemill.state.run import DUE
from tidemill.state.slices import Slice
from tidemill.state.storage import StateFiles
from tidemill.state.whole_table import live_rows
from tidemill.types.logical import BIGINT, INT, STRING, Field
from tidemill.types.physical import arrow_schema

NAME = "largest_keys"
FIELDS = (
    Field("table_name", STRING),
    Field("partition_id", INT),
    Field("key_text", STRING),
    Field("row_count", BIGINT),
)
_EACH = 20
"""Keys of a partition."""


def tasks_of(operators: Iterable[OperatorState]) -> Iterator[tuple[Any, ...]]:
    """One for each partition of a table of which a key can have several rows."""
    for operator in operators:
        for table in operator.tables:
            keys = _keys(table)
            for partition in table.entries if keys else ():
                slices = [(s.manifest, s.first, s.stop) for s in operator.slices[partition]]
                yield table.name, table.stored, keys, partition, slices


def _keys(table: StoredTable) -> list[tuple[str, str]]:
    """Their stored names and those for people; none where a key has one row."""
    several = any(c.role == "value" or c.stored == DUE for c in table.columns)
    keys = [(c.stored, c.name) for c in table.columns if c.role == "key" and c.stored != DUE]
    return keys if several else []


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestKeys:
    """``now``: as of ``live_rows``; ``wanted``: fields to give, in order."""

    files: StateFiles
    now: int
    wanted: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            for name, stored, keys, partition, slices in assigned(batches):
                rows = [(name, partition, *found) for found in self._largest(stored, keys, slices)]
                columns = zip(*rows, strict=True) if rows else [[]] * len(FIELDS)
                schema = arrow_schema(FIELDS)
                made = [pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)]
                yield from pa.table(made, schema=schema).select(list(self.wanted)).to_batches()
        except StateError as e:
            raise WorkerError(e) from e

    def _largest(
        self, table: str, keys: list[tuple[str, str]], slices: list[tuple[str, int, int]]
    ) -> Iterator[tuple[str, int]]:
        """Keys as JSON text, with their rows."""
        names = [stored for stored, _ in keys]
        found = live_rows(self.files, [Slice(*s) for s in slices], table, self.now)
        pieces = [piece.select(names) for piece in found]
        if not pieces:
            return
        rows = pa.concat_tables(pieces).combine_chunks()
        columns = [single(rows.column(name)) for name in names]
        groups = group_rows(hash_columns(columns, len(rows)), columns)
        largest = np.argsort(-groups.sizes, kind="stable")[:_EACH]
        shown = rows.take(pa.array(groups.heads[largest])).rename_columns([label for _, label in keys])
        for key, count in zip(shown.to_pylist(), groups.sizes[largest], strict=True):
            yield json.dumps(key, default=str, ensure_ascii=False), int(count)
