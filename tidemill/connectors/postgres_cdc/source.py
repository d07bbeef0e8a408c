"""A table of PostgreSQL and its changes. The first epoch is a snapshot; each later epoch is a range of the
log.

1. *Begin*: the driver publishes the table, and the slot keeps the log from now on. Once all transactions of
   that time are over, the driver exports a snapshot, and holds it while the first epoch reads it.
2. *Plan*: the driver asks the server how many changes are pending, and ends the range with a transaction.
3. *Read*: a task peeks at the slot up to the end of the range. A peek can be repeated. Transactions that the
   snapshot contains are skipped.
4. *Advance*: once the epoch is committed, the next plan moves the slot to the epoch's end.

If a range cannot be read as planned, the job fails and skips nothing. Reasons are a slot that is gone or has
moved on, another table of the same name, and altered columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidemill.connectors.api import Offset, ReadLimit
from tidemill.connectors.cdc.source import BEAT_BYTES, INITIAL, SNAPSHOT, DatabaseCdcSource, most_rows
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
from tidemill.connectors.postgres_cdc.options import ALL_TABLES, COMMITTED, DISABLED
from tidemill.connectors.postgres_cdc.reading import CdcReader
from tidemill.connectors.postgres_cdc.server import PendingChanges, Server, SlotStatus, TableStatus

_MOST = 1_000_000
"""Messages of an epoch without a limit; the server spills them to a file while a task reads them."""
_MESSAGE = 200
"""ByteBuffer that a message is taken to have before any was seen."""
_LEAST_BLOCKS = 2_048
"""Fewer blocks than this are not worth a task of their own."""


@dataclass(slots=True, kw_only=True)
class CdcSource(DatabaseCdcSource[Position]):
    """``autocreate``: whether and how to create the publication."""

    server: Server
    reader: CdcReader
    autocreate: str
    parallelism: int
    _idle: int | None = None
    _message: int = _MESSAGE

    def _position(self, offset: Offset) -> Position:
        return from_json(offset)

    def is_readable(self, start: Offset | None, end: Offset) -> bool:
        """False for a snapshot that this process does not hold, and if other columns are declared now."""
        end_position = from_json(end)
        if end_position.columns.keys() != {field.name for field in self.columns}:
            return False
        return (
            end_position.exported is None
            or start is not None
            or self.server.has_exported(end_position.exported)
        )

    def parts(self, start: Offset | None, end: Position) -> list[ChangeRange | SnapshotRange]:
        """One part per task. The columns are those of the table when the job began."""
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

    def _whole(self) -> SnapshotRange:
        return SnapshotRange()

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
        lsn = self.server.settled_lsn()
        return self._at_snapshot(table, lsn) if self.startup == INITIAL else self._at(table, lsn)

    def _at(self, table: TableStatus, lsn: int) -> Position:
        return Position(lsn=lsn, begin=lsn, table=table.oid, columns=self._of(table))

    def _at_snapshot(self, table: TableStatus, lsn: int) -> Position:
        snapshot = self.server.export_snapshot()
        return replace(
            self._at(table, lsn), seen=snapshot.seen, exported=snapshot.exported, blocks=snapshot.blocks
        )

    def _publish(self) -> None:
        publication = self.server.publication()
        everything = self.autocreate == ALL_TABLES
        if self.autocreate != DISABLED and (publication is None or not (publication.has or everything)):
            self.server.publish(everything=everything, exists=publication is not None)
        check_publication(self.server.capture, self.server.publication())

    def _table(self) -> TableStatus:
        table = self.server.table()
        by_key, changes = bool(self.reader.keys), not self.is_bounded
        return check_table(self.server.capture, table, self.columns, by_key=by_key, changes=changes)

    def _of(self, table: TableStatus) -> dict[str, tuple[int, int]]:
        return {field.name: table.columns[field.name] for field in self.columns}

    # -- going on ---------------------------------------------------------------------------------

    def _next(self, before: Position, limit: ReadLimit) -> Position:
        table, slot = self._checked(before)
        self.server.advance_slot(before.lsn, slot.confirmed)
        columns = {name: before.columns.get(name, now) for name, now in self._of(table).items()}
        before = replace(before, exported=None, blocks=0, columns=columns)
        return self._following(before, slot.flushed, limit)

    def _checked(self, before: Position) -> tuple[TableStatus, SlotStatus]:
        """The table and the slot. Raises if the slot lacks changes behind ``before``, or the table
        changed."""
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
        max_messages = most_rows(limit, _MOST, self._message)
        pending = self._ahead(before, flushed, max_messages)
        end = pending.end or 0
        if pending.changes and end > before.lsn:
            self._message = max(1, pending.size // pending.messages)
            return before.moved(end, pending.changes)
        if pending.messages >= max_messages and end > before.lsn:
            return replace(before.moved(end, 0), beat=before.beat + 1)  # of other tables; more may follow
        self._idle = flushed
        if not self._beats(flushed - before.lsn >= BEAT_BYTES):
            return before
        return replace(before.moved(flushed, 0), beat=before.beat + 1)

    def _ahead(self, before: Position, flushed: int, max_messages: int) -> PendingChanges:
        """Pending changes behind ``before``. The slot may begin earlier, with messages the job has read; then
        the limit is doubled until the pending changes reach past ``before``."""
        limit = max_messages
        while True:
            pending = self.server.pending_changes(before.table, flushed, limit)
            if pending.messages < limit or (pending.end or 0) > before.lsn:
                return pending
            limit *= 2


def snapshot_ranges(exported: str, blocks: int, parallelism: int) -> list[SnapshotRange]:
    """Divides a table of ``blocks`` blocks among at most ``parallelism`` tasks. Example: 10000 blocks and two
    tasks give the ranges [None, 5000) and [5000, None)."""
    count = max(1, min(parallelism, blocks // _LEAST_BLOCKS))
    edges = [blocks * i // count for i in range(1, count)]
    lows: list[int | None] = [0 if edges else None, *edges]
    highs: list[int | None] = [*edges, None]
    return [
        SnapshotRange(number=n, exported=exported, low=low, high=high)
        for n, (low, high) in enumerate(zip(lows, highs, strict=True))
    ]
