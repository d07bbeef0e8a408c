"""Reads files as a table: the driver cuts them into ranges, Python workers decode the ranges.

Spark's own scans are not used: for text they are most of an epoch's time. The source takes each file once, in
the order of paths. A file must appear at once and complete (rename it into place). In a watched directory the
source takes new files after all earlier files, whatever their names, and after them the lines that were
appended to text files. Any other change of a file is an error, unless the job had stopped in the middle of
the file and the bytes up to there are unchanged (see ``repair``).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN
from tidemill.connectors.api import ArrowSource, NamedTable, Offset, ReadLimit, ReadTasks
from tidemill.connectors.api.source import SourceHistory
from tidemill.connectors.filesystem.changes import (
    check_kept,
    check_replaced,
    check_unchanged,
    continuation,
    ends_of,
    is_unchanged,
    opened,
    whole_lines,
)
from tidemill.connectors.filesystem.cutting import Cutter
from tidemill.connectors.filesystem.listing import FirstListing, seen_files
from tidemill.connectors.filesystem.native import NativeScan
from tidemill.connectors.filesystem.offsets import FilePosition, FileRange, TakenFile, from_json, ranges
from tidemill.connectors.filesystem.partitions import PartitionPruning
from tidemill.connectors.filesystem.reading import FileReader, Split
from tidemill.connectors.filesystem.record_search import RecordSearch, Stretch
from tidemill.connectors.filesystem.repair import note_stop, repaired
from tidemill.connectors.filesystem.replacing import Changes
from tidemill.connectors.filesystem.row_groups import RowGroups
from tidemill.connectors.filesystem.taken_log import TakenFiles, TakenLog
from tidemill.connectors.filesystem.tasks import SEARCHED_SPLITS, ReadTask, TaskReader, tasks_of
from tidemill.connectors.filesystem.watching import DirectoryWatch
from tidemill.connectors.formats.api import Framing
from tidemill.connectors.task_frames import read_frame
from tidemill.files.entries import FileEntry, FileList
from tidemill.files.file_snapshot import seen_once
from tidemill.files.storage import AT_ONCE, Storage
from tidemill.types.physical import quote, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SPLIT_BYTES = 32 << 20
_TASK_BYTES = 256 << 10
_TASK_ROWS = 50_000


@dataclass(frozen=True, kw_only=True)
class FileSource(ArrowSource):
    """``pattern``: source.path.regex-pattern, matched against whole paths. ``interval``: seconds between two
    listings of a watched directory, None if it is not watched. ``native``: the scan by which Spark reads the
    files of a batch query, None if our decoders read them; ``chosen``: the only paths to read, None for all;
    ``named``: the listings of all ``named_table`` calls."""

    storage: Storage
    reader: FileReader
    cutter: Cutter
    row_groups: RowGroups | None
    interval: float | None
    pattern: str | None
    parallelism: int
    changes: Changes
    pruning: PartitionPruning | None = None
    native: NativeScan | None = None
    chosen: frozenset[str] | None = None
    search: RecordSearch | None = None
    watch: DirectoryWatch | None = None
    log: TakenLog = field(default_factory=TakenLog)
    at_first: FirstListing = field(default_factory=FirstListing)
    named: list[FileList] = field(default_factory=list)
    clock: Callable[[], float] = time.time

    @property
    def is_bounded(self) -> bool:
        return self.interval is None

    @property
    def gives_portions(self) -> bool:
        """False for Spark's reader, which stops early by itself, and for compressed files, which have no
        parts."""
        return self.native is None and not any(self._is_compressed(e.path) for e in self.entries())

    def search_with(self, spark: SparkSession) -> None:
        if self.search is not None:
            self.search.spark = spark

    def record_in(self, storage: Storage) -> None:
        self.log.storage = storage

    def stopped(self, offset: Offset | None) -> None:
        if self.row_groups is None and self.log.storage is not None:
            note_stop(self.storage, self.log.storage, self.position(offset))

    def next_offset(self, start: Offset | None, limit: ReadLimit) -> Offset:
        """ConnectorError if the path does not exist, or the read part of a file has changed."""
        position, rows, length = self.log.sealing(self.position(start)), limit.rows, limit.bytes
        if self.row_groups is None:
            position = repaired(self.storage, self.log.storage, position)
        untaken = self._untaken(position)
        while (rows is None or rows > 0) and (length is None or length > 0):
            if position.current is None:
                taken = next(untaken, None)
                if taken is None:
                    break
                position = position.taking(taken)
            else:
                position, used_rows, used_bytes = self.advance(position, rows, length)
                rows = None if rows is None else rows - used_rows
                length = None if length is None else length - used_bytes
        return position.to_json()

    def ahead(self, offset: Offset, limit: ReadLimit) -> Callable[[], None] | None:
        position = self.position(offset)
        file, length = position.current, limit.bytes
        if self.search is None or file is None or file.compressed or limit.rows is not None or not length:
            return None
        end = min(position.position + length, file.length)
        return self.search.ahead(_stretch(file, position.position, end))

    def is_empty(self, start: Offset | None, end: Offset) -> bool:
        return not ranges(self.position(start), self.position(end))

    def is_finished(self, offset: Offset | None) -> bool:
        position = self.position(offset)
        if not self.is_bounded or position.current is not None:
            return False
        return not any(f.length for f in self._untaken(position))

    def read(self, spark: SparkSession, start: Offset | None, end: Offset) -> DataFrame:
        return read_frame(spark, self.read_tasks(spark, start, end), self._schema())

    def read_tasks(self, spark: SparkSession, start: Offset | None, end: Offset) -> ReadTasks:
        self.search_with(spark)
        tasks, read = self.tasks(start, end), TaskReader(reader=self.reader)
        size = sum(split.end - split.start for task in tasks for split in task.splits)
        return ReadTasks.of_rows(tasks, read, size) if self.row_groups else ReadTasks(tasks, read, size)

    def tasks(self, start: Offset | None, end: Offset) -> list[ReadTask]:
        """The tasks of a read, in the order of their rows."""
        parts = ranges(self.position(start), self.position(end))
        if self._is_soon_full(parts):
            whole = [Split(part=part, start=part.start, end=part.end) for part in parts]
            return [ReadTask(splits=whole, before=[])]
        if self.search is not None:
            self.search.look_through(_stretch(p.file, p.start, p.end) for p in parts if not p.file.compressed)
        splits = [s for part in parts for s in self._splits(part)]
        least = _TASK_ROWS if self.row_groups else _TASK_BYTES
        return tasks_of(splits, self.parallelism, least=least, most=_SPLIT_BYTES)

    def _is_soon_full(self, parts: list[FileRange]) -> bool:
        """Whether one task should read text files one by one until it has ``limit`` rows."""
        limit = None if self.row_groups else self.reader.limit
        return limit is not None and limit <= _TASK_ROWS and 0 < len(parts) <= SEARCHED_SPLITS

    def read_all(self, spark: SparkSession) -> DataFrame:
        table_or_frame = self.named_table(spark)
        return table_or_frame if isinstance(table_or_frame, DataFrame) else self._frame(spark, table_or_frame)

    def named_table(self, spark: SparkSession) -> NamedTable | DataFrame:
        """The named table if one relation reads all files, otherwise a frame."""
        if self.native is None:
            return self._read_all(spark)
        entries = self.entries()
        self.named.append(entries)
        partition_count = len(entries.folders) if self.pruning is None else self.pruning.seen
        tables, not_native = self.native.tables(spark, entries, partition_count)
        if len(tables) == 1 and not not_native:
            return tables[0]
        frames = [self._frame(spark, table) for table in tables]
        if not_native or not frames:
            paths = frozenset(f.path for f in not_native)
            fallback_source = replace(self, chosen=paths, log=TakenLog(), at_first=FirstListing())
            frames.append(fallback_source._read_all(spark))
        return reduce(DataFrame.unionAll, frames)

    def check_read(self) -> None:
        """Raises if a file was replaced since planning: Spark's readers rely on the footers read at
        planning."""
        for files in self.named:
            seen_once(partial(check_replaced, self.storage, files), (check_replaced, self.storage, files))

    def _frame(self, spark: SparkSession, table: NamedTable) -> DataFrame:
        names = (quote(f.name) for f in self.reader.fields)
        texts = (f"{text} AS {name}" for text, name in zip(table.texts, names, strict=True))
        table.bring()
        return spark.table(quote(table.name)).selectExpr(*texts)

    def how_read(self, native: NativeScan) -> str:
        """How the files are read, for EXPLAIN. ``native``: this source's. Cost: each footer not yet
        cached."""
        entries = self.entries()
        not_native = [(entry, why) for entry in entries if (why := native.why_left(entry))]
        if not not_native:
            return "by Spark's reader"
        file, why = not_native[0]
        count = f"{len(not_native)} of {len(entries)} files" if len(not_native) < len(entries) else "files"
        return f"{count} by our decoders: {why} in {self.storage.full_path(file.path)}"

    def _read_all(self, spark: SparkSession) -> DataFrame:
        return self.read(spark, None, self.next_offset(None, ReadLimit()))

    def remembered(self, end: Offset, *, ended: bool) -> FileHistory:
        position = self.position(end)
        if self.row_groups is None:
            position = repaired(self.storage, self.log.storage, position)
        files = tuple(self.log.taken(position))
        check_kept(self.storage, files, appends=self.reader.appends)
        return FileHistory(source=self, files=files, last=position.position, bounded=ended)

    def position(self, offset: Offset | None) -> FilePosition:
        return from_json(offset, self.storage.full_path(""))

    def _schema(self) -> str:
        parts = [spark_schema(self.reader.fields)] if self.reader.fields else []
        parts += [f"`{KIND_COLUMN}` TINYINT"] if self.reader.changelog else []
        parts += [f"`{SEQUENCE_COLUMN}` BIGINT"] if self.reader.sequence else []
        return ", ".join(parts)

    def _untaken(self, position: FilePosition) -> Iterator[TakenFile]:
        """Files that the job has not taken yet, in order: new files, then files with appended lines. Lists
        the directory when the caller reads the first."""
        known, grown = self.log.files_at(position), []
        new: list[FileEntry] = []
        for entry in self._checked(position, self._entries(known)):
            file = known.get(entry.path)
            if file is None:
                new.append(entry)
                if self.storage.is_local or len(new) == AT_ONCE:
                    yield from self._new(new)
                    new = []
            elif not is_unchanged(file, entry):
                check_unchanged(self.storage, file, entry, appends=self.reader.appends)
                if file is not position.current:
                    grown.append((file, entry))
        yield from self._new(new)
        for file, entry in grown:
            taken = self._taken(entry, continuation(self.storage, file))
            if taken is not None:
                yield taken

    def _checked(self, position: FilePosition, listed: Iterator[FileEntry]) -> Iterator[FileEntry]:
        """``listed``, once it is known that no statement has replaced a file that was taken or listed
        before."""
        before = self.at_first.times
        first = next(listed, None)  # lists the directory
        if position.taken or before:
            known = self.log.files_at(position)
            self.changes.check(lambda path: _time(known.get(path)) or (before or {}).get(path))
        if first is not None:
            yield first
            yield from listed

    def entries(self) -> FileList:
        """The selected files, as of the statement's first listing."""
        files = seen_files(self.storage)
        if self.chosen is None and self.pruning is None and self.pattern is None:
            return files
        return FileList(entry for entry in files if self._matches(entry.path))

    def _new(self, entries: list[FileEntry]) -> Iterator[TakenFile]:
        return filter(None, self.storage.each(lambda entry: self._taken(entry, 0), entries))

    def _entries(self, known: TakenFiles) -> Iterator[FileEntry]:
        """All files of the first listing; of a watched directory, the untaken files and some taken ones."""
        if self.watch is None:
            return iter(self.at_first.of(self.entries()))
        entries = self.watch.entries(lambda path: known.has(path) or not self._matches(path))
        return (entry for entry in entries if self._matches(entry.path))

    def _matches(self, path: str) -> bool:
        if self.chosen is not None and path not in self.chosen:
            return False
        if self.pruning is not None and not self.pruning.admits(path):
            return False
        return self.pattern is None or re.fullmatch(self.pattern, self.storage.full_path(path)) is not None

    def _taken(self, entry: FileEntry, begin: int) -> TakenFile | None:
        """The file now, from ``begin`` on; None if it has no complete line behind ``begin``."""
        path, compressed = entry.path, self._is_compressed(entry.path)
        size = entry.size
        if self.reader.appends and not compressed and self._may_be_unfinished(entry):
            size = whole_lines(self.storage, path, begin, size)
        if size <= begin and entry.size:
            return None
        return TakenFile(
            path=path,
            size=size,
            length=size if self.row_groups is None else self.row_groups.rows(self.storage, path),
            modified=entry.modified,
            ends=ends_of(self.storage, path, size),
            compressed=compressed,
            begin=begin,
        )

    def _is_compressed(self, path: str) -> bool:
        return self.row_groups is None and self.storage.full_path(path).endswith(".gz")

    def _may_be_unfinished(self, entry: FileEntry) -> bool:
        """Whether a writer may be in the middle of the last line, because the file has just changed."""
        age = self.clock() - entry.modified / 1e9
        return self.interval is not None and abs(age) < self.interval

    def advance(
        self, position: FilePosition, rows: int | None, length: int | None
    ) -> tuple[FilePosition, int, int]:
        """The next position in the last file of ``position``, and the rows and bytes between the
        positions."""
        file = position.files[-1]
        if file.compressed:
            return position.moved(file.length), file.length, file.length
        if self.row_groups is not None:
            end = self.row_groups.cut(file, position.position, rows, length)
            used = end - position.position
            return position.moved(end), used, used * file.size // max(file.length, 1) + 1
        if rows is None and length is None:
            return position.moved(file.length), 0, 0
        now = self.storage.stat(file.path)
        check_unchanged(self.storage, file, now, appends=self.reader.appends)
        if rows is None and length is not None:
            end = self._cut_near(file, position.position, min(position.position + length, file.length))
            return position.moved(end), 0, end - position.position
        with opened(self.storage, file.path) as text:
            end, count = self.cutter.cut(text, position.position, file.length, rows=rows, length=length)
        return position.moved(end), count, end - position.position

    def _cut_near(self, file: TakenFile, start: int, goal: int) -> int:
        """The first end of a record at or after ``goal``."""
        if self.search is not None:
            self.search.look_through([_stretch(file, start, goal)])
            start = self.search.last_start(file.path, start, goal)
            if start == goal:
                return goal
        with opened(self.storage, file.path) as text:
            end, _ = self.cutter.cut(text, start, file.length, rows=None, length=goal - start)
        if self.search is not None:
            self.search.cut_at(file.path, goal, end)
        return end

    def _splits(self, part: FileRange) -> Iterator[Split]:
        """Splits of ``part``. Text without quotes is split anywhere: the tasks move the splits to record
        borders. Text with quotes is split at record starts, which were searched for if the text is large."""
        whole = Split(part=part, start=part.start, end=part.end)
        if self.row_groups is not None:
            yield from self._row_group_splits(whole)
            return
        size = part.end - part.start
        step = min(_SPLIT_BYTES, max(_TASK_BYTES, -(-size // self.parallelism)))
        if part.file.compressed or size <= step:
            yield whole
        elif self.reader.framing is Framing.LINES:
            for start in range(part.start, part.end, step):
                yield replace(whole, start=start, end=min(start + step, part.end))
        elif self.storage.stat(part.file.path) is None:
            yield whole  # the task says that the file is gone
        else:
            yield from self._quoted_splits(whole, step)

    def _quoted_splits(self, whole: Split, step: int) -> Iterator[Split]:
        start = whole.start
        cuts = self.search and self.search.cuts(whole.file.path, start, whole.end, step)
        for end in cuts or ():
            yield replace(whole, start=start, end=end)
            start = end
        if cuts:
            return
        with opened(self.storage, whole.file.path) as text:
            while start < whole.end:
                end, _ = self.cutter.cut(text, start, whole.end, rows=None, length=step)
                yield replace(whole, start=start, end=end)
                start = end

    def _row_group_splits(self, whole: Split) -> Iterator[Split]:
        assert self.row_groups is not None
        step = max(_TASK_ROWS, -(-(whole.end - whole.start) // self.parallelism))
        if whole.end - whole.start <= step:
            yield whole
            return
        start = whole.start
        for end in self.row_groups.ends(self.storage, whole.file.path, start, whole.end, step):
            yield replace(whole, start=start, end=end)
            start = end


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHistory(SourceHistory[FileSource]):
    """The rows of ``files``, in their order, up to the position ``last`` in the last file. Later files are
    ignored."""

    files: tuple[TakenFile, ...]
    last: int

    def next_offset(self, start: Offset | None, limit: ReadLimit) -> Offset:
        position, rows, length = self.source.position(start), limit.rows, limit.bytes
        while (rows is None or rows > 0) and (length is None or length > 0) and not self._is_read(position):
            if position.current is None:
                position = position.taking(self.files[position.taken])
                continue
            position, used_rows, used_bytes = self.source.advance(position, rows, length)
            if position.taken == len(self.files):
                position = position.moved(min(position.position, self.last))
            rows = None if rows is None else rows - used_rows
            length = None if length is None else length - used_bytes
        return position.to_json()

    def _is_read(self, position: FilePosition) -> bool:
        return position.taken == len(self.files) and position.position >= self.last

    def is_finished(self, offset: Offset | None) -> bool:
        return self.is_bounded and self._is_read(self.source.position(offset))

    def read_all(self, spark: SparkSession) -> DataFrame:
        return self.read(spark, None, self.next_offset(None, ReadLimit()))


def _stretch(file: TakenFile, start: int, end: int) -> Stretch:
    return Stretch(path=file.path, start=start, end=end, size=file.length)


def _time(file: TakenFile | None) -> int | None:
    return None if file is None else file.modified
