"""Reads splits of files in Spark Python workers.

One task gets a list of splits and gives Arrow batches: decoded fields, then constants of the file
(partition columns, file metadata), then ``$seq``. Errors leave the worker as WorkerError that names
file and line.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN
from tidemill.connectors.filesystem.changes import check_unchanged
from tidemill.connectors.filesystem.cutting import Cutter
from tidemill.connectors.filesystem.offsets import FileRange, TakenFile
from tidemill.connectors.filesystem.partitions import partition_values
from tidemill.connectors.formats.api import Block, Decoder, Framing, RecordError
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import ConnectorError
from tidemill.files.entries import FileEntry
from tidemill.files.storage import Storage
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_type

_BATCH_ROWS = 1_000_000
_FIRST_BLOCK = 256 << 10
_GROWTH = 8
_LAST_BLOCK = 32 << 20
_SEARCHED_BYTES = 256 << 20
_GZIP_ERRORS = (OSError, EOFError, zlib.error)
UNREADABLE = (OSError, pa.ArrowException, UnicodeDecodeError)
"""Errors that libraries raise if a file is unreadable or not of its format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A piece of ``part``, which is the epoch's range of a file. In text without quotes ``start`` and ``end``
    need not be record borders: a task reads the records that begin at ``start`` or later and before
    ``end``."""

    part: FileRange
    start: int
    end: int

    @property
    def file(self) -> TakenFile:
        return self.part.file


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReader:
    """``fields``: the fields to read, in order. ``partitions``: the fields that come from the path;
    ``file_metadata``: the fields with metadata of the file, such as its size, each with its key. ``stops``:
    the caller may stop early; ``limit``: the most rows of a task that the caller needs."""

    storage: Storage
    framing: Framing
    cutter: Cutter
    decoder: Decoder
    fields: tuple[Field, ...]
    partitions: tuple[Field, ...]
    default_partition: str
    file_metadata: tuple[tuple[Field, str], ...]
    changelog: bool
    sequence: bool
    appends: bool = False
    stops: bool = False
    limit: int | None = None

    def read(self, splits: Sequence[Split], before: Sequence[Split] = ()) -> Iterator[pa.RecordBatch]:
        """The rows of ``splits``. WorkerError if a file is gone, has changed or holds a malformed record.
        ``before``: the splits of other tasks that come before these."""
        batches = self._batches(splits, before)
        return batches if self.limit is None else _first(batches, self.limit)

    def _batches(self, splits: Sequence[Split], before: Sequence[Split] = ()) -> Iterator[pa.RecordBatch]:
        for split in splits:
            tables = self._tables(split)
            while (table := self._next(tables, split)) is not None:
                if isinstance(table, ConnectorError):
                    self._search(before)
                    raise WorkerError(table)
                yield from table.to_batches(max_chunksize=_BATCH_ROWS)

    def _next(self, tables: Iterator[pa.Table], split: Split) -> pa.Table | ConnectorError | None:
        try:
            return next(tables, None)
        except UNREADABLE as e:
            return ConnectorError(f"Cannot read file {self.storage.full_path(split.file.path)}: {e}")
        except ConnectorError as e:
            return e

    def _tables(self, split: Split) -> Iterator[pa.Table]:
        if split.file.compressed and self.stops:
            yield from self._unpacked(self._exact(split))
            return
        for block in self._blocks(self._exact(split)):
            with self.storage.open(split.file.path) as file:
                table = self._table(file, self._bytes(file, block), block)
            yield table

    def _table(self, file: pa.NativeFile, data: pa.Buffer, split: Split, lines: int = 0) -> pa.Table:
        """Decodes ``data``. ``lines``: the number of lines of the file before it, for errors."""
        try:
            return self._complete(self._decode(file, data, split), split)
        except RecordError as e:
            raise self._record_error(e, split, lines) from None

    def _blocks(self, split: Split) -> Iterator[Split]:
        """Pieces of growing size, if the caller may stop early. Cost: all pieces but the last are searched
        for quotes once more."""
        length = _FIRST_BLOCK
        if self.stops and self.framing is not Framing.ROW_GROUPS and not split.file.compressed:
            while split.end - split.start > 2 * length:
                with self.storage.open(split.file.path) as file:
                    end, _ = self.cutter.cut(file, split.start, split.end, rows=None, length=length)
                yield replace(split, end=end)
                split, length = replace(split, start=end), min(length * _GROWTH, _LAST_BLOCK)
        yield split

    def _search(self, splits: Sequence[Split]) -> None:
        """Raises the first error of ``splits``, which lie before the failed split: tasks run in parallel, so
        a later task may fail first. Decodes the splits again, up to ``_SEARCHED_BYTES``."""
        searched_bytes = 0
        for split in splits:
            searched_bytes += split.end - split.start
            if searched_bytes > _SEARCHED_BYTES:
                return
            for _ in self._batches([split]):
                continue

    def _exact(self, split: Split) -> Split:
        """``split`` moved to record borders, after a check that the file has not changed."""
        check_unchanged(self.storage, split.file, self.storage.stat(split.file.path), appends=self.appends)
        part = split.part
        if self.framing is not Framing.LINES or (split.start, split.end) == (part.start, part.end):
            return split
        with self.storage.open(split.file.path) as file:
            start, end = (self._border(file, part, at) for at in (split.start, split.end))
        return replace(split, start=start, end=end)

    def _border(self, file: pa.NativeFile, part: FileRange, offset: int) -> int:
        if offset <= part.start or offset >= part.end:
            return offset
        return self.cutter.cut(file, part.start, part.end, rows=None, length=offset - part.start)[0]

    def _unpacked(self, split: Split) -> Iterator[pa.Table]:
        """Decodes a compressed file in pieces of growing size, since the caller may stop early."""
        text, lines, length = b"", 0, _FIRST_BLOCK
        with self.storage.open(split.file.path) as file, gzip.GzipFile(fileobj=file) as packed:
            while chunk := _read(packed, self.storage.full_path(split.file.path), length):
                text, length = text + chunk, min(length * _GROWTH, _LAST_BLOCK)
                half = len(text) // 2
                end, _ = self.cutter.cut(pa.BufferReader(text), 0, len(text), rows=None, length=half)
                if end < len(text):
                    piece, text = text[:end], text[end:]
                    table = self._table(file, pa.py_buffer(piece), split, lines)
                    lines += piece.count(b"\n")
                    split = replace(split, start=split.start + table.num_rows)
                    yield table
            yield self._table(file, pa.py_buffer(text), split, lines)

    def _decode(self, file: pa.NativeFile, data: pa.Buffer, split: Split) -> pa.Table:
        source = file if self.framing is Framing.ROW_GROUPS else None
        block = Block(data=data, source=source, start=split.start, end=split.end)
        try:
            return self.decoder.decode(block)
        except RecordError as e:
            raise self._first_error(e, block) from None

    def _first_error(self, error: RecordError, block: Block) -> RecordError:
        """The first bad record of the block: decoders look at columns and checks one after the other, so
        another record may have failed before an earlier one was looked at. The records before it are
        decoded again until they are all good."""
        while error.line > 0:
            before = replace(block, data=_lines(block.data, error.line))
            try:
                self.decoder.decode(before)
                return error
            except RecordError as earlier:
                error = earlier
        return error

    def _bytes(self, file: pa.NativeFile, split: Split) -> pa.Buffer:
        if self.framing is Framing.ROW_GROUPS:
            return pa.py_buffer(b"")
        if split.file.compressed:
            return pa.py_buffer(_read(gzip.GzipFile(fileobj=file), self.storage.full_path(split.file.path)))
        file.seek(split.start)
        return file.read_buffer(split.end - split.start)

    def _complete(self, table: pa.Table, split: Split) -> pa.Table:
        rows = table.num_rows
        constants = self._constants(split.file)
        columns = [
            pa.repeat(constants[f.name], rows) if f.name in constants else table.column(f.name)
            for f in self.fields
        ]
        names = [f.name for f in self.fields]
        if self.changelog:
            columns.append(table.column(KIND_COLUMN))
            names.append(KIND_COLUMN)
        if self.sequence:
            first = split.part.base + split.start - split.file.begin
            columns.append(pa.array(first + np.arange(rows, dtype=np.int64)))
            names.append(SEQUENCE_COLUMN)
        if not columns:
            raise ConnectorError("A source must read at least one column.")
        return pa.Table.from_arrays(columns, names=names)

    def _constants(self, file: TakenFile) -> dict[str, pa.Scalar]:
        values = partition_values(file.path, self.partitions, self.default_partition)
        if self.file_metadata:
            entry = self.storage.stat(file.path) or FileEntry(file.path, file.size, 0)
            for field, key in self.file_metadata:
                values[field.name] = self._metadata(key, field, entry)
        return values

    def _metadata(self, key: str, field: Field, entry: FileEntry) -> pa.Scalar:
        path = self.storage.full_path(entry.path)
        values = {"file.path": path, "file.name": path.rpartition("/")[2], "file.size": entry.size}
        if key in values:
            return pa.scalar(values[key], arrow_type(field.type))
        return pa.scalar(entry.modified // 1_000_000 * 1000, pa.int64()).cast(arrow_type(field.type))

    def _record_error(self, error: RecordError, split: Split, before: int) -> ConnectorError:
        path = self.storage.full_path(split.file.path)
        if not split.file.compressed and split.start:
            with self.storage.open(split.file.path) as file:
                before = file.read(split.start).count(b"\n")
        return ConnectorError(
            f"{error.reason} ({path}:{before + error.line + 1})"
            if error.line >= 0
            else f"{error.reason} ({path})",
            hint="\n".join(filter(None, (error.record and f"The record: {error.record}", error.hint))),
        )


def _first(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.slice(0, rows)
        rows -= batch.num_rows
        if rows <= 0:
            return


def _lines(data: pa.Buffer, count: int) -> pa.Buffer:
    """The first ``count`` lines."""
    ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == 10)
    return data.slice(0, int(ends[count - 1]) + 1)


def _read(packed: gzip.GzipFile, path: str, length: int = -1) -> bytes:
    """The next ``length`` bytes of the text; all remaining bytes for -1."""
    try:
        return packed.read(length)
    except _GZIP_ERRORS as e:
        raise ConnectorError(f"Cannot read file {path}: damaged gzip data: {e}") from None
