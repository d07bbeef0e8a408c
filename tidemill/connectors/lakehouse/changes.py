"""Keeps a task's changes of an epoch by key, ready to be merged into the buckets of a table.

The last change of a key within a task counts. Between tasks an upsert of a key wins over a delete, unless
the tasks are in order. A task's file has one Arrow batch for each bucket that it touches, so that whoever
merges a bucket reads that part of the file alone.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.connectors.filesystem.writing import unwritten
from tidemill.connectors.lakehouse.buckets import buckets_of
from tidemill.connectors.lakehouse.writing import LakeWriter, stored_table
from tidemill.connectors.last_changes import last_changes
from tidemill.connectors.partition_rows import split_by_partition
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import ConnectorError
from tidemill.files.storage import Storage

DELETED = "$deleted"
Partition = tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True, order=True)
class Staged:
    """One batch of a file of changes; ``task``: the number of the task that has staged it."""

    task: int
    file: str
    batch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeStager:
    """``writer``: of the table's files; ``keys``: the primary key without partition columns; ``directory``:
    of the epoch's changes below the table's root."""

    writer: LakeWriter
    keys: tuple[str, ...]
    buckets: int
    directory: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row with the column ``token``: {"rows": ..., "file": ..., "units": [[partition, bucket], ...]}
        in the order of the file's batches."""
        try:
            units = list(self._units(batches))
            token = {"rows": sum(part.num_rows for _, _, part in units), **self._written(units)}
        except (OSError, pa.ArrowException) as e:
            raise WorkerError(unwritten(self.writer.storage, e)) from None
        yield pa.record_batch([pa.array([json.dumps(token)])], names=["token"])

    def _units(
        self, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[tuple[dict[str, str | None], int, pa.Table]]:
        collected = [pa.Table.from_batches([b]) for b in batches]
        if not any(part.num_rows for part in collected):
            return
        table = self._last(pa.concat_tables(collected).combine_chunks())
        partitions = self.writer.partitions
        for values, part in split_by_partition(table, partitions) if partitions else [({}, table)]:
            numbers = buckets_of(part, self.keys, self.buckets)
            for bucket in np.unique(numbers).tolist():
                yield values, bucket, part.filter(pa.array(numbers == bucket))

    def _last(self, table: pa.Table) -> pa.Table:
        """The last change of each key, with ``DELETED``."""
        names = [f.name for f in self.writer.fields]
        table = table.rename_columns(names + table.column_names[len(names) :])
        stay, go = last_changes(table, [*(f.name for f in self.writer.partitions), *self.keys])
        rows = np.sort(np.concatenate([stay, go]))
        plain = table.select(names).take(pa.array(rows))
        return plain.append_column(DELETED, pa.array(np.isin(rows, go)))

    def _written(self, units: list[tuple[dict[str, str | None], int, pa.Table]]) -> dict[str, Any]:
        if not units:
            return {"file": "", "units": []}
        name = f"changes-{uuid.uuid4().hex}.arrow"
        schema = self.writer.schema.append(pa.field(DELETED, pa.bool_()))

        def write(stream: pa.NativeFile) -> None:
            with pa.ipc.new_file(stream, schema) as target:
                for _, _, part in units:
                    plain = stored_table(part, self.writer.stored, self.writer.schema)
                    flagged = plain.append_column(DELETED, part.column(DELETED))
                    (made,) = flagged.combine_chunks().to_batches()
                    target.write_batch(made)

        self.writer.storage.publish(f"{self.directory}/{name}", write)
        return {"file": name, "units": [[values, bucket] for values, bucket, _ in units]}


def staged_units(tokens: Sequence[str]) -> dict[tuple[Partition, int], list[Staged]]:
    """Where the changes of each bucket of a partition are."""
    found: dict[tuple[Partition, int], list[Staged]] = {}
    for task, token in enumerate(map(json.loads, tokens)):
        for batch, (values, bucket) in enumerate(token["units"]):
            found.setdefault((tuple(values.items()), bucket), []).append(Staged(task, token["file"], batch))
    return found


def net_changes(
    storage: Storage, directory: str, staged: Sequence[Staged], keys: Sequence[str], *, ordered: bool
) -> pa.Table:
    """One change of each key, with ``DELETED``; ConnectorError where the files are gone."""
    parts = [_read(storage, f"{directory}/{at.file}", at.batch) for at in sorted(staged)]
    table = pa.Table.from_batches(parts)
    if not ordered:
        deleted = table.column(DELETED)
        upserts = table.filter(pc.invert(deleted))
        table = pa.concat_tables([table.filter(deleted), upserts])
    last, _ = last_changes(table.combine_chunks(), keys)
    return table.take(pa.array(last))


def _read(storage: Storage, path: str, batch: int) -> pa.RecordBatch:
    try:
        with storage.open(path) as file:
            return pa.ipc.open_file(file).get_batch(batch)
    except (OSError, pa.ArrowException) as e:
        raise ConnectorError(
            f"The staged rows in {storage.full_path(path)} are gone: {e}",
            hint="Something else has removed files below the table's path.",
        ) from None
