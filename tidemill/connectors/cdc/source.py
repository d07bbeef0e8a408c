"""A table of a database and its changes. The first epoch is a snapshot; each later epoch is a range of the
server's log.

A connector subclasses ``DatabaseCdcSource``: it says where the source begins, how far a range goes, and which
tasks read it. Rows are numbered by the ``count`` of changes before them: a range has the same rows each time.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame

from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN
from tidemill.connectors.api import ArrowSource, Offset, ReadLimit, ReadTasks
from tidemill.connectors.option_values import OptionValues
from tidemill.connectors.task_frames import read_frame
from tidemill.errors import ValidationError
from tidemill.types.logical import Field
from tidemill.types.physical import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INITIAL, LATEST, SNAPSHOT = "initial", "latest-offset", "snapshot"
"""Where a source begins: the values of ``scan.startup.mode`` that all servers know."""
BEAT_BYTES = 16 << 20
"""So much of the log without a change of the table is worth a new position."""
FOLLOWING = 1 << 60
"""Row numbers of changes are beyond those of all snapshots."""


class CdcPosition(Protocol):
    """A position in the table's changes. ``count``: the number of changes read so far. ``beat`` grows if the
    position moves over changes of other tables alone. ``is_snapshot``: it lies behind a snapshot."""

    @property
    def count(self) -> int: ...

    @property
    def beat(self) -> int: ...

    @property
    def is_snapshot(self) -> bool: ...

    def to_json(self) -> Offset: ...


class CdcServer(Protocol):
    """``release`` ends the transaction that holds a snapshot; ``close`` ends all connections."""

    def release(self) -> None: ...

    def close(self) -> None: ...


class PartReader(Protocol):
    """Reads one part in a task; picklable. ``schema``: of its batches, as Spark DDL."""

    @property
    def schema(self) -> str: ...

    @property
    def read(self) -> Callable[[Any], Iterator[pa.RecordBatch]]: ...


P = TypeVar("P", bound=CdcPosition)


@dataclass(slots=True, kw_only=True)
class DatabaseCdcSource(ArrowSource, Generic[P]):
    """``columns``: the declared physical columns. ``heartbeat``: seconds."""

    server: CdcServer
    reader: PartReader
    columns: tuple[Field, ...]
    startup: str
    heartbeat: float
    streaming: bool
    clock: Callable[[], float] = time.monotonic
    _begun: P | None = None
    _beaten: float = 0.0

    @property
    def is_bounded(self) -> bool:
        return self.startup == SNAPSHOT or not self.streaming

    def next_offset(self, start: Offset | None, limit: ReadLimit) -> Offset:
        """ConnectorError if the changes behind ``start`` are gone."""
        if start is None:
            self._begun = self._begun or self._begin()
            if self._begun.is_snapshot:
                return self._begun.to_json()
        before = self._begun if start is None else self._position(start)
        assert before is not None
        self.server.release()
        if self.startup == SNAPSHOT:
            return before.to_json()
        return self._next(before, limit).to_json()

    def is_empty(self, start: Offset | None, end: Offset) -> bool:
        after = self._position(end)
        if after.is_snapshot:
            return start is not None
        before = None if start is None else self._position(start)
        return ((before.count, before.beat) if before else (0, 0)) == (after.count, after.beat)

    def is_finished(self, offset: Offset | None) -> bool:
        return offset is not None and self.is_bounded

    def close(self) -> None:
        self.server.close()

    def read(self, spark: SparkSession, start: Offset | None, end: Offset) -> DataFrame:
        return read_frame(spark, self.read_tasks(spark, start, end), self.reader.schema)

    def read_tasks(self, spark: SparkSession, start: Offset | None, end: Offset) -> ReadTasks:
        after = self._position(end)
        parts = self.parts(start, after)
        if start is None:
            return ReadTasks(parts, self.reader.read, None)
        return ReadTasks.of_rows(parts, self.reader.read, after.count - self._position(start).count)

    def read_all(self, spark: SparkSession) -> DataFrame:
        """The table as it is, in one task."""
        self._table()
        self.server.close()
        return read_frame(spark, ReadTasks([self._whole()], self.reader.read, None), self.reader.schema)

    def extent(self, start: Offset | None, end: Offset) -> str:
        """The range in a few words, for a person."""
        after = self._position(end)
        if start is None and after.is_snapshot:
            return "a snapshot"
        count = after.count - (0 if start is None else self._position(start).count)
        return f"{count:,} changes" if count else ""

    # -- what each server answers

    @abstractmethod
    def parts(self, start: Offset | None, end: P) -> Sequence[Any]:
        """One part for each task of the range (start, end]."""

    @abstractmethod
    def _position(self, offset: Offset) -> P:
        """StateError for an offset of another source."""

    @abstractmethod
    def _begin(self) -> P:
        """The first position, behind a snapshot if the job reads one."""

    @abstractmethod
    def _next(self, before: P, limit: ReadLimit) -> P:
        """The end of the range behind ``before``, without a snapshot. ConnectorError if changes are gone."""

    @abstractmethod
    def _table(self) -> object:
        """The table as it is now. Raises if it is not as declared."""

    @abstractmethod
    def _whole(self) -> Any:
        """The part that is the table as it is, outside of any snapshot."""

    # -- for subclasses

    def _beats(self, far: bool) -> bool:
        """Whether the position moves over changes of other tables: if that is ``far``, once a heartbeat."""
        if not far or self.clock() < self._beaten + self.heartbeat:
            return False
        self._beaten = self.clock()
        return True


def most_rows(limit: ReadLimit, unlimited: int, row_bytes: int) -> int:
    """How many rows an epoch may read, at least 1. ``unlimited``: without a limit of rows; ``row_bytes``: of
    a row. Example: 1000 bytes and rows of 200 bytes give 5."""
    rows = unlimited if limit.rows is None else limit.rows
    return max(1, rows if limit.bytes is None else min(rows, limit.bytes // row_bytes))


def startup_mode(options: OptionValues, *, streaming: bool) -> str:
    """The table's mode. ValidationError if a batch query would never end."""
    mode: str = options["scan.startup.mode"].lower()
    if not streaming and mode not in (INITIAL, SNAPSHOT):
        raise ValidationError(
            f"'scan.startup.mode' = '{mode}' has no end: it is for streaming mode.",
            hint="A batch query reads the table as it is: leave the option out.",
        )
    return mode


def change_schema(fields: tuple[Field, ...], *, changes: bool, sequence: bool) -> str:
    """As Spark DDL. ``changes``: rows have a column with their kind; ``sequence``: and one with their
    number."""
    parts = [spark_schema(fields)] if fields else []
    parts += [f"`{KIND_COLUMN}` TINYINT"] if changes else []
    parts += [f"`{SEQUENCE_COLUMN}` BIGINT"] if sequence else []
    return ", ".join(parts)


def change_batch(
    columns: Sequence[pa.Array], fields: tuple[Field, ...], kinds: Any | None, sequence: Any | None
) -> pa.RecordBatch:
    """``columns`` of ``fields``; ``kinds`` and ``sequence``: numbers for each row, None: no such column."""
    arrays, names = list(columns), [field.name for field in fields]
    for numbers, kind, name in ((kinds, pa.int8(), KIND_COLUMN), (sequence, pa.int64(), SEQUENCE_COLUMN)):
        if numbers is not None:
            arrays.append(pa.array(numbers, kind))
            names.append(name)
    return pa.record_batch(arrays, names=names)
