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
from tidemill.files.storage import FileEntry, Storage
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_type

_BATCH_ROWS = 1_000_000
_FIRST_BLOCK = 256 << 10
_GROWTH = 8
_LAST_BLOCK = 32 << 20
_SEARCHED_BYTES = 256 << 20
_GZIP_ERRORS = (OSError, EOFError, zlib.error)
UNREADABLE = (OSError, pa.ArrowException, UnicodeDecodeError)
"""What libraries raise for a file that is not of its format, or cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A piece of ``part``, which is the epoch's range of a file. In text without quotes ``start`` and ``end``
    are about where to cut: a task begins with the first record at or after the one and ends with the last
    that starts before the other."""

    part: FileRange
    start: int
    end: int

    @property
    def file(self) -> TakenFile:
        return self.part.file


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReader:
    """``fields``: what to give, in order. ``partitions``: those that come from the path;
    ``file_metadata``: metadata key per field that comes from the file's own data. ``stops``: somebody
    may want fewer rows than there are; ``limit``: how many rows of a task are enough."""

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
        """WorkerError where a file is gone, has changed or holds a record that does not fit; ``before`` are
        the splits of other tasks that come before these."""
        batches = self._batches(splits, before)
        return batches if self.limit is None else _first(batches, self.limit)

    def _batches(self, splits: Sequence[Split], before: Sequence[Split] = ()) -> Iterator[pa.RecordBatch]:
        for split in splits:
            tables = self._tables(split)
            while (found := self._next(tables, split)) is not None:
                if isinstance(found, ConnectorError):
                    self._search(before)
                    raise WorkerError(found)
                yield from found.to_batches(max_chunksize=_BATCH_ROWS)

    def _next(self, tables: Iterator[pa.Table], split: Split) -> pa.Table | ConnectorError | None:
        try:
            return next(tables, None)
        except UNREADABLE as e:
            return ConnectorError(f"Cannot read file {self.storage.shown(split.file.path)}: {e}")
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
        """``lines``: how many lines of the file's text are known to come before."""
        try:
            return self._complete(self._decode(file, data, split), split)
        except RecordError as e:
            raise self._record_error(e, split, lines) from None

    def _blocks(self, split: Split) -> Iterator[Split]:
        """Pieces that grow, if there may be somebody who soon has enough. Cost: all but the last are looked
        through for quotes once more."""
        step = _FIRST_BLOCK
        if self.stops and self.framing is not Framing.ROW_GROUPS and not split.file.compressed:
            while split.end - split.start > 2 * step:
                with self.storage.open(split.file.path) as file:
                    end, _ = self.cutter.cut(file, split.start, split.end, rows=None, length=step)
                yield replace(split, end=end)
                split, step = replace(split, start=end), min(step * _GROWTH, _LAST_BLOCK)
        yield split

    def _search(self, splits: Sequence[Split]) -> None:
        """Raises the first error in the splits before the one that failed: tasks run beside each other, so a
        later one may fail first. Decodes them again, up to about an epoch's worth."""
        searched = 0
        for split in splits:
            searched += split.end - split.start
            if searched > _SEARCHED_BYTES:
                return
            for _ in self._batches([split]):
                continue

    def _exact(self, split: Split) -> Split:
        """The split between borders of records."""
        check_unchanged(self.storage, split.file, self.storage.stat(split.file.path), appends=self.appends)
        part = split.part
        if self.framing is not Framing.LINES or (split.start, split.end) == (part.start, part.end):
            return split
        with self.storage.open(split.file.path) as file:
            start, end = (self._border(file, part, at) for at in (split.start, split.end))
        return replace(split, start=start, end=end)

    def _border(self, file: pa.NativeFile, part: FileRange, at: int) -> int:
        if at <= part.start or at >= part.end:
            return at
        return self.cutter.cut(file, part.start, part.end, rows=None, length=at - part.start)[0]

    def _unpacked(self, split: Split) -> Iterator[pa.Table]:
        """A compressed file in pieces that grow, as somebody may soon have enough."""
        text, lines, step = b"", 0, _FIRST_BLOCK
        with self.storage.open(split.file.path) as file, gzip.GzipFile(fileobj=file) as packed:
            while more := _read(packed, self.storage.shown(split.file.path), step):
                text, step = text + more, min(step * _GROWTH, _LAST_BLOCK)
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
            return pa.py_buffer(_read(gzip.GzipFile(fileobj=file), self.storage.shown(split.file.path)))
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
            raise ConnectorError("A source must be asked for at least one column.")
        return pa.Table.from_arrays(columns, names=names)

    def _constants(self, file: TakenFile) -> dict[str, pa.Scalar]:
        values = partition_values(file.path, self.partitions, self.default_partition)
        if self.file_metadata:
            entry = self.storage.stat(file.path) or FileEntry(file.path, file.size, 0)
            for field, key in self.file_metadata:
                values[field.name] = self._metadata(key, field, entry)
        return values

    def _metadata(self, key: str, field: Field, entry: FileEntry) -> pa.Scalar:
        path = self.storage.shown(entry.path)
        plain = {"file.path": path, "file.name": path.rpartition("/")[2], "file.size": entry.size}
        if key in plain:
            return pa.scalar(plain[key], arrow_type(field.type))
        return pa.scalar(entry.modified // 1_000_000 * 1000, pa.int64()).cast(arrow_type(field.type))

    def _record_error(self, error: RecordError, split: Split, before: int) -> ConnectorError:
        path = self.storage.shown(split.file.path)
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
    """The next ``length`` bytes of the text; all that is left for -1."""
    try:
        return packed.read(length)
    except _GZIP_ERRORS as e:
        raise ConnectorError(f"Cannot read file {path}: damaged gzip data: {e}") from None
