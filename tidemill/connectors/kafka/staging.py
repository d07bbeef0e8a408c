"""Keeps a task's messages of an epoch as files, ready to be sent."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from tidemill.changelog.rowkind import KIND_COLUMN
from tidemill.connectors.formats.api import TextEncoder
from tidemill.connectors.last_changes import last_changes, picked
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import ConnectorError
from tidemill.files.storage import Storage
from tidemill.types.logical import Field

HEADERS = pa.map_(pa.string(), pa.binary())
MESSAGES = pa.schema(
    [("key", pa.binary()), ("value", pa.binary()), ("timestamp", pa.int64()), ("headers", HEADERS)]
)
"""Timestamps in ms."""
UPSERTS, DELETES = "upsert", "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageEncoder:
    """``fields``: the frame's columns by place; ``key_columns``: those that make the key, in its order, and
    ``key_names`` as its format knows them; ``metadata``: the columns that make timestamp and headers, by
    these keys."""

    fields: tuple[Field, ...]
    value: TextEncoder
    key: TextEncoder | None
    key_columns: tuple[str, ...]
    key_names: tuple[str, ...]
    metadata: Mapping[str, str]

    def named(self, batch: pa.RecordBatch) -> pa.Table:
        """``batch`` with the table's names of columns."""
        names = [f.name for f in self.fields]
        return pa.Table.from_batches([batch]).rename_columns(names + batch.schema.names[len(names) :])

    def encode(self, table: pa.Table, *, deletes: bool = False) -> pa.Table:
        """A message per row; one that ``deletes`` has a key alone."""
        rows = table.num_rows
        key: Any = pa.nulls(rows, pa.binary())
        if self.key is not None:
            of_key = table.select(list(self.key_columns)).rename_columns(list(self.key_names))
            key = _bytes(self.key.texts(of_key)) if rows else key
        value = pa.nulls(rows, pa.binary()) if deletes or not rows else _bytes(self.value.texts(table))
        columns = [key, value, self._metadata(table, "timestamp"), self._metadata(table, "headers")]
        return pa.Table.from_arrays(columns, schema=MESSAGES)

    def _metadata(self, table: pa.Table, key: str) -> Any:
        wanted = MESSAGES.field(key).type
        if key not in self.metadata:
            return pa.nulls(table.num_rows, wanted)
        values = table.column(self.metadata[key]).combine_chunks()
        return _millis(values) if key == "timestamp" else _headers(values)


def _millis(instants: pa.Array) -> pa.Array:
    """ConnectorError for 1970 and before: 0 means 'now' to librdkafka, and Kafka has no negative times."""
    micros = instants.cast(pa.timestamp("us", tz="UTC")).cast(pa.timestamp("ms", tz="UTC"), safe=False)
    found = micros.cast(pa.int64())
    least = pc.min(found).as_py()
    if least is not None and least <= 0:
        raise ConnectorError(
            f"A message of Kafka cannot have the timestamp {least} (milliseconds since 1970)."
        )
    return found


def _headers(entries: pa.Array) -> pa.Array:
    """Maps come as Spark's, or as lists of entries from operators of ours. As in Flink, entries that are NULL
    are no headers."""
    rows = entries.to_pylist()
    if not pa.types.is_map(entries.type):
        rows = [row and [(e["key"], e["value"]) for e in row] for row in rows]
    return pa.array([row and [e for e in row if None not in e] for row in rows], HEADERS)


def _bytes(texts: pa.Array) -> pa.Array:
    return texts.cast(pa.binary())


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaStager:
    """``keys``: the columns of which the last change of a row counts, () where all rows are sent."""

    storage: Storage
    directory: str
    encoder: MessageEncoder
    keys: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row with the column ``token``: {"files": [[name, what, messages], ...]}."""
        context = TaskContext.get()
        attempt = f"{context.partitionId() if context else 0}-{uuid.uuid4().hex[:12]}"
        tables = (self.encoder.named(batch) for batch in batches)
        try:
            parts = self._last(tables) if self.keys else {UPSERTS: map(self.encoder.encode, tables)}
            files = [
                [f"{what}-{attempt}", what, count]
                for what, messages in parts.items()
                if (count := self._write(f"{what}-{attempt}", messages))
            ]
        except ConnectorError as e:
            raise WorkerError(e) from None
        except (OSError, pa.ArrowException) as e:
            raise WorkerError(ConnectorError(f"Cannot stage rows: {e}")) from None
        yield pa.record_batch([pa.array([json.dumps({"files": files})])], names=["token"])

    def _last(self, tables: Iterable[pa.Table]) -> dict[str, Iterable[pa.Table]]:
        collected = list(tables)
        if not collected:
            return {}
        table = pa.concat_tables(collected).combine_chunks()
        stay, go = last_changes(table, self.keys)
        plain = table.drop_columns([KIND_COLUMN]) if KIND_COLUMN in table.column_names else table
        return {
            UPSERTS: [self.encoder.encode(picked(plain, stay))],
            DELETES: [self.encoder.encode(picked(plain, go), deletes=True)],
        }

    def _write(self, name: str, messages: Iterable[pa.Table]) -> int:
        """How many there were; on the disk when this returns, under a name of this attempt's own: the tokens
        say who counts."""
        count = 0

        def written(stream: pa.NativeFile) -> None:
            nonlocal count
            with pa.ipc.new_stream(stream, MESSAGES) as writer:
                for table in messages:
                    writer.write_table(table)
                    count += table.num_rows

        self.storage.publish(f"{self.directory}/{name}", written)
        return count
