"""What a source promises, and the optional faces by which jobs and queries use it better.

Offsets are plain JSON values (dicts of str to JSON). The same (start, end] range must always give
the same rows in the same order: a crashed epoch is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

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


class Source(Protocol):
    """A table being read. Made per job; holds no state that is not in its offsets."""

    @property
    def is_bounded(self) -> bool: ...

    def next_offset(self, start: Offset | None, limit: ReadLimit) -> Offset:
        """The end of the next range after ``start`` (None: the beginning), at most ``limit``;
        equal to ``start`` (or an empty range's offset) when nothing new is there now."""
        ...

    def is_empty(self, start: Offset | None, end: Offset) -> bool:
        """Whether the range (start, end] holds no rows."""
        ...

    def is_finished(self, offset: Offset | None) -> bool:
        """A bounded source: whether everything was read up to ``offset``."""
        ...

    def read(self, spark: SparkSession, start: Offset | None, end: Offset) -> DataFrame:
        """The rows of (start, end]: the request's fields by name, then ``$kind`` (TINYINT RowKind)
        iff the table's changelog is not insert-only, then ``$seq`` (BIGINT) iff asked for."""
        ...

    def read_all(self, spark: SparkSession) -> DataFrame:
        """Batch mode: everything there is now."""
        ...


@dataclass(frozen=True, slots=True)
class NamedTable:
    """``name``: of a view, which no other table has; ``texts``: the request's fields over its columns;
    ``files``: how many there are; ``bring`` makes the name known to the session that reads."""

    name: str
    texts: tuple[str, ...]
    files: int
    bring: Callable[[], None]


@runtime_checkable
class BatchSource(Source, Protocol):
    """Optional face of a source that the plan of a batch query can use in better ways than ``read_all``."""

    def named_table(self, spark: SparkSession) -> NamedTable | DataFrame:
        """As ``read_all``; a table that a query's text names needs no frame, and no analysis of one."""
        ...

    def check_read(self) -> None:
        """When all of the named table has been read: ConnectorError where it is not what was named."""
        ...

    @property
    def gives_portions(self) -> bool:
        """Whether ``read`` reads a range of bytes sooner than all of the table."""
        ...


class JobSource:
    """Optional base class of a source that takes part in the life of a streaming job: its start, its epochs,
    its stop. Each method does nothing unless a source overrides it."""

    __slots__ = ()

    def record_in(self, storage: Storage) -> None:
        """Called once before the first offset is asked for; ``storage`` is the source's own folder beside the
        job's checkpoint."""

    def search_with(self, spark: SparkSession) -> None:
        """Called before the first offset is asked for: where a source must look into much data to say where
        a range ends, the tasks of ``spark`` may do it."""

    def ahead(self, offset: Offset, limit: ReadLimit) -> Callable[[], None] | None:
        """What ``next_offset(offset, limit)`` would spend its time on, to be called by another thread while
        the range up to ``offset`` is read; None where that is little. It decides nothing: what it has found
        counts once ``next_offset`` asks for the same."""
        return None

    def is_readable(self, start: Offset | None, end: Offset) -> bool:
        """Asked at a start of a range that an earlier process planned and did not commit: a range that cannot
        be read any more is planned again."""
        return True

    def remembered(self, end: Offset, *, ended: bool) -> Source | None:
        """Exactly the rows up to ``end``, to be read once more; None of a source that keeps no history.
        ``ended``: it is a bounded source that has nothing after ``end``. StateError, which says what is gone,
        if the rows are not there any more as they were read."""
        return None

    def stopped(self, offset: Offset | None) -> None:
        """Called when a job that can be resumed stops or fails, with its last committed offset."""


@dataclass(frozen=True, slots=True)
class Splits:
    """``names``: of all splits that a source has up to the end of a range; ``read``: of those with rows in
    the range the ``$seq`` that their rows begin with, ascending, and the name."""

    names: tuple[str, ...]
    read: tuple[tuple[int, str], ...]


@runtime_checkable
class SplitSource(Protocol):
    """Optional face of a source whose rows are ordered within splits only, such as partitions of a topic:
    each has a watermark of its own. Where a table has a watermark, the rows of a split in a range are one
    task's."""

    def splits(self, start: Offset | None, end: Offset) -> Splits: ...


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


@runtime_checkable
class ArrowSource(Protocol):
    """Optional face of a source whose rows are made as Arrow batches in Spark Python workers. Its ``read`` is
    ``task_frames.read_frame`` of the same tasks."""

    def read_tasks(self, spark: SparkSession, start: Offset | None, end: Offset) -> ReadTasks:
        """The tasks of the range (start, end]; their batches have the columns of ``read``. Tasks of ``spark``
        may look where the rows of a task begin."""
        ...
