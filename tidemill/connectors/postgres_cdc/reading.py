"""Reads a snapshot, and ranges of changes, in Spark Python workers, as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np
import psycopg
import pyarrow as pa
from sqlalchemy import Connection

from tidemill.changelog.rowkind import RowKind
from tidemill.connectors.cdc.source import FOLLOWING, change_batch, change_schema
from tidemill.connectors.jdbc.failures import DATABASE_ERRORS
from tidemill.connectors.jdbc.target import quote
from tidemill.connectors.postgres_cdc.messages import Changes, Rows
from tidemill.connectors.postgres_cdc.offsets import ChangeRange, SnapshotRange, lsn_text
from tidemill.connectors.postgres_cdc.server import Capture, is_busy, retried
from tidemill.connectors.postgres_cdc.texts import typed
from tidemill.connectors.postgres_cdc.tuples import ByteBuffer
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import TidemillError
from tidemill.types import logical as t
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_type

DATABASE, SCHEMA, TABLE, TIME = "database_name", "schema_name", "table_name", "op_ts"
METADATA: Mapping[str, t.LogicalType] = {
    **dict.fromkeys((DATABASE, SCHEMA, TABLE), t.STRING.with_nullable(False)),
    TIME: t.LocalZonedTimestampType(precision=3, nullable=False),
}
_FIRST, _MOST, _BYTES = 1_000, 50_000, 16 << 20
"""Messages of the first fetch, of the largest fetch, and about how many bytes a fetch has."""
_CHECK = """
SELECT (confirmed_flush_lsn - '0/0')::bigint, (pg_current_wal_flush_lsn() - '0/0')::bigint
FROM pg_replication_slots WHERE slot_name = %s
"""
_PEEK = """
SELECT data FROM pg_logical_slot_peek_binary_changes(%s, %s::pg_lsn, NULL, 'proto_version', '1',
                                                     'publication_names', %s)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CdcReader:
    """``fields`` of the rows; ``metadata`` maps those that are metadata columns to their keys. ``keys``: as
    in ``Changes``. ``changes``: rows have a column with their kind."""

    capture: Capture
    database: str
    fields: tuple[Field, ...]
    metadata: Mapping[str, str]
    keys: tuple[str, ...]
    changes: bool
    sequence: bool
    limit: int | None = None

    @property
    def schema(self) -> str:
        """As Spark DDL."""
        return change_schema(self.fields, changes=self.changes, sequence=self.sequence)

    @property
    def stored(self) -> tuple[str, ...]:
        """Names of the columns that the server stores."""
        return tuple(f.name for f in self.fields if f.name not in self.metadata)

    def read(self, part: ChangeRange | SnapshotRange) -> Iterator[pa.RecordBatch]:
        """The rows of ``part``. WorkerError if changes are gone or a value does not fit its column."""
        try:
            if isinstance(part, SnapshotRange):
                yield from self._snapshot(part)
            else:
                yield from self._changes(part)
        except DATABASE_ERRORS as e:
            raise WorkerError(self.capture.database_error(e)) from None
        except TidemillError as e:
            raise WorkerError(e) from None
        except pa.ArrowException as e:
            raise WorkerError(self.capture.error(f"a value cannot be read: {e}")) from None

    # -- snapshot -----------------------------------------------------------------------------------

    def _snapshot(self, part: SnapshotRange) -> Iterator[pa.RecordBatch]:
        names = self.stored
        texts = ", ".join(map(_text, names)) or "NULL"
        sql = f"SELECT record_send(ROW({texts})) FROM ONLY {self.capture.quoted}"
        if part.low is not None:
            sql += f" WHERE ctid >= '({part.low},0)'" + (
                "" if part.high is None else f" AND ctid < '({part.high},0)'"
            )
        sql += "" if self.limit is None else f" LIMIT {self.limit}"
        number = part.number << 40
        with self.capture.connect("REPEATABLE READ") as connection:
            if part.exported is not None:
                connection.exec_driver_sql(f"SET TRANSACTION SNAPSHOT '{part.exported}'")
            for records in _fetched(connection, sql):
                buffer, count = ByteBuffer(records), len(records)
                columns = dict(
                    zip(names, map(buffer.texts, buffer.record_send_rows(len(names))), strict=True)
                )
                sequence = np.arange(number, number + count)
                kinds, times = np.full(count, RowKind.INSERT, np.int8), np.zeros(count, np.int64)
                yield self._batch(Rows(sequence, kinds, times, columns))
                number += count

    # -- changes ------------------------------------------------------------------------------------

    def _changes(self, part: ChangeRange) -> Iterator[pa.RecordBatch]:
        capture = self.capture
        changes = Changes(table=part.table, name=capture.name, part=part, columns=self.stored, keys=self.keys)
        connection, first, others = retried(lambda: self._peeked(part), again=is_busy)
        with connection:
            for messages in chain([first], others):
                for rows in changes.rows(messages):
                    yield self._batch(rows, FOLLOWING + 2 * part.count)

    def _peeked(self, part: ChangeRange) -> tuple[Connection, list[bytes], Iterator[list[bytes]]]:
        """A connection, the first messages, and the others. The server has decoded the whole range before it
        sends the first message, so the slot is checked behind that message."""
        capture = self.capture
        values = (capture.slot, lsn_text(part.end), quote(capture.publication))
        connection = capture.connect("READ COMMITTED")
        try:
            pieces = _fetched(connection, _PEEK, values)
            first = next(pieces, [])
            self._check(connection, part)
        except BaseException:
            connection.close()
            raise
        return connection, first, pieces

    def _check(self, connection: Connection, part: ChangeRange) -> None:
        """Raises if the slot does not have the whole range: the server would send the rest without an error.
        A slot never moves back. If it is before the range now, it was so when the server decoded."""
        row = connection.exec_driver_sql(_CHECK, (self.capture.slot,)).first()
        confirmed, flushed = row or (None, 0)
        if confirmed is None or confirmed > part.start or flushed < part.end:
            raise self.capture.error(
                f"the job needs the changes from {lsn_text(part.start)} to {lsn_text(part.end)}, but slot"
                f" '{self.capture.slot}' begins at {'no place' if confirmed is None else lsn_text(confirmed)}"
                f" and the server's log ends at {lsn_text(flushed)}."
            )

    # -- batches ------------------------------------------------------------------------------------

    def _batch(self, rows: Rows, first: int = 0) -> pa.RecordBatch:
        columns = [self._column(field, rows) for field in self.fields]
        kinds = rows.kinds if self.changes else None
        return change_batch(columns, self.fields, kinds, first + rows.sequence if self.sequence else None)

    def _column(self, field: Field, rows: Rows) -> pa.Array:
        key, capture = self.metadata.get(field.name), self.capture
        if key == TIME:
            millis = rows.times - rows.times % 1000
            return pa.array(millis, pa.timestamp("us")).cast(arrow_type(METADATA[TIME]))
        if key is not None:
            name = {DATABASE: self.database, SCHEMA: capture.schema, TABLE: capture.table}[key]
            return pa.repeat(pa.scalar(name), len(rows.kinds))
        try:
            return typed(rows.columns[field.name], field.type)
        except ValueError as e:
            raise capture.error(f"column '{field.name}': {e}") from None


def _text(name: str) -> str:
    """SQL for a column's text as ``pgoutput`` writes it; a cast to text spells some types differently."""
    column = quote(name)
    return f"CASE WHEN {column} IS NOT NULL THEN concat({column}) END"


def _fetched(
    connection: Connection, sql: str, values: tuple[object, ...] | None = None
) -> Iterator[list[bytes]]:
    """The values of the only column, in lists of about ``_BYTES`` bytes."""
    driver_connection = connection.connection.driver_connection
    assert isinstance(driver_connection, psycopg.Connection)
    count = _FIRST
    with driver_connection.cursor("tidemill", binary=True) as cursor:
        cursor.execute(sql.encode(), values)
        while rows := cursor.fetchmany(count):
            payloads = [row[0] for row in rows]
            yield payloads
            size = sum(map(len, payloads))
            count = max(1, min(_MOST, 4 * count, _BYTES * len(payloads) // max(size, 1)))
