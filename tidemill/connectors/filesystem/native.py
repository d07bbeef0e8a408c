"""File tables of batch queries by Spark's own vectorised readers: only what is asked for leaves the files.

Which columns Spark gives exactly, ``formats.native`` decides for each file; files of one answer are one
relation, those that Spark would read otherwise stay with our decoders. A relation has our list of files and
our values of their partitions: Spark neither lists nor guesses. It knows their sizes, prunes partitions while
it runs, and skips row groups. The rows have no order.

A relation is a view of the session that reads it, with all columns of its table, and is kept: a query that
finds the same files needs one call into the JVM for a table, and no analysis.

Cost: the footers of the files, on the driver, once for each version of a file; a few calls into the JVM for
each partition, once, and one for each list of files.
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
from tidemill.files.storage import FileEntry, FileList, Storage
from tidemill.last_used import LastUsed
from tidemill.spark_internals.file_index import file_index, size_of
from tidemill.spark_internals.file_relations import file_relation, partition_paths, partition_spec
from tidemill.spark_internals.sessions import TemporaryViews, copy_of
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_schema, quote, spark_schema

_KNOWN_FILES = 20_000
_KNOWN_TABLES = 64
_FILES_OF_TABLES = 200_000
"""Which Spark has a state of some hundred bytes for, each."""
_AS_IT_IS = {
    "mergeSchema": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}
"""No calendar but the one that SQL has."""

_HIDDEN = re.compile(r"\..*|_[^=]*|.*\._COPYING_", re.DOTALL)
"""Names that Spark's lists leave out, or of which it reads no rows."""


def _has_no_path(storage: Storage, file: FileEntry) -> bool:
    """Whether Spark cannot say its name: it leaves it out of its lists, or takes what is before a colon for a
    scheme."""
    name = storage.absolute(file.path).rpartition("/")[2]
    return ":" in name or _HIDDEN.fullmatch(name) is not None


TABLE, PARTITIONS = "tidemill.table", "tidemill.partitions"
"""Options of a relation: whose partitions these are, and how many there would be without conditions."""

OPENING = "spark.sql.files.openCostInBytes"
OPENING_ONE_OF_MANY = str(512 << 10)
"""Bytes that are read while a file of this machine is opened. Spark takes it for eight times as much, and
gives a thousand small files to dozens of tasks; less leaves a task more with the rest of files whose sizes
differ."""
_OPENING_ONE_OF_FEW = str(4 << 20)
"""As Spark has it: with less, a small table of a few files is cut for tasks that find nothing to do."""
_FEW = 16
_READ_BY = (
    "spark.sql.session.timeZone",
    "spark.sql.files.minPartitionNum",
    "spark.sql.files.maxPartitionBytes",
    OPENING,
)
"""Settings of a job by which the session that made a relation reads it."""

Columns = tuple[NativeColumn | None, ...]
"""Of a file by field; None for one that it does not have."""
_Known = dict[int, tuple[StoredColumns, Columns | None]]
"""By the identity of what a file has stored, which files of one schema share; it is kept to stay its own."""


@dataclass(slots=True)
class _Growing:
    """Files that one relation reads, as they are found."""

    columns: Columns
    files: list[FileEntry] = field(default_factory=list)

    def takes(self, columns: Columns, file: FileEntry) -> bool:
        if columns != self.columns:
            pairs = list(zip(self.columns, columns, strict=True))
            if any(a != b for a, b in pairs if a is not None and b is not None):
                return False
            self.columns = tuple(a or b for a, b in pairs)
        self.files.append(file)
        return True


@dataclass(frozen=True, slots=True)
class _Group:
    """Files that one relation reads."""

    columns: Columns
    files: FileList


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeScan:
    """``fields``: what to give, in order; ``partitions``: those of them that come from paths; ``columns``:
    all of the table that do not. ``table``: its name, '' where it has no partitions."""

    format: NativeFormat
    storage: Storage
    fields: tuple[Field, ...]
    partitions: tuple[Field, ...]
    columns: tuple[Field, ...]
    default_partition: str
    table: str

    def tables(
        self, spark: SparkSession, files: FileList, of: int
    ) -> tuple[list[NamedTable], list[FileEntry]]:
        """What reads ``files``, and those of them that are left to our decoders; ``of``: how many
        partitions the table has. ConnectorError where a file is not of the format."""
        groups, left = (_grouped if len(files) <= _KNOWN_FILES else _grouped.__wrapped__)(self, files)
        told = {TABLE: self.table, PARTITIONS: str(of)} if self.table else {}
        return [self._table(spark, group, told) for group in groups], list(left)

    def grouped(self, files: FileList) -> tuple[list[_Group], list[FileEntry]]:
        """``files`` by the relation that reads them, and those that are left to our decoders."""
        groups: list[_Growing] = []
        left: list[FileEntry] = []
        known: _Known = {}
        for file in files:
            columns = self._columns(file, known)
            if columns is None:
                left.append(file)
            elif not any(group.takes(columns, file) for group in groups):
                groups.append(_Growing(columns, [file]))
        alone = len(groups) == 1 and not left
        return [_Group(g.columns, files if alone else FileList(g.files)) for g in groups], left

    @property
    def _stored(self) -> tuple[Field, ...]:
        """Fields that come from the files themselves."""
        return tuple(f for f in self.fields if f not in self.partitions)

    def _columns(self, file: FileEntry, known: _Known) -> Columns | None:
        if _has_no_path(self.storage, file):
            return None
        stored = _stored(self.format, self.storage, file)
        if stored is None:
            return None
        if id(stored) not in known:
            self._check_names(file, stored)
            known[id(stored)] = stored, self._given(stored)
        return known[id(stored)][1]

    def _check_names(self, file: FileEntry, stored: StoredColumns) -> None:
        """As our decoders do."""
        wrong = mistaken((f.name for f in self._stored), {f.name for f in self.columns}, stored)
        if wrong:
            raise ConnectorError(f"{wrong} ({self.storage.shown(file.path)})")

    def _given(self, stored: StoredColumns) -> Columns | None:
        found: list[NativeColumn | None] = []
        for own in self._stored:
            column = native_column(stored, own)
            if column is None:
                return None
            found.append(column if own.name in stored else None)
        return tuple(found)

    def why_left(self, file: FileEntry) -> str:
        """What in ``file`` Spark would not read as our decoders do; '' where there is nothing."""
        if self._columns(file, {}) is not None:
            return ""
        stored = None if _has_no_path(self.storage, file) else _stored(self.format, self.storage, file)
        odd = [f.name for f in self._stored if stored is not None and native_column(stored, f) is None]
        return f"column {quote(odd[0])}" if odd else "what is no column"

    def _table(self, spark: SparkSession, group: _Group, told: dict[str, str]) -> NamedTable:
        given = {f.name: c for f, c in zip(self._stored, group.columns, strict=True) if c is not None}
        schema = self._schema(group.files[0], given)
        told = {**_AS_IT_IS, **told}
        session = _Session.of(spark)
        place = self.storage, self.partitions, self.default_partition, group.files
        key = session.application, session.read_by, place, self.format, schema, tuple(told.items())
        known = _TABLES.get(key)
        if known is None:
            index = self._index(spark, group.files)
            session_of = _sharing_out(spark, len(group.files))
            relation = file_relation(spark, self.format.spark_class, index, schema, told, session_of)
            known = _Kept.of(relation, len(group.files))
            _TABLES.keep(key, known)
        texts = tuple(self._value(f, given).format(quote(f.name)) for f in self.fields)
        return NamedTable(known.name, texts, known.files, partial(known.name_in, session))

    def _value(self, f: Field, given: Mapping[str, NativeColumn]) -> str:
        if f in self.partitions:
            return "{0}"
        return given[f.name].value if f.name in given else missing(f.type).value

    def _schema(self, file: FileEntry, given: Mapping[str, NativeColumn]) -> str:
        """All columns, whichever are read: Spark takes the share of a table that a query reads for the share
        of its columns, and what is one for all queries is kept for them. ``file``: one of the table's."""
        stored = _stored(self.format, self.storage, file)
        assert stored is not None

        def read(f: Field) -> str:
            column = given.get(f.name) or native_column(stored, f)
            return unread(f.type) if column is None else column.read

        wanted = {f.name: f for f in self._stored}
        return ", ".join(f"{quote(f.name)} {read(wanted.get(f.name, f))}" for f in self.columns)

    def _index(self, spark: SparkSession, files: FileList) -> Any:
        """Spark's list of the files, by partition."""
        paths = [self.storage.absolute(f.path) for f in files]
        index = file_index(spark, paths, self._partitions(spark, files))
        self._check_all_listed(index, files)
        return index

    def _check_all_listed(self, index: Any, files: FileList) -> None:
        """Spark leaves out without a word what is gone when it looks, and reads no further than a file went
        then."""
        if size_of(index) == (len(files), sum(f.size for f in files)):
            return
        gone = next((f for f in files if self.storage.stat(f.path) is None), None)
        if gone is None:
            check_replaced(self.storage, files)
        shown = self.storage.shown("" if gone is None else gone.path)
        raise ConnectorError(vanished(shown))

    def _partitions(self, spark: SparkSession, files: FileList) -> Any:
        """Spark's PartitionSpec: the values of each directory, as our reader reads its name."""
        if not self.partitions:
            return partition_spec(spark, "", ())
        place = spark.sparkContext.applicationId, self.storage, self.partitions, self.default_partition
        directories = {f.path.rpartition("/")[0]: f.path for f in files}
        made = {directory: _PARTITIONS.get((place, directory)) for directory in directories}
        new = [directory for directory, known in made.items() if known is None]
        for directory, path in self._partition_paths(spark, {d: directories[d] for d in new}):
            made[directory] = path
            _PARTITIONS.keep((place, directory), path)
        return partition_spec(spark, spark_schema(self.partitions), list(made.values()))

    def _partition_paths(
        self, spark: SparkSession, directories: Mapping[str, str]
    ) -> Iterator[tuple[str, Any]]:
        """By directory Spark's PartitionPath; ``directories`` have the path of a file of each."""
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
        made = partition_paths(frame, list(map(self.storage.absolute, directories)))
        yield from zip(directories, made, strict=True)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A relation of so many files for any session of its application: ``relation`` is what Spark keeps of a
    view."""

    name: str
    relation: Any
    files: int

    @classmethod
    def of(cls, frame: DataFrame, files: int) -> _Kept:
        """``frame`` under a name that no other has, in its session."""
        name = f"$table{next(_NUMBERS)}"
        frame.createTempView(quote(name))
        return cls(name, TemporaryViews(frame.sparkSession).get(name), files)

    def name_in(self, session: _Session) -> None:
        """From now on the session knows it."""
        session.views.put(self.name, self.relation)


@dataclass(frozen=True, slots=True)
class _Session:
    """What is asked of a session once: each is a call into the JVM or more."""

    application: str
    read_by: tuple[str | None, ...]
    views: TemporaryViews

    @classmethod
    def of(cls, spark: SparkSession) -> _Session:
        known = _SESSIONS.get(spark)
        if known is None:
            read_by = tuple(spark.conf.get(key, None) for key in _READ_BY)
            known = cls(spark.sparkContext.applicationId, read_by, TemporaryViews(spark))
            _SESSIONS[spark] = known
        return known


_SESSIONS: WeakKeyDictionary[SparkSession, _Session] = WeakKeyDictionary()
_NUMBERS = count()


_TABLES = LastUsed[_Kept](most=_KNOWN_TABLES, heaviest=_FILES_OF_TABLES, weight=lambda kept: kept.files)
"""Each holds on to the session of the job that made it."""
_PARTITIONS = LastUsed[Any](most=20_000)
"""Spark's PartitionPaths: of a table that grows only the new ones are made, which takes some calls each."""


@lru_cache(maxsize=_KNOWN_TABLES)
def _grouped(scan: NativeScan, files: FileList) -> tuple[list[_Group], list[FileEntry]]:
    """A scan that finds the same files again does not look at each of them."""
    return scan.grouped(files)


def _stored(declared: NativeFormat, storage: Storage, file: FileEntry) -> StoredColumns | None:
    try:
        return _footer(declared, storage, file)
    except UNREADABLE as e:
        raise ConnectorError(f"Cannot read file {storage.shown(file.path)}: {e}") from None


@lru_cache(maxsize=_KNOWN_FILES)
def _footer(declared: NativeFormat, storage: Storage, file: FileEntry) -> StoredColumns | None:
    """A file of one size and time is the same: a query that is asked again reads no footers."""
    with storage.open(file.path) as opened:
        if opened.size() != file.size:
            raise replaced(storage, file.path)
        return declared.stored(opened)


def _sharing_out(spark: SparkSession, files: int) -> Any:
    """The session by whose settings so many files are shared out among tasks: Spark asks a relation's own.
    None for that of ``spark``."""
    if files > _FEW or spark.conf.get(OPENING, None) != OPENING_ONE_OF_MANY:
        return None
    return copy_of(spark, {OPENING: _OPENING_ONE_OF_FEW})
