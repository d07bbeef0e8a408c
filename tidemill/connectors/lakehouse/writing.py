"""Writes one task's rows of one epoch into data files of a table, in Spark Python workers.

The files lie where the table's files lie, under names of the attempt's own. Until a commit names them nobody
reads them: what a task leaves behind that failed, or that outlives its epoch, is removed as the table format
removes such files (VACUUM). A task that fails in an orderly way removes its own.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from pyspark import TaskContext

from tidemill.connectors.filesystem.partitions import partition_path
from tidemill.connectors.filesystem.writing import unwritten
from tidemill.connectors.formats.columnar.tables import to_file_table
from tidemill.connectors.lakehouse.statistics import column_statistics
from tidemill.connectors.partition_rows import split_by_partition
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import ConnectorError
from tidemill.files.storage import Storage
from tidemill.types.logical import Field

_PARTS = ("data", "changes")
NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeWriter:
    """``fields``: the frame's columns by place; ``partitions``: those that say the directory; ``schema``: of
    the files; ``prefix``: of their names; ``directory``: of them below the table's root, '' for that itself;
    ``roll``: bytes per file. ``feed`` writes the rows that have a text in its last column, which the frame
    has then, too."""

    table: str
    storage: Storage
    fields: tuple[Field, ...]
    partitions: tuple[Field, ...]
    schema: pa.Schema
    prefix: str
    roll: int
    compression: str
    directory: str = ""
    feed: LakeWriter | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row with the column ``token``: {"rows": ..., "data": [...], "changes": [...]}, the latter as of
        ``finish``."""
        context = TaskContext.get()
        number = context.partitionId() if context else 0
        data = WritingTask(writer=self, number=number)
        feed = None if self.feed is None else WritingTask(writer=self.feed, number=number)
        names = [f.name for f in (self.feed or self).fields]
        tasks = [task for task in (data, feed) if task is not None]
        try:
            for batch in batches:
                rows = pa.Table.from_batches([batch]).select(range(len(names))).rename_columns(names)
                if feed is not None:
                    stay = pc.equal(rows.column(names[-1]), "")
                    feed.write(rows.filter(pc.invert(stay)))
                    rows = rows.filter(stay).drop_columns([names[-1]])
                data.write(rows)
            made = [task.finish() for task in tasks]
        except BaseException as e:
            for task in tasks:
                task.abandon()
            if isinstance(e, OSError | pa.ArrowException):
                raise WorkerError(unwritten(self.storage, e)) from None
            if isinstance(e, ConnectorError):
                said = f"Cannot write to table '{self.table}': {e.message}"
                raise WorkerError(ConnectorError(said, hint=e.hint)) from None
            raise
        token = {"rows": sum(file["rows"] for file in made[0]), **dict(zip(_PARTS, made, strict=False))}
        yield pa.record_batch([pa.array([json.dumps(token)])], names=["token"])

    @property
    def stored(self) -> tuple[Field, ...]:
        fields = {f.name: f for f in self.fields}
        return tuple(fields[name] for name in self.schema.names)


@dataclass(slots=True, kw_only=True)
class _OpenFile:
    path: str
    partition: dict[str, str | None]
    stream: pa.NativeFile
    writer: parquet.ParquetWriter
    footers: list[parquet.FileMetaData]


@dataclass(slots=True, kw_only=True)
class WritingTask:
    """The files that a task is writing, one for each partition."""

    writer: LakeWriter
    number: int
    attempt: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    _open: dict[tuple[str | None, ...], _OpenFile] = field(default_factory=dict)
    _done: list[dict[str, Any]] = field(default_factory=list)
    _count: int = 0

    def write(self, table: pa.Table) -> None:
        if not table.num_rows:
            return
        parts = split_by_partition(table, self.writer.partitions) if self.writer.partitions else [({}, table)]
        for values, part in parts:
            self.append(values, stored_table(part, self.writer.stored, self.writer.schema))

    def append(self, values: dict[str, str | None], part: pa.Table) -> None:
        """Rows of one partition, as files hold them."""
        key = tuple(values.values())
        file = self._open.get(key)
        if file is None:
            file = self._open[key] = self._start(values)
        file.writer.write_table(part)
        if file.stream.tell() >= self.writer.roll:
            self._complete(self._open.pop(key))

    def finish(self) -> list[dict[str, Any]]:
        """The files, durable: their path, size, rows, partition and statistics of columns."""
        for file in self._open.values():
            self._complete(file)
        self._open.clear()
        for directory in {file["path"].rpartition("/")[0] for file in self._done}:
            self.writer.storage.force_directory(directory)
        return self._done

    def abandon(self) -> None:
        storage = self.writer.storage
        for file in self._open.values():
            with suppress(OSError, pa.ArrowException, ValueError):
                file.writer.close()
                file.stream.close()
        with suppress(OSError, pa.ArrowException):
            for path in [f.path for f in self._open.values()] + [f["path"] for f in self._done]:
                storage.remove(path)

    def _start(self, values: dict[str, str | None]) -> _OpenFile:
        spec, footers = self.writer, list[parquet.FileMetaData]()
        name = f"{spec.prefix}-{self.number:05d}-{self._count:04d}-{self.attempt}.parquet"
        self._count += 1
        parts = (spec.directory, partition_path(values, NULL_PARTITION), name)
        path = "/".join(part for part in parts if part)
        spec.storage.make_directory(path.rpartition("/")[0])
        stream = spec.storage.create(path)
        writer = parquet.ParquetWriter(
            stream,
            spec.schema,
            compression=spec.compression,
            use_dictionary=[f.name for f in spec.schema if pa.types.is_string(f.type)],
            metadata_collector=footers,
        )
        return _OpenFile(path=path, partition=values, stream=stream, writer=writer, footers=footers)

    def _complete(self, file: _OpenFile) -> None:
        file.writer.close()
        size = file.stream.tell()
        file.stream.close()
        self.writer.storage.force(file.path)
        (footer,) = file.footers
        self._done.append(
            {
                "path": file.path,
                "size": size,
                "rows": footer.num_rows,
                "partition": file.partition,
                "columns": column_statistics(footer),
            }
        )


def stored_table(table: pa.Table, fields: tuple[Field, ...], schema: pa.Schema) -> pa.Table:
    """Rows as files hold them."""
    return to_file_table(table, fields).cast(schema)


def files_of(tokens: Iterable[str], part: str = "data") -> list[dict[str, Any]]:
    return [file for token in tokens for file in json.loads(token).get(part, ())]
