"""A table of MySQL or MariaDB and its changes. The first epoch is a snapshot; each later epoch is a range of
the binlog in whole transactions.

1. *Begin*: the driver begins a transaction that sees the table as of a place in the log, and holds it while
   the first epoch reads it.
2. *Plan*: the driver reads the log from there, counts the changes, and ends the range with a transaction.
3. *Read*: a task reads the same range; the log stays until the server purges it.

If a range cannot be read as planned, the job fails and skips nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import pyarrow as pa
import pymysql

from tidemill.connectors.api import Offset, ReadLimit
from tidemill.connectors.cdc.source import BEAT_BYTES, INITIAL, SNAPSHOT, DatabaseCdcSource, most_rows
from tidemill.connectors.mysql_cdc.binlog import transactions
from tidemill.connectors.mysql_cdc.fitting import check_log, check_table, check_unchanged
from tidemill.connectors.mysql_cdc.offsets import (
    ChangeRange,
    Place,
    Position,
    SnapshotPart,
    from_json,
    order,
)
from tidemill.connectors.mysql_cdc.options import EARLIEST, SPECIFIC
from tidemill.connectors.mysql_cdc.reading import CdcReader
from tidemill.connectors.mysql_cdc.server import LogStatus, Server, TableStatus, is_away

_MOST = 100_000
"""Rows of an epoch without a limit."""
_ROW = 200
"""Bytes that a row is taken to have."""
_FIRST = 4
"""Where the events of a file begin."""
_PATIENCE, _PAUSE = 60.0, 0.2


@dataclass(slots=True, kw_only=True)
class CdcSource(DatabaseCdcSource[Position]):
    """``specific``: where to begin with specific-offset."""

    server: Server
    reader: CdcReader
    keys: tuple[str, ...]
    specific: Place | None
    _clear: tuple[Place, Place] | None = None

    def _position(self, offset: Offset) -> Position:
        return from_json(offset)

    def is_readable(self, start: Offset | None, end: Offset) -> bool:
        """False for a snapshot that this process does not hold."""
        name = from_json(end).snapshot
        return name is None or start is not None or self.server.snapshot(name) is not None

    def parts(self, start: Offset | None, end: Position) -> list[ChangeRange | SnapshotPart]:
        """One part for each task."""
        if start is None and end.snapshot is not None:
            return self._snapshot_parts(end.snapshot)
        count = 0 if start is None else from_json(start).count
        return [ChangeRange(start=end.begin, end=end.place, count=count, columns=end.columns)]

    def _whole(self) -> SnapshotPart:
        return SnapshotPart()

    def _snapshot_parts(self, name: str) -> list[ChangeRange | SnapshotPart]:
        """The server has no snapshot for several connections, so the driver reads the one it holds."""
        held, capture = self.server.snapshot(name), self.server.capture
        if held is None:
            raise capture.error("the snapshot is not held any more.", "Start the job again.")
        parts: list[ChangeRange | SnapshotPart] = []
        number = 0
        try:
            for batch in self.reader.snapshot(held):
                sink = pa.BufferOutputStream()
                options = pa.ipc.IpcWriteOptions(compression="zstd")
                with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
                    writer.write(batch)
                parts.append(SnapshotPart(number=number, stream=sink.getvalue().to_pybytes()))
                number += len(batch)
        except (pymysql.Error, OSError) as e:
            raise capture.database_error(e) from None
        return parts

    # -- beginning --------------------------------------------------------------------------------

    def _begin(self) -> Position:
        table = self._table()
        if self.startup == SNAPSHOT:
            name, place = self.server.take_snapshot()
            return self._at(table, place, 0, name)
        log = self.server.log()
        check_log(self.server.capture, log)
        assert log.end is not None
        if self.startup == INITIAL:
            name, place = self.server.take_snapshot()
            return self._at(table, place, log.server, name)
        place = log.end
        if self.startup == EARLIEST:
            place = log.files[0][0], _FIRST
        elif self.startup == SPECIFIC:
            assert self.specific is not None
            place = self.specific
        begun = self._at(table, place, log.server)
        check_log(self.server.capture, log, begun)
        return begun

    def _at(self, table: TableStatus, place: Place, server: int, snapshot: str | None = None) -> Position:
        file, pos = place
        return Position(
            file=file,
            pos=pos,
            begin_file=file,
            begin_pos=pos,
            server=server,
            columns=table.shape,
            snapshot=snapshot,
        )

    def _table(self) -> TableStatus:
        return check_table(self.server.capture, self.server.table(), self.columns, self.keys)

    # -- going on ---------------------------------------------------------------------------------

    def _next(self, before: Position, limit: ReadLimit) -> Position:
        before = replace(before, snapshot=None)
        if self._clear is not None and self._clear[0] == before.place and self.server.end() == self._clear[1]:
            return before
        table, log = self._table(), self.server.log()
        check_log(self.server.capture, log, before)
        check_unchanged(self.server.capture, before, table)
        return self._following(before, table, log, limit)

    def _following(self, before: Position, table: TableStatus, log: LogStatus, limit: ReadLimit) -> Position:
        assert log.end is not None
        most = most_rows(limit, _MOST, _ROW)
        begin = before.place
        if self._clear is not None and self._clear[0] == before.place:
            begin = self._clear[1]
        count, end = self._counted(table, begin, log.end, most)
        after = replace(before, begin_file=begin[0], begin_pos=begin[1], file=end[0], pos=end[1])
        if count:
            return replace(after, count=before.count + count)
        self._clear = before.place, end
        far = end[0] != before.file or end[1] - before.pos >= BEAT_BYTES
        if not self._beats(far):
            return before
        return replace(after, begin_file=end[0], begin_pos=end[1], beat=before.beat + 1)

    def _counted(self, table: TableStatus, begin: Place, end: Place, most: int) -> tuple[int, Place]:
        """The number of rows from ``begin`` to the end of the first transaction with which they are ``most``,
        and that place. An answer survives that the server is away for up to a minute."""
        deadline = time.monotonic() + _PATIENCE
        capture = self.server.capture
        while True:
            count = 0
            try:
                for transaction in transactions(capture, table.columns, begin, end):
                    count += len(transaction.rows)
                    if count >= most:
                        return count, transaction.end
            except (pymysql.Error, OSError) as e:
                if not is_away(e) or time.monotonic() > deadline:
                    raise capture.database_error(e) from None
                time.sleep(_PAUSE)
                continue
            return count, max(begin, end, key=order)
