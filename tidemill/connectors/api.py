"""What a connector is: a factory that makes sources and sinks of a table's options.

A connector is one folder under ``connectors`` (or any package) plus an entry point in the group
``tidemill.connectors`` that names its ``Connector`` object. The epoch loop owns time and commits;
a connector only answers what there is (offsets), reads ranges, and stages and publishes output.

Offsets are plain JSON values (dicts of str to JSON). The same (start, end] range must always give
the same rows in the same order: a crashed epoch is read again.
"""

# ruff: noqa: B027 - methods that do nothing by default are not abstract

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import pyarrow as pa

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import INSERT_ONLY, RowKind
from tidemill.connectors.filters import ColumnFilter
from tidemill.connectors.grouping import Grouping
from tidemill.errors import NotSupportedError
from tidemill.files.fence import OPEN, Fence
from tidemill.files.storage import Storage
from tidemill.types.logical import Field, LogicalType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Offset = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimit:
    """How much one epoch may take of a source; None is no limit. Whichever is hit first counts."""

    rows: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRequest:
    """What the plan needs of a table.

    ``fields``: the output columns in order; each is a physical column of the table (by name) or a
    metadata column. ``metadata``: metadata key per metadata column name. ``sequence``: add the
    ``$seq`` column. ``parallelism``: a hint for the number of read tasks. ``time_zone``: the
    session's zone (for text formats of TIMESTAMP_LTZ). ``filters``: all of them hold for the rows that are
    wanted; whoever asks looks at them again. ``limit``: so many rows are enough, whichever. ``fence``: where
    links among its files may lead.
    """

    table: CatalogTable
    options: Mapping[str, str]
    fields: tuple[Field, ...]
    metadata: Mapping[str, str]
    sequence: bool
    parallelism: int
    time_zone: str
    streaming: bool
    filters: tuple[ColumnFilter, ...] = ()
    limit: int | None = None
    fence: Fence = OPEN


@dataclass(frozen=True, slots=True)
class NamedTable:
    """``name``: of a view, which no other table has; ``texts``: the request's fields over its columns;
    ``files``: the number of files; ``bring`` makes the name known to the session that reads."""

    name: str
    texts: tuple[str, ...]
    files: int
    bring: Callable[[], None]


class Source(ABC):
    """The base class of sources: a table that is read. Made per job; its offsets hold all its state.

    A source implements the six abstract methods. The other methods have defaults: override them to take part
    in the life of a streaming job, or to read faster in a batch query.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def is_bounded(self) -> bool:
        """Whether the source ends."""

    @abstractmethod
    def next_offset(self, start: Offset | None, limit: ReadLimit) -> Offset:
        """The end of the next range after ``start`` (None: the beginning), at most ``limit``;
        equal to ``start`` (or an empty range's offset) when nothing new is there now."""

    @abstractmethod
    def is_empty(self, start: Offset | None, end: Offset) -> bool:
        """Whether the range (start, end] holds no rows."""

    @abstractmethod
    def is_finished(self, offset: Offset | None) -> bool:
        """A bounded source: whether everything was read up to ``offset``."""

    @abstractmethod
    def read(self, spark: SparkSession, start: Offset | None, end: Offset) -> DataFrame:
        """The rows of (start, end]: the request's fields by name, then ``$kind`` (TINYINT RowKind)
        iff the table's changelog is not insert-only, then ``$seq`` (BIGINT) iff asked for."""

    @abstractmethod
    def read_all(self, spark: SparkSession) -> DataFrame:
        """Batch mode: everything there is now."""

    # -- the life of a streaming job

    def record_in(self, storage: Storage) -> None:
        """Called once before the first offset is asked for; ``storage`` is the source's own folder beside the
        job's checkpoint."""

    def search_with(self, spark: SparkSession) -> None:
        """Called before the first offset is asked for. If the source must search much data for the end of a
        range, tasks of ``spark`` may search."""

    def ahead(self, offset: Offset, limit: ReadLimit) -> Callable[[], None] | None:
        """The slow part of ``next_offset(offset, limit)``, which another thread calls while the range up to
        ``offset`` is read; None if nothing is slow. It decides nothing: its findings count once
        ``next_offset`` asks for the same."""
        return None

    def is_readable(self, start: Offset | None, end: Offset) -> bool:
        """Whether a range can still be read that an earlier process planned and did not commit. If not, the
        job plans another range."""
        return True

    def remembered(self, end: Offset, *, ended: bool) -> Source | None:
        """Exactly the rows up to ``end``, to be read once more; None if the source keeps no history.
        ``ended``: the source is bounded and has nothing after ``end``. StateError, which names the lost rows,
        if the source cannot give the same rows again."""
        return None

    def stopped(self, offset: Offset | None) -> None:
        """Called when a job that can be resumed stops or fails, with its last committed offset."""

    # -- batch queries

    def named_table(self, spark: SparkSession) -> NamedTable | DataFrame:
        """As ``read_all``. If the query's text can name the table, Spark need not analyse a frame of it."""
        return self.read_all(spark)

    def check_read(self) -> None:
        """Called after the rows of ``named_table`` were read. ConnectorError if the table has changed since
        it was named."""

    @property
    def gives_portions(self) -> bool:
        """Whether ``read`` reads a range of bytes sooner than the whole table."""
        return False


@dataclass(frozen=True, slots=True)
class Splits:
    """``names``: of all splits that a source has up to the end of a range; ``read``: of those with rows in
    the range the ``$seq`` that their rows begin with, ascending, and the name."""

    names: tuple[str, ...]
    read: tuple[tuple[int, str], ...]


class SplitSource(Source):
    """A source whose rows are ordered only within splits, such as partitions of a topic. Each split has its
    own watermark. If the table has a watermark, one task reads all rows of a split in a range. ``has_splits``
    of the connector is true."""

    __slots__ = ()

    @abstractmethod
    def splits(self, start: Offset | None, end: Offset) -> Splits:
        """The splits of the range (start, end]."""


BatchMap = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


_ROW_BYTES = 100
"""Of a row whose size nobody knows."""


@dataclass(frozen=True, slots=True)
class ReadTasks:
    """How a range is read. ``tasks``: a plain picklable value for each task, in order; ``read``: picklable,
    gives the batches of one of them. ``size``: about how many bytes they read, None if that is not known."""

    tasks: Sequence[Any]
    read: Callable[[Any], Iterator[pa.RecordBatch]]
    size: int | None

    @classmethod
    def of_rows(
        cls, tasks: Sequence[Any], read: Callable[[Any], Iterator[pa.RecordBatch]], rows: int
    ) -> ReadTasks:
        """Of a source that knows how many ``rows`` they read, and not how large these are."""
        return cls(tasks, read, rows * _ROW_BYTES)


class ArrowSource(Source):
    """A source whose rows are made as Arrow batches in Spark's Python workers. Its ``read`` is
    ``task_frames.read_frame`` of the same tasks. The connector's ``gives_arrow`` is true."""

    __slots__ = ()

    @abstractmethod
    def read_tasks(self, spark: SparkSession, start: Offset | None, end: Offset) -> ReadTasks:
        """The tasks of the range (start, end]; their batches have the columns of ``read``. Tasks of ``spark``
        may look where the rows of a task begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupRequest:
    """``fields``: the wanted physical columns of the table; ``keys``: those of them that are asked by.
    ``time_zone``: the session's zone. ``fence``: as of ``SourceRequest``."""

    table: CatalogTable
    options: Mapping[str, str]
    fields: tuple[Field, ...]
    keys: tuple[str, ...]
    time_zone: str
    fence: Fence = OPEN


@dataclass(frozen=True, slots=True)
class LookedUp:
    """``rows``: the request's fields, in any order; ``requests``: how often the outside system was asked."""

    rows: pa.Table
    requests: int


@runtime_checkable
class LookupTable(Protocol):
    """A table that is asked for the rows of some keys, in a Spark Python worker; picklable."""

    def lookup(self, keys: pa.Table) -> LookedUp:
        """All rows whose key columns are among ``keys``: distinct, without NULLs, named as the table's
        columns are. More rows than these do no harm. Entries of maps are in order (``types.entries``).
        Raises ConnectorError when it cannot be asked, after as many tries as the table's options say."""
        ...


@runtime_checkable
class ScannedTable(Protocol):
    """A table that is read whole in a Spark Python worker, which finds rows by key itself; picklable. A table
    with both faces is read whole where ``lookup.cache`` is FULL."""

    def version(self) -> Hashable:
        """Equal as long as the table has not changed; None where that cannot be told without reading it."""
        ...

    def scan(self) -> pa.Table:
        """All rows, with the request's fields; entries of maps are in order (``types.entries``). Raises
        ConnectorError when it cannot be read."""
        ...


@runtime_checkable
class LookupConnector(Protocol):
    """Optional face of a connector whose tables can be asked by key: FOR SYSTEM_TIME AS OF a processing
    time. Those of its options that say how are ``connectors.lookup.options.LOOKUP_OPTIONS``."""

    def lookup_table(self, request: LookupRequest) -> LookupTable | ScannedTable: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkRequest:
    """``fields``: columns of the frames to come. ``kinds``: the RowKinds they will carry (a
    ``$kind`` column is present iff that is not insert-only). ``job_id`` is stable over restarts."""

    table: CatalogTable
    options: Mapping[str, str]
    fields: tuple[Field, ...]
    kinds: frozenset[RowKind]
    job_id: str
    overwrite: bool
    static_partition: Mapping[str, str]
    time_zone: str
    streaming: bool
    ordinal: int = 0
    """The sink's number within its job: two INSERTs of one job into one table must not collide."""
    fence: Fence = OPEN
    """Where links among its files may lead."""
    former: tuple[str, ...] = ()
    """Ids of the jobs whose state the job has taken up, by way of savepoints."""
    ordered: bool = False
    """Tasks are in the order of arrival, rows within them too (nothing was exchanged since the sources)."""


class Sink(ABC):
    """The base class of sinks: a table that is written, one epoch at a time, in two steps (see
    runtime.commit)."""

    __slots__ = ()

    @abstractmethod
    def stage(self, frame: DataFrame, epoch: int) -> DataFrame:
        """A lazy frame with one STRING column ``token``: running it writes the rows of ``frame``
        where no reader sees them, under names of its attempt's own and durably, so that a task that
        runs twice, or outlives its epoch, harms nothing: only what tokens name is published. One token
        per task, JSON text, small."""

    @abstractmethod
    def publish(self, epoch: int, tokens: list[str]) -> None:
        """Makes the staged epoch visible, atomically as far as the outside system can; idempotent."""

    @abstractmethod
    def discard(self, epoch: int) -> None:
        """Removes the staged rows of ``epoch`` and later epochs, after a crash or a failed epoch."""

    def finish(self) -> None:
        """The job ended normally (bounded input): last clean-up, e.g. success files."""

    def stager(self, epoch: int) -> BatchMap | None:
        """``stage`` as a map over Arrow batches, so that it can run in the workers that make the rows; None
        if ``stage`` is no such map. Picklable. In: a task's batches (the request's fields by place, ``$kind``
        by name). Out: one row with the STRING column ``token``, with the promises of ``stage``. It is not
        called for tasks without rows."""
        return None

    def publish_with(self, spark: SparkSession) -> None:
        """Called once, before the first epoch is published. ``publish`` may use Spark's workers."""


class GroupedSink(Sink):
    """A sink that can commit together with other sinks of its job: sinks with an equal ``group`` are
    published by one call, so that a reader never sees different epochs in them."""

    __slots__ = ()

    @property
    @abstractmethod
    def group(self) -> Hashable:
        """For example the address of the database."""

    @abstractmethod
    def publish_group(self, epoch: int, parts: Sequence[tuple[Any, list[str]]]) -> None:
        """``parts``: every sink of the group with its tokens, this sink among them; idempotent."""


@runtime_checkable
class TruncatingConnector(Protocol):
    """Optional face of a connector whose tables can be emptied."""

    def truncate(self, table: CatalogTable, options: Mapping[str, str]) -> None:
        """Removes all rows, at once as far as the outside system can. ConnectorError where it cannot."""
        ...


class OutsideTables(Protocol):
    """A catalog in an outside system. All of it raises ConnectorError where that cannot be reached."""

    def databases(self) -> list[str]: ...

    def tables(self, database: str) -> list[str]: ...

    def table(self, database: str, name: str) -> CatalogTable | None:
        """With the options by which its connector reads it; None where there is none."""
        ...

    def create_database(self, name: str) -> None: ...

    def drop_database(self, name: str) -> None: ...

    def create(self, table: CatalogTable) -> None:
        """NotSupportedError for what tables there do not know."""
        ...

    def drop(self, database: str, name: str) -> None: ...

    def rename(self, database: str, name: str, other: str) -> None: ...


@runtime_checkable
class CatalogConnector(Protocol):
    """Optional face of a connector that brings catalogs: CREATE CATALOG whose 'type' is its identifier. A
    package may add others ("Writing a connector" in docs/connectors.md)."""

    def catalog_options(self, given: Mapping[str, str]) -> Mapping[str, str]:
        """As options of its tables, from those of CREATE CATALOG."""
        ...

    def catalog(self, name: str, options: Mapping[str, str]) -> OutsideTables: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorOption:
    """An option of a connector or format, for validation and the generated docs page.

    ``kind``: 'string', 'int', 'bool', 'duration', 'memory', 'float', 'map' (prefix key ending in '.').
    """

    key: str
    kind: str = "string"
    default: str | None = None
    required: bool = False
    doc: str = ""
    choices: tuple[str, ...] = ()
    least: int | None = None
    """The smallest number that means something."""


class Connector:
    """The factory; stateless. ``identifier`` is the value of 'connector'.

    What is said here is true of a connector without options, metadata, files and changes: it reads and
    takes inserted rows alone. One that ``is_source`` has ``source``, one that ``is_sink`` has ``sink``.
    """

    identifier: str
    options: tuple[ConnectorOption, ...] = ()
    allows_unknown_options: bool = False
    is_source: bool = False
    is_sink: bool = False
    changes_rows: bool = False
    """Whether DELETE and UPDATE change the rows of its tables (see ``fixed_columns``)."""
    rows_in_batch: bool = False
    """Whether a batch query reads the rows of a table as they are, whatever changes a stream gives."""
    time_option: str = ""
    """The option with the time, in milliseconds, of FROM t FOR SYSTEM_TIME AS OF; '' where tables keep no
    versions."""

    def validate(self, table: CatalogTable, options: Mapping[str, str]) -> None:
        """Checks option values (and the format's) beyond their kinds; raises ValidationError."""

    def fixed_columns(self, table: CatalogTable, options: Mapping[str, str]) -> tuple[str, ...] | None:
        """What UPDATE cannot set, as it tells the rows of ``table`` apart; None where nothing does so, so
        that rows cannot change."""
        return table.primary_key or None

    def metadata(self, options: Mapping[str, str]) -> Mapping[str, LogicalType]:
        """Readable metadata keys and their types, the format's included."""
        return {}

    def writable_metadata(self, options: Mapping[str, str]) -> Mapping[str, LogicalType]:
        """Metadata keys that a sink stores, and their types."""
        return {}

    def source_kinds(self, table: CatalogTable, options: Mapping[str, str]) -> frozenset[RowKind]:
        """The RowKinds the source produces: INSERT_ONLY, UPSERT or ALL_KINDS."""
        return INSERT_ONLY

    def sink_kinds(
        self, table: CatalogTable, options: Mapping[str, str], wanted: frozenset[RowKind]
    ) -> frozenset[RowKind]:
        """What the sink consumes of the ``wanted`` kinds (print, blackhole: all of them; an upsert
        sink: no -U; an append-only sink: INSERT_ONLY)."""
        return INSERT_ONLY

    def places(self, options: Mapping[str, str], *, role: str, streaming: bool) -> Mapping[str, str]:
        """Paths and URIs of files that the driver and all workers must see alike, by the option that names
        them; ``role``: 'source' or 'sink'."""
        return {}

    def named_places(self, options: Mapping[str, str]) -> Iterable[tuple[str, str]]:
        """All paths and URIs in ``options``, each with the option that names it, whatever for and however
        ill-formed the options are: a session may be kept from some."""
        return ()

    def has_splits(self) -> bool:
        """Whether its sources are ``SplitSource``s."""
        return False

    def gives_arrow(self) -> bool:
        """Whether its sources are ``ArrowSource``s."""
        return False

    def size(self, table: CatalogTable, options: Mapping[str, str]) -> int | None:
        """How many bytes all physical columns of all rows take once decoded, rather too many than too few.
        The table is not read for that; None where it is not known now."""
        return None

    def how_read(self, request: SourceRequest) -> str:
        """For EXPLAIN, in batch mode: what reads the table, and why; '' where that cannot be told now, or
        where there is one way."""
        return ""

    def grouped(self, request: SourceRequest, grouping: Grouping) -> Source | None:
        """An aggregation where the table lies: ``grouping`` of the rows for which all of the request's
        filters hold, its ``fields``, several rows for one key maybe. None where that would not be exact;
        looks at the table's types for that."""
        return None

    def source(self, request: SourceRequest) -> Source:
        raise NotSupportedError(f"Connector '{self.identifier}' cannot be used as a source.")

    def sink(self, request: SinkRequest) -> Sink:
        raise NotSupportedError(f"Connector '{self.identifier}' cannot be used as a sink.")
