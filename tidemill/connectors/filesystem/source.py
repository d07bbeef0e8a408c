"""Reads files as a table: cuts them into ranges on the driver, decodes the ranges in Python workers.

Spark's own scans are not used: for text they are most of an epoch's time. A file is taken once,
in the order of paths, and must appear at once and complete (rename it into place). In a watched
directory new files are taken after all earlier ones, whatever their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN
from tidemill.connectors.api import BatchMap, Offset, ReadLimit
from tidemill.connectors.filesystem.cutting import Cutter
from tidemill.connectors.filesystem.listing import list_files
from tidemill.connectors.filesystem.offsets import FilePosition, FileRange, TakenFile, from_json, ranges
from tidemill.connectors.filesystem.reading import FileReader, Split
from tidemill.connectors.filesystem.row_groups import RowGroups
from tidemill.errors import ConnectorError
from tidemill.files.storage import FileEntry, Storage
from tidemill.types.physical import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SPLIT_BYTES = 32 << 20
_TASK_BYTES = 256 << 10
_TASK_ROWS = 50_000


@dataclass(frozen=True, kw_only=True)
class FileSource:
    """``pattern``: source.path.regex-pattern, matched against whole paths."""

    storage: Storage
    reader: FileReader
    cutter: Cutter
    row_groups: RowGroups | None
    watched: bool
    pattern: str | None
    parallelism: int

    @property
    def is_bounded(self) -> bool:
        return not self.watched

    def next_offset(self, start: Offset | None, limit: ReadLimit) -> Offset:
        """ConnectorError when the path is not there or a file that was begun has changed."""
        position, rows, length = from_json(start), limit.rows, limit.bytes
        untaken = self._untaken(position)
        while (rows is None or rows > 0) and (length is None or length > 0):
            if position.current is None:
                taken = next(untaken, None)
                if taken is None:
                    break
                position = position.taking(taken)
            else:
                position, used_rows, used_bytes = self._advance(position, rows, length)
                rows = None if rows is None else rows - used_rows
                length = None if length is None else length - used_bytes
        return position.to_json()

    def is_empty(self, start: Offset | None, end: Offset) -> bool:
        return not ranges(from_json(start), from_json(end))

    def is_finished(self, offset: Offset | None) -> bool:
        position = from_json(offset)
        if self.watched or position.current is not None:
            return False
        return not any(f.length for f in self._untaken(position))

    def extent(self, start: Offset | None, end: Offset) -> str:
        parts = ranges(from_json(start), from_json(end))
        if not parts:
            return ""
        amount = sum(part.end - part.start for part in parts)
        unit = "rows" if self.row_groups else "bytes"
        return f"{len(parts):,} file{'s' if len(parts) > 1 else ''}, {amount:,} {unit}"

    def read(self, spark: SparkSession, start: Offset | None, end: Offset) -> DataFrame:
        return self.read_through(spark, start, end, None, self._schema())

    def read_through(
        self, spark: SparkSession, start: Offset | None, end: Offset, through: BatchMap | None, schema: str
    ) -> DataFrame:
        """``read`` with ``through`` applied to each task's batches in the worker that decodes them."""
        splits = [s for r in ranges(from_json(start), from_json(end)) for s in self._splits(r)]
        tasks = _pack(splits, self.parallelism, _TASK_ROWS if self.row_groups else _TASK_BYTES)
        return spark.range(0, len(tasks), 1, max(len(tasks), 1)).mapInArrow(
            _task_reader(self.reader, tasks, through), schema
        )

    def read_all(self, spark: SparkSession) -> DataFrame:
        return self.read(spark, None, self.next_offset(None, ReadLimit()))

    def _schema(self) -> str:
        parts = [spark_schema(self.reader.fields)] if self.reader.fields else []
        parts += [f"`{KIND_COLUMN}` TINYINT"] if self.reader.changelog else []
        parts += [f"`{SEQUENCE_COLUMN}` BIGINT"] if self.reader.sequence else []
        return ", ".join(parts)

    def _untaken(self, position: FilePosition) -> Iterator[TakenFile]:
        """The files that are not taken yet, in order; lists the directory when the first is asked for."""
        known = {f.path for f in position.files}
        for entry in self._listing():
            if entry.path not in known:
                yield self._taken(entry)

    def _listing(self) -> list[FileEntry]:
        files = list_files(self.storage)
        if self.pattern is None:
            return files
        matches = re.compile(self.pattern).fullmatch
        return [f for f in files if matches(self.storage.shown(f.path))]

    def _taken(self, entry: FileEntry) -> TakenFile:
        if self.row_groups is None:
            compressed = self.storage.shown(entry.path).endswith(".gz")
            return TakenFile(entry.path, entry.size, entry.size, compressed)
        return TakenFile(entry.path, entry.size, self.row_groups.rows(self.storage, entry.path))

    def _advance(
        self, position: FilePosition, rows: int | None, length: int | None
    ) -> tuple[FilePosition, int, int]:
        file = position.files[-1]
        if file.compressed:
            return position.moved(file.length), file.length, file.length
        if self.row_groups is not None:
            end = self.row_groups.cut(file, position.position, rows, length)
            used = end - position.position
            return position.moved(end), used, used * file.size // max(file.length, 1) + 1
        if rows is None and length is None:
            return position.moved(file.length), 0, 0
        self._check_unchanged(file)
        with self.storage.open(file.path) as opened:
            end, count = self.cutter.cut(opened, position.position, file.length, rows=rows, length=length)
        return position.moved(end), count, end - position.position

    def _check_unchanged(self, file: TakenFile) -> None:
        now = self.storage.stat(file.path)
        if now is None or now.size != file.size:
            raise ConnectorError(
                f"File {self.storage.shown(file.path)} has changed or gone while it was being read.",
                hint="Files must appear in a source's path at once and complete, for example by a rename.",
            )

    def _splits(self, part: FileRange) -> Iterator[Split]:
        whole = Split(file=part.file, start=part.start, end=part.end, sequence=part.base + part.start)
        if part.file.compressed or self.storage.stat(part.file.path) is None:
            yield whole  # where the file is gone, the task says so
            return
        if self.row_groups is not None:
            step = max(_TASK_ROWS, -(-(part.end - part.start) // self.parallelism))
            at = part.start
            for end in self.row_groups.ends(self.storage, part.file.path, at, part.end, step):
                yield replace(whole, start=at, end=end, sequence=part.base + at)
                at = end
            return
        step = min(_SPLIT_BYTES, max(_TASK_BYTES, -(-(part.end - part.start) // self.parallelism)))
        if part.end - part.start <= step:
            yield whole
            return
        with self.storage.open(part.file.path) as opened:
            at = part.start
            while at < part.end:
                end, _ = self.cutter.cut(opened, at, part.end, rows=None, length=step)
                yield replace(whole, start=at, end=end, sequence=part.base + at)
                at = end


def _pack(splits: list[Split], parallelism: int, least: int) -> list[list[Split]]:
    """Consecutive splits by task: small files share one, so that every task is worth its start."""
    total = sum(s.end - s.start for s in splits)
    goal = max(least, min(_SPLIT_BYTES, -(-total // max(parallelism, 1))))
    tasks: list[list[Split]] = []
    filled = goal
    for split in splits:
        size = split.end - split.start
        if filled + size // 2 >= goal:
            tasks.append([])
            filled = 0
        tasks[-1].append(split)
        filled += size
    return tasks


def _task_reader(reader: FileReader, tasks: list[list[Split]], through: BatchMap | None) -> BatchMap:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch.column(0).to_pylist():
                before = [split for earlier in tasks[:task] for split in earlier]
                read = reader.read(tasks[task], before)
                yield from read if through is None else through(read)

    return run
