"""Stages one task's rows of an epoch: at most one row per primary key, in one file.

The last change of a key within a task counts. Between tasks an upsert of a key wins over a delete:
an update that moves a row to another task is a delete there and an upsert here.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from pyspark import TaskContext

from tidemill.connectors.last_changes import last_changes, picked
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import ConnectorError
from tidemill.files.storage import Storage
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_schema

UPSERT_FILE = "upsert"
DELETE_FILE = "delete"


class RowsFormat(Protocol):
    """How staged rows are kept."""

    def encode(self, table: pa.Table) -> bytes | pa.Buffer: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JdbcStager:
    """``fields``: the frame's columns by place; ``keys``: names of the primary key, () to append."""

    storage: Storage
    directory: str
    fields: tuple[Field, ...]
    keys: tuple[str, ...]
    rows: RowsFormat

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row with the column ``token``: {"files": [[name, what, rows], ...]}."""
        context = TaskContext.get()
        task = context.partitionId() if context else 0
        attempt = uuid.uuid4().hex[:12]
        try:
            table = self._table(batches)
            upserts, deletes = self._net(table)
            files = [
                [name, what, part.num_rows]
                for what, part in ((UPSERT_FILE, upserts), (DELETE_FILE, deletes.select(list(self.keys))))
                if part.num_rows
                for name in [self._write(f"{what}-{task}-{attempt}", part)]
            ]
        except (OSError, pa.ArrowException) as e:
            raise WorkerError(ConnectorError(f"Cannot stage rows: {e}")) from None
        yield pa.record_batch([pa.array([json.dumps({"files": files})])], names=["token"])

    def _table(self, batches: Iterable[pa.RecordBatch]) -> pa.Table:
        collected = [pa.Table.from_batches([b]) for b in batches]
        if not collected:
            return arrow_schema(self.fields).empty_table()
        table = pa.concat_tables(collected).combine_chunks()
        names = [f.name for f in self.fields]
        return table.rename_columns(names + table.column_names[len(names) :])

    def _net(self, table: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Rows to upsert and rows to delete."""
        plain = table.select([f.name for f in self.fields])
        if not self.keys:
            return plain, plain.slice(0, 0)
        stay, go = last_changes(table, self.keys)
        return picked(plain, stay), picked(plain, go)

    def _write(self, name: str, part: pa.Table) -> str:
        """On the disk when this returns, under a name of this attempt's own: the tokens say who counts."""
        self.storage.publish(f"{self.directory}/{name}", lambda stream: stream.write(self.rows.encode(part)))
        return name
