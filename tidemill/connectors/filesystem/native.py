"""Reads file tables of batch queries with Spark's own vectorised readers, which skip unneeded data.

``formats.native`` decides for each file which columns Spark reads exactly. Files with the same decision form
one relation; files that Spark would read differently stay with our decoders. A relation gets our list of
files and our partition values, so Spark neither lists nor guesses. Spark knows the file sizes, prunes
partitions at run time, and skips row groups. The rows have no order.

A relation is a temporary view with all columns of its table, and is cached. A query of the same files needs
one call into the JVM per table, and no analysis.

Cost: one footer read on the driver per version of a file; a few calls into the JVM per new partition, and one
per list of files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tidemill.connectors.api import NamedTable
from tidemill.connectors.filesystem.changes import check_replaced, replaced, vanished
from tidemill.connectors.filesystem.partitions import partition_values
from tidemill.connectors.filesystem.reading import UNREADABLE
from tidemill.connectors.formats.column_names import mistaken
from tidemill.connectors.formats.native import (
    NativeColumn,
    NativeFormat,
    StoredColumns,
    missing,
    native_column,
    unread,
)
from tidemill.errors import ConnectorError
from tidemill.files.entries import FileEntry, FileList
from tidemill.files.storage import Storage
from tidemill.last_used import LastUsed
from tidemill.spark_internals.file_index import file_index, size_of
from tidemill.spark_internals.file_relations import file_relation, partition_paths, partition_spec
from tidemill.spark_internals.sessions import TemporaryViews, copy_of
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_schema, quote, spark_schema

_KNOWN_FILES = 20_000
_KNOWN_TABLES = 64
_FILES_OF_TABLES = 200_000
"""Files of all cached relations together; Spark keeps some hundred bytes for each file."""
_UNCONVERTED = {
    "mergeSchema": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}
"""Options that keep Spark from merging schemas and from converting between calendars."""

_HIDDEN = re.compile(r"\..*|_[^=]*|.*\._COPYING_", re.DOTALL)
"""Names of files that Spark leaves out of its listings, or reads no rows of."""


def _has_no_path(storage: Storage, file: FileEntry) -> bool:
    """Whether Spark cannot address the file: Spark hides its name, or takes text before a colon for a
    scheme."""
    name = storage.absolute(file.path).rpartition("/")[2]
    return ":" in name or _HIDDEN.fullmatch(name) is not None


TABLE, PARTITIONS = "tidemill.table", "tidemill.partitions"
"""Options of a relation: the table's name, and its number of partitions before pruning."""

OPENING = "spark.sql.files.openCostInBytes"
OPENING_ONE_OF_MANY = str(512 << 10)
"""Bytes that a task could read while it opens a local file. Spark's default is eight times larger, and gives
a thousand small files to dozens of tasks. A smaller value balances files of different sizes worse."""
_OPENING_ONE_OF_FEW = str(4 << 20)
"""Spark's default. A smaller value would cut a small table of a few files into tasks without rows."""
_FEW = 16
_READ_BY = (
    "spark.sql.session.timeZone",
    "spark.sql.files.minPartitionNum",
    "spark.sql.files.maxPartitionBytes",
    OPENING,
)
"""Settings that a relation takes from the session that created it."""

Columns = tuple[NativeColumn | None, ...]
"""How to read each field from a file; None for a field that the file lacks."""
_Decisions = dict[int, tuple[StoredColumns, Columns | None]]
"""Decisions by ``id`` of the stored columns, which files of one schema share. The value holds the stored
columns, so that their id is not reused."""


@dataclass(slots=True)
class _Growing:
    """A group of files for one relation, while files are added."""

    columns: Columns
    files: list[FileEntry] = field(default_factory=list)

    def takes(self, columns: Columns, file: FileEntry) -> bool:
        if columns != self.columns:
            column_pairs = list(zip(self.columns, columns, strict=True))
            if any(a != b for a, b in column_pairs if a is not None and b is not None):
                return False
            self.columns = tuple(a or b for a, b in column_pairs)
        self.files.append(file)
        return True


@dataclass(frozen=True, slots=True)
class _Group:
    """The files of one relation, and how Spark reads their columns."""

    columns: Columns
    files: FileList


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeScan:
    """``fields``: the fields to read, in order; ``partitions``: the fields among them that come from paths;
    ``columns``: all other columns of the table. ``table``: its name, '' if it has no partitions."""

    format: NativeFormat
    storage: Storage
    fields: tuple[Field, ...]
    partitions: tuple[Field, ...]
    columns: tuple[Field, ...]
    default_partition: str
    table: str

    def tables(
        self, spark: SparkSession, files: FileList, partition_count: int
    ) -> tuple[list[NamedTable], list[FileEntry]]:
        """Tables that read ``files``, and the files that our decoders must read. ``partition_count``: of the
        table, before pruning. ConnectorError if a file is not of the format."""
        groups, not_native = (_grouped if len(files) <= _KNOWN_FILES else _grouped.__wrapped__)(self, files)
        options = {TABLE: self.table, PARTITIONS: str(partition_count)} if self.table else {}
        return [self._table(spark, group, options) for group in groups], list(not_native)

    def grouped(self, files: FileList) -> tuple[list[_Group], list[FileEntry]]:
        """``files`` grouped by the relation that reads them, and the files that our decoders must read."""
        groups: list[_Growing] = []
        not_native: list[FileEntry] = []
        decisions: _Decisions = {}
        for file in files:
            columns = self._columns(file, decisions)
            if columns is None:
                not_native.append(file)
            elif not any(group.takes(columns, file) for group in groups):
                groups.append(_Growing(columns, [file]))
        all_in_one = len(groups) == 1 and not not_native
        return [_Group(g.columns, files if all_in_one else FileList(g.files)) for g in groups], not_native

    @property
    def _stored(self) -> tuple[Field, ...]:
        """Fields that come from the files themselves."""
        return tuple(f for f in self.fields if f not in self.partitions)

    def _columns(self, file: FileEntry, decisions: _Decisions) -> Columns | None:
        if _has_no_path(self.storage, file):
            return None
        stored = _stored(self.format, self.storage, file)
        if stored is None:
            return None
        if id(stored) not in decisions:
            self._check_names(file, stored)
            decisions[id(stored)] = stored, self._given(stored)
        return decisions[id(stored)][1]

    def _check_names(self, file: FileEntry, stored: StoredColumns) -> None:
        """Raises the error that our decoders raise if a name differs from a column only in case."""
        problem = mistaken((f.name for f in self._stored), {f.name for f in self.columns}, stored)
        if problem:
            raise ConnectorError(f"{problem} ({self.storage.full_path(file.path)})")

    def _given(self, stored: StoredColumns) -> Columns | None:
        columns: list[NativeColumn | None] = []
        for stored_field in self._stored:
            column = native_column(stored, stored_field)
            if column is None:
                return None
            columns.append(column if stored_field.name in stored else None)
        return tuple(columns)

    def why_left(self, file: FileEntry) -> str:
        """The column of ``file`` that Spark would read differently from our decoders; '' if there is none."""
        if self._columns(file, {}) is not None:
            return ""
        stored = None if _has_no_path(self.storage, file) else _stored(self.format, self.storage, file)
        differing = [f.name for f in self._stored if stored is not None and native_column(stored, f) is None]
        return f"column {quote(differing[0])}" if differing else "the file as a whole"

    def _table(self, spark: SparkSession, group: _Group, options: dict[str, str]) -> NamedTable:
        native_columns = {
            f.name: c for f, c in zip(self._stored, group.columns, strict=True) if c is not None
        }
        schema = self._schema(group.files[0], native_columns)
        options = {**_UNCONVERTED, **options}
        session = _Session.of(spark)
        scan_key = self.storage, self.partitions, self.default_partition, group.files
        key = session.application, session.read_by, scan_key, self.format, schema, tuple(options.items())
        relation = _TABLES.get(key)
        if relation is None:
            index = self._index(spark, group.files)
            session_of = _sharing_out(spark, len(group.files))
            frame = file_relation(spark, self.format.spark_class, index, schema, options, session_of)
            relation = _Kept.of(frame, len(group.files))
            _TABLES.keep(key, relation)
        texts = tuple(self._value(f, native_columns).format(quote(f.name)) for f in self.fields)
        return NamedTable(relation.name, texts, relation.files, partial(relation.name_in, session))

    def _value(self, f: Field, native_columns: Mapping[str, NativeColumn]) -> str:
        if f in self.partitions:
            return "{0}"
        return native_columns[f.name].value if f.name in native_columns else missing(f.type).value

    def _schema(self, file: FileEntry, native_columns: Mapping[str, NativeColumn]) -> str:
        """The DDL of all columns of the table, read or not: Spark estimates a query's share of a table by its
        columns, and one schema lets all queries share a relation. ``file``: any file of the relation."""
        stored = _stored(self.format, self.storage, file)
        assert stored is not None

        def read(f: Field) -> str:
            column = native_columns.get(f.name) or native_column(stored, f)
            return unread(f.type) if column is None else column.read

        wanted_fields = {f.name: f for f in self._stored}
        return ", ".join(f"{quote(f.name)} {read(wanted_fields.get(f.name, f))}" for f in self.columns)

    def _index(self, spark: SparkSession, files: FileList) -> Any:
        """Spark's file index of ``files``, by partition."""
        paths = [self.storage.absolute(f.path) for f in files]
        index = file_index(spark, paths, self._partitions(spark, files))
        self._check_all_listed(index, files)
        return index

    def _check_all_listed(self, index: Any, files: FileList) -> None:
        """Raises if a file is gone or changed: Spark would silently skip a file that is gone when it looks,
        and read another file only up to the size it sees."""
        if size_of(index) == (len(files), sum(f.size for f in files)):
            return
        gone = next((f for f in files if self.storage.stat(f.path) is None), None)
        if gone is None:
            check_replaced(self.storage, files)
        shown = self.storage.full_path("" if gone is None else gone.path)
        raise ConnectorError(vanished(shown))

    def _partitions(self, spark: SparkSession, files: FileList) -> Any:
        """Spark's PartitionSpec: the values of each directory, as our reader reads its name."""
        if not self.partitions:
            return partition_spec(spark, "", ())
        key_prefix = spark.sparkContext.applicationId, self.storage, self.partitions, self.default_partition
        directories = {f.path.rpartition("/")[0]: f.path for f in files}
        paths = {directory: _PARTITIONS.get((key_prefix, directory)) for directory in directories}
        missing_directories = [directory for directory, cached in paths.items() if cached is None]
        for directory, path in self._partition_paths(spark, {d: directories[d] for d in missing_directories}):
            paths[directory] = path
            _PARTITIONS.keep((key_prefix, directory), path)
        return partition_spec(spark, spark_schema(self.partitions), list(paths.values()))

    def _partition_paths(
        self, spark: SparkSession, directories: Mapping[str, str]
    ) -> Iterator[tuple[str, Any]]:
        """Spark's PartitionPath of each directory. ``directories`` maps each to the path of one of its
        files."""
        if not directories:
            return
        values = [
            partition_values(path, self.partitions, self.default_partition) for path in directories.values()
        ]
        rows = pa.Table.from_arrays(
            [
                pa.array([v[f.name].as_py() for v in values], arrow_type_)
                for f, arrow_type_ in zip(self.partitions, arrow_schema(self.partitions).types, strict=True)
            ],
            names=[f.name for f in self.partitions],
        )
        frame = spark.createDataFrame(rows, spark_schema(self.partitions))
        paths = partition_paths(frame, list(map(self.storage.absolute, directories)))
        yield from zip(directories, paths, strict=True)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A cached relation of ``files`` files, for any session of its application. ``relation``: Spark's
    view."""

    name: str
    relation: Any
    files: int

    @classmethod
    def of(cls, frame: DataFrame, files: int) -> _Kept:
        """Caches ``frame`` as a temporary view with a unique name."""
        name = f"$table{next(_NUMBERS)}"
        frame.createTempView(quote(name))
        return cls(name, TemporaryViews(frame.sparkSession).get(name), files)

    def name_in(self, session: _Session) -> None:
        """Adds the view to ``session``."""
        session.views.put(self.name, self.relation)


@dataclass(frozen=True, slots=True)
class _Session:
    """Facts of a Spark session, cached because each takes a call into the JVM or more."""

    application: str
    read_by: tuple[str | None, ...]
    views: TemporaryViews

    @classmethod
    def of(cls, spark: SparkSession) -> _Session:
        cached = _SESSIONS.get(spark)
        if cached is None:
            read_by = tuple(spark.conf.get(key, None) for key in _READ_BY)
            cached = cls(spark.sparkContext.applicationId, read_by, TemporaryViews(spark))
            _SESSIONS[spark] = cached
        return cached


_SESSIONS: WeakKeyDictionary[SparkSession, _Session] = WeakKeyDictionary()
_NUMBERS = count()


_TABLES = LastUsed[_Kept](most=_KNOWN_TABLES, heaviest=_FILES_OF_TABLES, weight=lambda kept: kept.files)
"""Cached relations. Each holds a reference to the session that created it."""
_PARTITIONS = LastUsed[Any](most=20_000)
"""Spark's PartitionPaths, by directory. Creating a path takes some calls into the JVM, so a growing table
creates only the paths of its new partitions."""


@lru_cache(maxsize=_KNOWN_TABLES)
def _grouped(scan: NativeScan, files: FileList) -> tuple[list[_Group], list[FileEntry]]:
    """``scan.grouped(files)``, cached: a scan of the same files does not look at each file again."""
    return scan.grouped(files)


def _stored(declared: NativeFormat, storage: Storage, file: FileEntry) -> StoredColumns | None:
    try:
        return _footer(declared, storage, file)
    except UNREADABLE as e:
        raise ConnectorError(f"Cannot read file {storage.full_path(file.path)}: {e}") from None


@lru_cache(maxsize=_KNOWN_FILES)
def _footer(declared: NativeFormat, storage: Storage, file: FileEntry) -> StoredColumns | None:
    """The stored columns of a file, cached by path, size and time: a repeated query reads no footers."""
    with storage.open(file.path) as opened:
        if opened.size() != file.size:
            raise replaced(storage, file.path)
        return declared.stored(opened)


def _sharing_out(spark: SparkSession, files: int) -> Any:
    """The session whose settings divide ``files`` files among tasks: Spark uses the relation's own session.
    None means ``spark`` itself."""
    if files > _FEW or spark.conf.get(OPENING, None) != OPENING_ONE_OF_MANY:
        return None
    return copy_of(spark, {OPENING: _OPENING_ONE_OF_FEW})
