"""Writes one task's rows of one epoch into staged files, in Spark Python workers.

Each attempt of a task writes into a folder of its own, and forces the files to disk before its token names
them. Only the tokens in the commit record decide which attempt counts: nobody reads the files of a task that
outlives its epoch. A task that fails removes its folder. The final names of files depend only on job, epoch,
task and file number.
"""

from __future__ import annotations

import errno
import json
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark import TaskContext

from tidemill.connectors.filesystem.partitions import partition_path
from tidemill.connectors.formats.api import Encoder, TableWriter
from tidemill.connectors.partition_rows import split_by_partition
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import ConnectorError
from tidemill.files.storage import Storage
from tidemill.types.logical import Field

_ROOM, _RIGHT = (
    "Make room there, or give the table another 'path'.",
    "Whoever runs the job must be allowed to write there; or give the table another 'path'.",
)
_HINTS = {
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EACCES: _RIGHT,
    errno.EPERM: _RIGHT,
    errno.EROFS: _RIGHT,
}


def unwritten(storage: Storage, error: OSError | pa.ArrowException) -> ConnectorError:
    """The error for a failed write of a table's files, with a hint for a full disk or missing rights."""
    hint = _HINTS.get(getattr(error, "errno", None) or 0, "")
    return ConnectorError(f"Cannot write to {storage.location}: {error}", hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedWriter:
    """``fields``: the frame's columns by position; ``partitions``: the fields that become directories.
    ``directory``: the epoch's staging folder, relative to the table's root; ``roll``: bytes per file;
    ``table``: its name, for errors; ``wanted``: the job's marker file, whose absence cancels the task; '' for
    no marker."""

    table: str
    storage: Storage
    encoder: Encoder
    fields: tuple[Field, ...]
    partitions: tuple[Field, ...]
    default_partition: str
    directory: str
    prefix: str
    extension: str
    roll: int
    wanted: str = ""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Writes ``batches``; yields one row with the column ``token``."""
        context = TaskContext.get()
        task = _Task(writer=self, partition=context.partitionId() if context else 0)
        try:
            token = self._written(batches, task)
        except BaseException:
            task.abandon()
            raise
        yield pa.record_batch([pa.array([token])], names=["token"])

    def _written(self, batches: Iterable[pa.RecordBatch], task: _Task) -> str:
        """Writes ``batches`` and returns the token."""
        try:
            for batch in batches:
                task.write(self._named(batch))
            files = task.finish()
        except (OSError, pa.ArrowException) as e:
            raise WorkerError(unwritten(self.storage, e)) from None
        except ConnectorError as e:
            reason = f"Cannot write to table '{self.table}': {e.message}"
            raise WorkerError(ConnectorError(reason, hint=e.hint)) from None
        if not self.is_wanted:
            raise WorkerError(ConnectorError(f"The task that wrote to table '{self.table}' was canceled"))
        return json.dumps({"attempt": task.attempt, "files": files})

    @property
    def is_wanted(self) -> bool:
        """Whether the job still needs the task. Ask after writing: the driver removes files after the
        marker."""
        return not self.wanted or self.storage.stat(self.wanted) is not None

    def _named(self, batch: pa.RecordBatch) -> pa.Table:
        names = [f.name for f in self.fields]
        table = pa.Table.from_batches([batch])
        return table.rename_columns(names + table.column_names[len(names) :])


@dataclass(slots=True, kw_only=True)
class _OpenFile:
    """A file being written; ``name`` is the one to publish it under."""

    staged: str
    name: str
    stream: pa.NativeFile
    writer: TableWriter
    rows: int = 0


@dataclass(slots=True, kw_only=True)
class _Task:
    writer: StagedWriter
    partition: int
    attempt: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    _open: dict[str, _OpenFile] = field(default_factory=dict)
    _done: list[tuple[str, int]] = field(default_factory=list)
    _count: int = 0

    def write(self, table: pa.Table) -> None:
        for directory, part in self._parts(table):
            self._append(directory, part)

    def finish(self) -> list[tuple[str, int]]:
        """[final path, rows] of each file, in the order of writing."""
        for directory in sorted(self._open):
            self._complete(self._open[directory])
        self._open.clear()
        for directory in {f"{self._directory}/{name}".rpartition("/")[0] for name, _ in self._done}:
            self.writer.storage.force_directory(directory)
        return self._done

    def abandon(self) -> None:
        """Removes the task's files, and empty folders of other tasks if the job is over."""
        storage = self.writer.storage
        with suppress(OSError, pa.ArrowException):
            for file in self._open.values():
                with suppress(OSError, pa.ArrowException, ValueError):
                    file.stream.close()
            storage.remove_directory(self._directory)
            if not self.writer.is_wanted:
                storage.prune(self.writer.directory)

    @property
    def _directory(self) -> str:
        return f"{self.writer.directory}/{self.attempt}"

    def _parts(self, table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        spec = self.writer
        if not spec.partitions:
            if table.num_rows:
                yield "", table
            return
        names = [f.name for f in spec.partitions]
        for values, part in split_by_partition(table, spec.partitions):
            yield partition_path(values, spec.default_partition), part.drop_columns(names)

    def _append(self, directory: str, part: pa.Table) -> None:
        file = self._open.get(directory)
        if file is None:
            file = self._open[directory] = self._start(directory)
        file.writer.write(part)
        file.rows += part.num_rows
        if file.stream.tell() >= self.writer.roll:
            self._complete(self._open.pop(directory))

    def _start(self, directory: str) -> _OpenFile:
        spec = self.writer
        name = f"{spec.prefix}-{self.partition}-{self._count}.{spec.extension}"
        self._count += 1
        final = f"{directory}/{name}" if directory else name
        staged = f"{self._directory}/{final}"
        spec.storage.make_directory(staged.rpartition("/")[0])
        stream = spec.storage.create(staged)
        return _OpenFile(staged=staged, name=final, stream=stream, writer=spec.encoder.open(stream))

    def _complete(self, file: _OpenFile) -> None:
        file.writer.close()
        file.stream.close()
        self.writer.storage.force(file.staged)
        self._done.append((file.name, file.rows))
