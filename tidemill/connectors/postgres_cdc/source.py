"""A table of PostgreSQL and its changes: a snapshot is the first epoch, then an epoch is a range of the log.

1. *Begin*: the table is published, and the slot keeps the log from now on. After all transactions of that
   time are over, a snapshot is taken, which the driver holds while the first epoch reads it.
2. *Plan*: the driver asks the server how many changes the slot gives, and ends the range with a transaction.
3. *Read*: a task peeks at the slot up to that place, which it can do as often as it likes. Transactions that
   the snapshot has are left out.
4. *Let go*: if the epoch is committed the slot moves to its end, at the next plan.

What cannot be read as planned is an error and never skipped: a slot that is gone or has moved on, another
table of the same name, columns that have changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from tidemill.connectors.api import JobSource, Offset, ReadLimit, ReadTasks
from tidemill.connectors.postgres_cdc.fitting import (
    check_publication,
    check_slot,
    check_table,
    check_unchanged,
)
from tidemill.connectors.postgres_cdc.offsets import (
    ChangeRange,
    Position,
    SnapshotRange,
    from_json,
)
from tidemill.connectors.postgres_cdc.options import ALL_TABLES, COMMITTED, DISABLED, INITIAL, SNAPSHOT
from tidemill.connectors.postgres_cdc.reading import CdcReader
from tidemill.connectors.postgres_cdc.server import Ahead, Server, SlotStatus, TableStatus
from tidemill.connectors.task_frames import read_frame
from tidemill.types.logical import Field

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOST = 1_000_000
"""Messages of an epoch without a limit; the server keeps them in a file while they are read."""
_MESSAGE = 200
"""Bytes that a message is taken to have before any was seen."""
_BEAT_BYTES = 16 << 20
_LEAST_BLOCKS = 2_048
"""Blocks that are worth a task of their own."""


@dataclass(slots=True, kw_only=True)
class CdcSource(JobSource):
    """``columns``: all that the table declares and the server has. ``autocreate``: of the publication."""

    server: Server
    reader: CdcReader
    columns: tuple[Field, ...]
    startup: str
    autocreate: str
    heartbeat: float
    parallelism: int
    streaming: bool
    clock: Callable[[], float] = time.monotonic
    _begun: Position | None = None
    _idle: int | None = None
    _beaten: float = 0.0
    _message: int = _MESSAGE

    @property
    def is_bounded(self) -> bool:
        return self.startup == SNAPSHOT or not self.streaming

    def next_offset(self, start: Offset | None, limit: ReadLimit) -> Offset:
        """ConnectorError where the changes behind ``start`` are not there any more."""
        if start is None:
            self._begun = self._begun or self._begin()
            if self._begun.exported is not None:
                return self._begun.to_json()
        before = self._begun if start is None else from_json(start)
        assert before is not None
        self.server.release()
        if self.startup == SNAPSHOT:
            return before.to_json()
        table, slot = self._checked(before)
        self.server.let_go(before.lsn, slot.confirmed)
        columns = {name: before.columns.get(name, now) for name, now in self._of(table).items()}
        before = replace(before, exported=None, blocks=0, columns=columns)
        return self._following(before, slot.flushed, limit).to_json()

    def is_empty(self, start: Offset | None, end: Offset) -> bool:
        after = from_json(end)
        if after.exported is not None:
            return start is not None
        before = (0, 0) if start is None else (from_json(start).count, from_json(start).beat)
        return before == (after.count, after.beat)

    def is_finished(self, offset: Offset | None) -> bool:
        return offset is not None and self.is_bounded

    def is_readable(self, start: Offset | None, end: Offset) -> bool:
        """A snapshot lives with the process that holds it; other columns may be declared now."""
        after = from_json(end)
        if after.columns.keys() != {field.name for field in self.columns}:
            return False
        return after.exported is None or start is not None or self.server.holds(after.exported)

    def stopped(self, offset: Offset | None) -> None:
        self.server.close()

    def read(self, spark: SparkSession, start: Offset | None, end: Offset) -> DataFrame:
        return read_frame(spark, self.read_tasks(spark, start, end), self.reader.schema)

    def read_tasks(self, spark: SparkSession, start: Offset | None, end: Offset) -> ReadTasks:
        after = from_json(end)
        parts = self.parts(start, after)
        if start is None:
            return ReadTasks(parts, self.reader.read, None)
        return ReadTasks.of_rows(parts, self.reader.read, after.count - from_json(start).count)

    def read_all(self, spark: SparkSession) -> DataFrame:
        """The table as it is, in one transaction of one task."""
        self._table()
        self.server.close()
        whole = ReadTasks([SnapshotRange()], self.reader.read, None)
        return read_frame(spark, whole, self.reader.schema)

    def extent(self, start: Offset | None, end: Offset) -> str:
        if start is None and from_json(end).exported is not None:
            return "a snapshot"
        count = from_json(end).count - (0 if start is None else from_json(start).count)
        return f"{count:,} changes" if count else ""

    def parts(self, start: Offset | None, end: Position) -> list[ChangeRange | SnapshotRange]:
        """A task each. The columns are those of the table when the job began."""
        if start is None and end.exported is not None:
            return list(snapshot_ranges(end.exported, end.blocks, self.parallelism))
        before = replace(end, lsn=end.begin, count=0) if start is None else from_json(start)
        return [
            ChangeRange(
                table=end.table,
                start=before.lsn,
                end=end.lsn,
                count=before.count,
                columns=end.columns,
                seen=before.seen,
            )
        ]

    # -- beginning --------------------------------------------------------------------------------

    def _begin(self) -> Position:
        table = self._table()
        if self.startup == SNAPSHOT:
            return self._at_snapshot(table, 0)
        self._publish()
        slot = self.server.slot()
        if slot.plugin is None and self.startup != COMMITTED:
            self.server.make_slot()
            slot = self.server.slot()
        check_slot(self.server.capture, slot)
        if self.startup == COMMITTED:
            return self._at(table, slot.confirmed)
        lsn = self.server.settled()
        return self._at_snapshot(table, lsn) if self.startup == INITIAL else self._at(table, lsn)

    def _at(self, table: TableStatus, lsn: int) -> Position:
        return Position(lsn=lsn, begin=lsn, table=table.oid, columns=self._of(table))

    def _at_snapshot(self, table: TableStatus, lsn: int) -> Position:
        held = self.server.hold()
        return replace(self._at(table, lsn), seen=held.seen, exported=held.exported, blocks=held.blocks)

    def _publish(self) -> None:
        found = self.server.publication()
        everything = self.autocreate == ALL_TABLES
        if self.autocreate != DISABLED and (found is None or not (found.has or everything)):
            self.server.publish(everything=everything, exists=found is not None)
        check_publication(self.server.capture, self.server.publication())

    def _table(self) -> TableStatus:
        table = self.server.table()
        by_key, changes = bool(self.reader.keys), not self.is_bounded
        return check_table(self.server.capture, table, self.columns, by_key=by_key, changes=changes)

    def _of(self, table: TableStatus) -> dict[str, tuple[int, int]]:
        return {field.name: table.columns[field.name] for field in self.columns}

    # -- going on ---------------------------------------------------------------------------------

    def _checked(self, before: Position) -> tuple[TableStatus, SlotStatus]:
        """The slot, if it still has what follows ``before``, and the table, if it is the same."""
        capture, slot = self.server.capture, self.server.slot()
        check_slot(capture, slot, before.lsn)
        table = self._table()
        check_unchanged(capture, before, table, self._of(table))
        check_publication(capture, self.server.publication())
        return table, slot

    def _following(self, before: Position, flushed: int, limit: ReadLimit) -> Position:
        """``flushed``: where the server's log ends."""
        if flushed == self._idle:
            return before
        most = self._limit(limit)
        ahead = self._ahead(before, flushed, most)
        end = ahead.end or 0
        if ahead.changes and end > before.lsn:
            self._message = max(1, ahead.size // ahead.messages)
            return before.moved(end, ahead.changes)
        if ahead.messages >= most and end > before.lsn:
            return replace(before.moved(end, 0), beat=before.beat + 1)  # of other tables; more may follow
        self._idle = flushed
        if flushed - before.lsn < _BEAT_BYTES or self.clock() < self._beaten + self.heartbeat:
            return before
        self._beaten = self.clock()
        return replace(before.moved(flushed, 0), beat=before.beat + 1)

    def _ahead(self, before: Position, flushed: int, most: int) -> Ahead:
        """The slot may begin before ``before``, with messages that are known."""
        asked = most
        while True:
            ahead = self.server.count(before.table, flushed, asked)
            if ahead.messages < asked or (ahead.end or 0) > before.lsn:
                return ahead
            asked *= 2

    def _limit(self, limit: ReadLimit) -> int:
        rows = _MOST if limit.rows is None else limit.rows
        return max(1, rows if limit.bytes is None else min(rows, limit.bytes // self._message))


def snapshot_ranges(exported: str, blocks: int, parallelism: int) -> list[SnapshotRange]:
    """Blocks 0 to 9999 for two tasks: up to 5000, and from there on."""
    count = max(1, min(parallelism, blocks // _LEAST_BLOCKS))
    edges = [blocks * i // count for i in range(1, count)]
    lows: list[int | None] = [0 if edges else None, *edges]
    highs: list[int | None] = [*edges, None]
    return [
        SnapshotRange(number=n, exported=exported, low=low, high=high)
        for n, (low, high) in enumerate(zip(lows, highs, strict=True))
    ]
