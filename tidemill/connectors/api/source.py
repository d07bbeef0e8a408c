"""What a source promises to jobs and queries.

Offsets are plain JSON values (dicts of str to JSON). The same (start, end] range must always give
the same rows in the same order: a crashed epoch is read again.
"""

# ruff: noqa: B027 - methods that do nothing by default are not abstract

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow as pa

from tidemill.catalog.table import CatalogTable
from tidemill.connectors.filters import ColumnFilter
from tidemill.files.fence import OPEN, Fence
from tidemill.files.storage import Storage
from tidemill.types.logical import Field

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

    def close(self) -> None:
        """Called when a job ends, however it ends. The source closes its connections."""

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


_READ: Offset = {"read": True}


class WholeSource(Source):
    """A bounded ``Source`` that can only be read whole. It has two offsets: nothing read, all read. Limits do
    not apply. ``read`` gives everything, or nothing after ``start``."""

    __slots__ = ()

    @property
    def is_bounded(self) -> bool:
        return True

    def next_offset(self, start: Offset | None, limit: ReadLimit) -> Offset:
        return _READ

    def is_empty(self, start: Offset | None, end: Offset) -> bool:
        return bool(start)

    def is_finished(self, offset: Offset | None) -> bool:
        return bool(offset)

    def read_all(self, spark: SparkSession) -> DataFrame:
        return self.read(spark, None, _READ)


S = TypeVar("S", bound=ArrowSource)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceHistory(ArrowSource, Generic[S]):
    """The rows of ``source`` up to an offset, read as ``source`` reads them: what ``Source.remembered``
    gives. ``bounded``: none follow."""

    source: S
    bounded: bool

    @property
    def is_bounded(self) -> bool:
        return self.bounded

    def is_empty(self, start: Offset | None, end: Offset) -> bool:
        return self.source.is_empty(start, end)

    def read(self, spark: SparkSession, start: Offset | None, end: Offset) -> DataFrame:
        return self.source.read(spark, start, end)

    def read_tasks(self, spark: SparkSession, start: Offset | None, end: Offset) -> ReadTasks:
        return self.source.read_tasks(spark, start, end)
