"""A table of files for lookup joins: the worker reads it whole, and again if its files have changed."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import pyarrow as pa

from tidemill.changelog.columns import single
from tidemill.connectors.api import ReadLimit
from tidemill.connectors.filesystem.source import FileSource
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import ConnectorError
from tidemill.types.entries import in_order
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_schema


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTable:
    """``retries``: how often a scan is repeated, since a file may be replaced while it is read."""

    source: FileSource
    fields: tuple[Field, ...]
    retries: int

    def version(self) -> Hashable:
        return self.source.entries()

    def scan(self) -> pa.Table:
        for _ in range(self.retries):
            try:
                return self._scan()
            except (ConnectorError, WorkerError):
                continue
        return self._scan()

    def _scan(self) -> pa.Table:
        end = self.source.next_offset(None, ReadLimit())
        batches = (
            batch for task in self.source.tasks(None, end) for batch in self.source.reader.read(task.splits)
        )
        rows = pa.Table.from_batches(batches, arrow_schema(self.fields))
        return pa.table(
            [in_order(single(rows.column(i)), f.type) for i, f in enumerate(self.fields)], rows.schema
        )
