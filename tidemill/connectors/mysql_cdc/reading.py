"""Reads a snapshot, and ranges of changes, in Spark Python workers, as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pymysql
from pymysql.cursors import SSCursor

from tidemill.changelog.rowkind import RowKind
from tidemill.connectors.cdc.source import FOLLOWING, change_batch, change_schema
from tidemill.connectors.mysql_cdc.binlog import transactions
from tidemill.connectors.mysql_cdc.offsets import ChangeRange, SnapshotPart
from tidemill.connectors.mysql_cdc.server import Capture, Server, quote
from tidemill.connectors.mysql_cdc.values import Column, typed
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import TidemillError
from tidemill.types import logical as t
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_type

DATABASE, TABLE, TIME = "database_name", "table_name", "op_ts"
METADATA: Mapping[str, t.LogicalType] = {
    **dict.fromkeys((DATABASE, TABLE), t.STRING.with_nullable(False)),
    TIME: t.LocalZonedTimestampType(precision=3, nullable=False),
}
_ROWS = 20_000
"""Of a batch."""
_EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class CdcReader:
    """``fields`` of the rows; ``metadata`` maps those that are metadata columns to their keys. ``changes``:
    rows have a column with their kind. ``zone``: of wall-clock times."""

    capture: Capture
    fields: tuple[Field, ...]
    metadata: Mapping[str, str]
    changes: bool
    sequence: bool
    zone: str
    limit: int | None = None

    @property
    def schema(self) -> str:
        return change_schema(self.fields, changes=self.changes, sequence=self.sequence)

    def read(self, part: ChangeRange | SnapshotPart) -> Iterator[pa.RecordBatch]:
        """The rows of ``part``. WorkerError if changes are gone or a value does not fit its column."""
        try:
            if isinstance(part, ChangeRange):
                yield from self._changes(part)
            elif part.stream is not None:
                yield from pa.ipc.open_stream(part.stream)
            else:
                with self.capture.connect() as connection:
                    yield from self.snapshot(connection)
        except (pymysql.Error, OSError) as e:
            raise WorkerError(self.capture.database_error(e)) from None
        except TidemillError as e:
            raise WorkerError(e) from None

    def snapshot(self, connection: pymysql.Connection[Any]) -> Iterator[pa.RecordBatch]:
        """The table as ``connection`` sees it."""
        columns, number = self._columns(), 0
        selected = ", ".join(map(_selected, columns.values())) or "NULL"
        sql = f"SELECT {selected} FROM {self.capture.quoted}"
        sql += "" if self.limit is None else f" LIMIT {self.limit}"
        with connection.cursor(SSCursor) as cursor:
            cursor.execute(sql)
            while rows := cursor.fetchmany(_ROWS):
                values = dict(zip(columns, zip(*rows, strict=True), strict=False))
                count = len(rows)
                kinds, times = [RowKind.INSERT] * count, [_EPOCH] * count
                yield self._batch(columns, values, kinds, times, number)
                number += count

    def _changes(self, part: ChangeRange) -> Iterator[pa.RecordBatch]:
        table = Server(capture=self.capture)
        try:
            status = table.table()
        finally:
            table.close()
        if status is None or status.shape != part.columns:
            raise self.capture.error("it was altered while its changes were read.")
        columns = {c.name: c for c in status.columns}
        number = FOLLOWING + part.count
        kinds: list[RowKind] = []
        rows: list[dict[str, Any]] = []
        times: list[datetime] = []
        for transaction in transactions(self.capture, status.columns, part.start, part.end):
            moment = datetime.fromtimestamp(transaction.time, UTC)
            for kind, row in transaction.rows:
                kinds.append(kind)
                rows.append(row)
                times.append(moment)
            if len(rows) >= _ROWS:
                yield self._rows(columns, rows, kinds, times, number)
                number += len(rows)
                kinds, rows, times = [], [], []
        if rows:
            yield self._rows(columns, rows, kinds, times, number)

    def _rows(
        self,
        columns: Mapping[str, Column],
        rows: list[dict[str, Any]],
        kinds: list[RowKind],
        times: list[datetime],
        number: int,
    ) -> pa.RecordBatch:
        values = {f.name: [row[f.name] for row in rows] for f in self.fields if f.name not in self.metadata}
        return self._batch(columns, values, kinds, times, number)

    def _columns(self) -> dict[str, Column]:
        """The columns to read, as they are now."""
        server = Server(capture=self.capture)
        try:
            status = server.table()
        finally:
            server.close()
        found = {c.name: c for c in status.columns} if status is not None else {}
        try:
            return {f.name: found[f.name] for f in self.fields if f.name not in self.metadata}
        except KeyError as e:
            raise self.capture.error(f"it has no column {e}.") from None

    def _batch(
        self,
        columns: Mapping[str, Column],
        values: Mapping[str, Sequence[Any]],
        kinds: list[RowKind],
        times: list[datetime],
        number: int,
    ) -> pa.RecordBatch:
        arrays = [self._array(field, columns, values, times) for field in self.fields]
        count = len(kinds)
        return (
            change_batch(
                arrays,
                self.fields,
                [int(kind) for kind in kinds] if self.changes else None,
                range(number, number + count) if self.sequence else None,
            )
            if arrays or self.changes or self.sequence
            else _empty(count)
        )

    def _array(
        self,
        field: Field,
        columns: Mapping[str, Column],
        values: Mapping[str, Sequence[Any]],
        times: list[datetime],
    ) -> pa.Array:
        key = self.metadata.get(field.name)
        if key == TIME:
            return pa.array(times, arrow_type(METADATA[TIME]))
        if key is not None:
            name = {DATABASE: self.capture.database, TABLE: self.capture.table}[key]
            return pa.repeat(pa.scalar(name), len(times))
        try:
            return typed(values[field.name], columns[field.name], field.type, self.zone)
        except ValueError as e:
            raise self.capture.error(f"column '{field.name}': {e}") from None


def _empty(count: int) -> pa.RecordBatch:
    """Rows without columns."""
    return pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))


def _selected(column: Column) -> str:
    """SQL for a column's value as the log has it: a FLOAT's text would be shortened, and texts are bytes."""
    name = quote(column.name)
    if column.kind == "float":
        return f"{name} * 1e0"
    return (
        f"CAST({name} AS BINARY)"
        if column.charset is not None and column.kind not in ("enum", "set")
        else name
    )
