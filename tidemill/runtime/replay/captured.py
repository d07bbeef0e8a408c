"""The rows that a sink would get, kept in files: for a table with a primary key the last change of each key
in each task, for another table all changes.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from tidemill.changelog.rowkind import KIND_COLUMN, RowKind
from tidemill.connectors.api import Sink
from tidemill.connectors.arrow_maps import map_batches
from tidemill.connectors.last_changes import last_changes
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import StateError
from tidemill.files.storage import Storage
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EPOCH_COLUMN, TASK_COLUMN = "$epoch", "$task"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRows:
    """``files``: one for each task of each epoch, of ``fields``, kind, epoch and task. ``keys``: as of the
    sink's table, () where equal rows are as often there as they came. ``ordered``: a later task's changes
    are later; else an upsert of a key wins over a delete in another task."""

    storage: Storage
    files: tuple[str, ...]
    fields: tuple[Field, ...]
    keys: tuple[str, ...]
    ordered: bool


@dataclass(slots=True, kw_only=True)
class CapturingSink(Sink):
    """Stands for the sink of a table. What is published is what ``kept`` gives."""

    storage: Storage
    fields: tuple[Field, ...]
    keys: tuple[str, ...]
    ordered: bool
    _files: list[str] = field(default_factory=list)

    def stager(self, epoch: int) -> Capturing:
        return Capturing(storage=self.storage, fields=self.fields, keys=self.keys, epoch=epoch)

    def stage(self, frame: DataFrame, epoch: int) -> DataFrame:
        return map_batches(frame, self.stager(epoch), "token STRING")

    def publish(self, epoch: int, tokens: list[str]) -> None:
        self._files += (name for token in tokens for name in json.loads(token))

    def discard(self, epoch: int) -> None:
        """Files that nobody has published are not looked at."""

    def finish(self) -> None:
        """They are taken from here."""

    @property
    def captured_rows(self) -> KeptRows:
        return KeptRows(
            storage=self.storage,
            files=tuple(self._files),
            fields=self.fields,
            keys=self.keys,
            ordered=self.ordered,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Capturing:
    """Writes a task's rows of an epoch into one file."""

    storage: Storage
    fields: tuple[Field, ...]
    keys: tuple[str, ...]
    epoch: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row with the column ``token``: a list of the file, or of none."""
        context = TaskContext.get()
        task = context.partitionId() if context else 0
        tables = (pa.Table.from_batches([batch]) for batch in batches if len(batch))
        first = next(tables, None)
        names = [] if first is None else [f"{self.epoch}-{task}-{uuid.uuid4().hex[:12]}.arrow"]
        if first is not None:
            rest = chain((first,), tables)
            whole = (pa.concat_tables(rest),) if self.keys else rest
            parts = (self._rows(part, task) for part in whole)
            try:
                self.storage.publish(names[0], lambda stream: _write(stream, parts))
            except OSError as e:
                raise WorkerError(StateError(f"Cannot keep the rows of a replay: {e}")) from None
        yield pa.record_batch([pa.array([json.dumps(names)])], names=["token"])

    def _rows(self, table: pa.Table, task: int) -> pa.Table:
        schema = arrow_schema(self.fields)
        named = table.rename_columns([*schema.names, *table.column_names[len(schema) :]])
        kinds = np.zeros(len(table), np.int8)
        if KIND_COLUMN in named.column_names:
            kinds = np.asarray(named.column(KIND_COLUMN).combine_chunks()) & 1
        rows = named.select(schema.names).cast(schema)
        if self.keys:
            last = np.sort(np.concatenate(last_changes(named.combine_chunks(), self.keys)))
            rows, kinds = rows.take(pa.array(last)), kinds[last]
        beside = {
            KIND_COLUMN: pa.array(np.where(kinds, np.int8(RowKind.DELETE), np.int8(RowKind.INSERT))),
            EPOCH_COLUMN: pa.array(np.full(len(rows), self.epoch, np.int64)),
            TASK_COLUMN: pa.array(np.full(len(rows), task, np.int64)),
        }
        for name, column in beside.items():
            rows = rows.append_column(name, column)
        return rows


def _write(stream: pa.NativeFile, parts: Iterator[pa.Table]) -> None:
    first = next(parts)
    with pa.ipc.new_stream(stream, first.schema) as writer:
        for part in chain((first,), parts):
            writer.write_table(part)
