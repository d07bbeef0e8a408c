"""Queries to the server: the table and its slot, a snapshot, and how many changes are pending.

Only one connection at a time can use a slot. If another connection has it, such as the connection of a killed
task, a query is retried for up to a minute.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from psycopg import errors
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from tidemill.connectors.jdbc.failures import DATABASE_ERRORS, failure, is_fleeting
from tidemill.connectors.jdbc.target import quote
from tidemill.connectors.jdbc.urls import Database
from tidemill.connectors.postgres_cdc.offsets import Columns, Seen, lsn_text
from tidemill.errors import ConnectorError

Result = TypeVar("Result")
SETTINGS = (
    "SET client_encoding = 'UTF8'; SET datestyle = 'ISO, YMD'; SET timezone = 'UTC';"
    " SET bytea_output = 'hex';"
    " SET extra_float_digits = 3; SET intervalstyle = 'postgres'; SET statement_timeout = 0;"
    " SET idle_in_transaction_session_timeout = 0; SET tcp_keepalives_idle = 60;"
    " SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 6"
)
"""Settings of every connection, by which the server writes values in one way. With keepalives the server
notices that a client's machine has gone, and frees its snapshot and slot."""
PLUGIN = "pgoutput"
_PATIENCE = 60.0
_PAUSE = 0.1
_TABLE = """
SELECT c.oid::bigint, c.relkind, c.relpersistence, c.relreplident,
       coalesce((SELECT jsonb_object_agg(attname, jsonb_build_array(attnum, atttypid::bigint,
                     coalesce(nullif(t.typbasetype, 0), t.oid)::bigint, format_type(atttypid, atttypmod)))
                 FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
                 WHERE a.attrelid = c.oid AND attnum > 0 AND NOT attisdropped), '{}')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s
"""
_SLOT = """
SELECT s.plugin, s.database = current_database(), (s.confirmed_flush_lsn - '0/0')::bigint,
       to_jsonb(s) ->> 'wal_status', (pg_current_wal_flush_lsn() - '0/0')::bigint
FROM (SELECT 1) one LEFT JOIN pg_replication_slots s ON s.slot_name = %s
"""
_PUBLICATION = """
SELECT p.pubinsert AND p.pubupdate AND p.pubdelete, t.tablename IS NOT NULL, to_jsonb(t) ->> 'rowfilter'
FROM pg_publication p LEFT JOIN pg_publication_tables t
  ON t.pubname = p.pubname AND t.schemaname = %s AND t.tablename = %s WHERE p.pubname = %s
"""
_COUNT = f"""
SELECT count(*) FILTER (WHERE get_byte(data, 0) IN ({", ".join(str(ord(kind)) for kind in "IUD")})
                          AND substr(data, 2, 4) = oidsend(%s::oid) OR get_byte(data, 0) = {ord("T")}),
       count(*), coalesce(sum(octet_length(data)), 0)::bigint,
       (max(lsn) FILTER (WHERE get_byte(data, 0) = {ord("C")}) - '0/0')::bigint
FROM pg_logical_slot_peek_binary_changes(%s, %s::pg_lsn, %s, 'proto_version', '1', 'publication_names', %s)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatus:
    """``kind``, ``persistence`` and ``identity`` as in ``pg_class``. ``types``: by column name, the oid of
    the type (of a domain, that of its base type) and the type's text."""

    oid: int
    kind: str
    persistence: str
    identity: str
    columns: Columns
    types: dict[str, tuple[int, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotStatus:
    """``plugin`` is None if there is no such slot. ``here``: the slot is of this database. ``confirmed``: the
    slot's position. ``flushed``: where the server's log ends."""

    plugin: str | None
    here: bool
    confirmed: int
    lost: bool
    flushed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationStatus:
    """``has``: the publication contains the table. ``whole``: it publishes inserts, updates and deletes of
    all rows."""

    whole: bool
    has: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingChanges:
    """``changes`` of the table among ``messages`` of ``size`` bytes. ``end``: where the last transaction
    ends, None if there is no transaction."""

    changes: int
    messages: int
    size: int
    end: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedSnapshot:
    """A snapshot that other connections can use while ``connection`` is open. ``exported``: its name;
    ``seen``: the transactions in it; ``blocks``: the size of the table."""

    connection: Connection
    exported: str
    seen: Seen
    blocks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """A table, and the slot and publication by which its changes are read. All fields are plain values, so
    that a task can be sent a Capture."""

    database: Database
    schema: str
    table: str
    slot: str
    publication: str

    @property
    def name(self) -> str:
        return f"{self.schema}.{self.table}"

    @property
    def place(self) -> tuple[object, ...]:
        """Identifies the slot among all slots of all servers."""
        return (*self.database.place, self.slot)

    @property
    def quoted(self) -> str:
        return f"{quote(self.schema)}.{quote(self.table)}"

    def connect(self, isolation: str = "AUTOCOMMIT") -> Connection:
        """A new connection with ``SETTINGS``."""
        options: dict[str, Any] = {"isolation_level": isolation}
        connection = self.database.engine.connect()
        connection.exec_driver_sql(SETTINGS)
        connection.commit()
        return connection.execution_options(**options)

    def database_error(self, error: Exception) -> ConnectorError:
        return failure(error, self.database, self.name)

    def error(self, reason: str, hint: str = "") -> ConnectorError:
        return ConnectorError(f"Database {self.database.redacted}, table '{self.name}': {reason}", hint=hint)


def retried(ask: Callable[[], Result], *, again: Callable[[Exception], bool]) -> Result:
    """The result of ``ask()``. After an error for which ``again(error)`` is true, ``ask`` is retried for up
    to a minute."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            return ask()
        except DATABASE_ERRORS as e:
            if not again(e) or time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE)


def is_busy(error: Exception) -> bool:
    """Whether another connection has the slot now."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return isinstance(cause, errors.ObjectInUse)


@dataclass(slots=True, kw_only=True, weakref_slot=True, eq=False)
class Server:
    """The driver's queries, over one connection. If the server has answered before, a query survives that the
    server is away for up to a minute."""

    capture: Capture
    clock: Callable[[], float] = time.monotonic
    _visited: float | None = None
    _reached: int = 0
    _open: Connection | None = field(default=None, repr=False)
    _answered: bool = False
    _snapshots: list[ExportedSnapshot] = field(default_factory=list, repr=False)

    def table(self) -> TableStatus | None:
        capture = self.capture
        row = self._first(_TABLE, capture.schema, capture.table)
        if row is None:
            return None
        oid, kind, persistence, identity, columns = row
        return TableStatus(
            oid=oid,
            kind=_letter(kind),
            persistence=_letter(persistence),
            identity=_letter(identity),
            columns={name: (number, oid_) for name, (number, oid_, _, _) in columns.items()},
            types={name: (base, text) for name, (_, _, base, text) in columns.items()},
        )

    def slot(self) -> SlotStatus:
        plugin, here, confirmed, status, flushed = self._one(_SLOT, self.capture.slot)
        return SlotStatus(
            plugin=plugin,
            here=bool(here),
            confirmed=confirmed or 0,
            lost=status == "lost",
            flushed=flushed,
        )

    def publication(self) -> PublicationStatus | None:
        capture = self.capture
        row = self._first(_PUBLICATION, capture.schema, capture.table, capture.publication)
        return None if row is None else PublicationStatus(whole=bool(row[0]) and row[2] is None, has=row[1])

    def publish(self, *, everything: bool, exists: bool) -> None:
        """Creates the publication, or adds the table to it if it ``exists``."""
        name = quote(self.capture.publication)
        scope = "FOR ALL TABLES" if everything else f"FOR TABLE {self.capture.quoted}"
        create_sql = f"CREATE PUBLICATION {name} {scope}"
        self._run(
            _plain(f"ALTER PUBLICATION {name} ADD TABLE {self.capture.quoted}" if exists else create_sql)
        )

    def make_slot(self) -> None:
        """Creates the slot. The server first waits for the end of all open transactions."""
        self._run("SELECT pg_create_logical_replication_slot(%s, %s)", self.capture.slot, PLUGIN)

    def settled_lsn(self) -> int:
        """The end of the server's log at the time of the call; returns once all transactions of that time
        end.

        The slot then has all changes of later transactions, and a snapshot taken now has all earlier ones. No
        transaction is between its commit record and its end, or began before the table was published.
        """
        (flushed,) = self._one("SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint")
        (after,) = self._one("SELECT txid_snapshot_xmax(txid_current_snapshot())")
        deadline = time.monotonic() + _PATIENCE
        while True:
            (oldest,) = self._one("SELECT txid_snapshot_xmin(txid_current_snapshot())")
            if oldest >= after:
                return int(flushed)
            if time.monotonic() > deadline:
                raise self.capture.error(
                    f"a transaction has been open for {_PATIENCE:.0f} s (the oldest is number {oldest}); the"
                    " job can begin when it is over.",
                    hint="SELECT pid, query FROM pg_stat_activity WHERE backend_xid IS NOT NULL shows it.",
                )
            time.sleep(_PAUSE)

    def export_snapshot(self) -> ExportedSnapshot:
        """A new exported snapshot of the table. A lock keeps others from rewriting the table meanwhile."""
        self.release()
        connection = self._ask(lambda _: self.capture.connect("REPEATABLE READ"))
        weakref.finalize(self, _close, connection)
        try:
            connection.exec_driver_sql(_plain(f"LOCK TABLE {self.capture.quoted} IN ACCESS SHARE MODE"))
            row = connection.exec_driver_sql(
                "SELECT pg_export_snapshot(), txid_current_snapshot()::text,"
                " current_setting('block_size')::bigint,"
                " current_setting('server_version_num')::int"
            ).one()
            exported, visible, block_size, version = row
            size, until = connection.exec_driver_sql(
                "SELECT pg_relation_size(%s::regclass), (pg_current_wal_insert_lsn() - '0/0')::bigint",
                (self.capture.quoted,),
            ).one()
        except DATABASE_ERRORS as e:
            _close(connection)
            raise self.capture.database_error(e) from None
        blocks = size // block_size if version >= _RANGES else 0
        seen = Seen(snapshot=visible, until=until)
        snapshot = ExportedSnapshot(connection=connection, exported=exported, seen=seen, blocks=blocks)
        self._snapshots.append(snapshot)
        return snapshot

    def has_exported(self, exported: str | None) -> bool:
        return any(snapshot.exported == exported for snapshot in self._snapshots)

    def release(self) -> None:
        while self._snapshots:
            _close(self._snapshots.pop().connection)

    def pending_changes(self, table: int, upto: int, most: int) -> PendingChanges:
        """Counts the slot's messages and, among them, the changes of the table with the oid ``table``. The
        server stops at the log position ``upto``, or after the transaction with message number ``most``."""
        capture = self.capture
        values = table, capture.slot, lsn_text(upto), most, quote(capture.publication)
        changes, messages, size, end = self._one(_COUNT, *values)
        return PendingChanges(changes=changes, messages=messages, size=size, end=end)

    def advance_slot(self, lsn: int, confirmed: int) -> None:
        """Moves the slot from ``confirmed`` to ``lsn``, so that the server can remove the log before it.

        Tables of a job may share a slot, and are planned in turn. The slot moves no further than the table
        that has read least, among the tables planned since this table's previous plan.
        """
        since, self._visited, self._reached = self._visited, self.clock(), lsn
        _servers.add(self)
        slot = self.capture.place
        sharing = [s for s in list(_servers) if s.capture.place == slot and s._visited is not None]
        least = min(s._reached for s in sharing if since is None or (s._visited or since) >= since)
        if since is not None and least > confirmed:
            self._run(
                "SELECT pg_replication_slot_advance(%s, %s::pg_lsn)", self.capture.slot, lsn_text(least)
            )

    def close(self) -> None:
        self.release()
        self._forget()

    def _first(self, sql: str, *values: object) -> Any:
        """The first row of the result; None if it is empty."""
        return self._ask(lambda open: open.exec_driver_sql(sql, values).first())

    def _one(self, sql: str, *values: object) -> Any:
        return self._ask(lambda open: open.exec_driver_sql(sql, values).one())

    def _run(self, sql: str, *values: object) -> None:
        self._ask(lambda open: open.exec_driver_sql(sql, values))

    def _ask(self, question: Callable[[Connection], Result]) -> Result:
        """The answer to ``question``, with retries. ConnectorError if the server refuses or stays away."""

        def ask() -> Result:
            try:
                if self._open is None:
                    self._open = self.capture.connect()
                    weakref.finalize(self, _close, self._open)
                answer = question(self._open)
            except DATABASE_ERRORS:
                self._forget()
                raise
            self._answered = True
            return answer

        try:
            return retried(ask, again=lambda e: is_busy(e) or (self._answered and is_fleeting(e)))
        except DATABASE_ERRORS as e:
            raise self.capture.database_error(e) from None

    def _forget(self) -> None:
        connection, self._open = self._open, None
        if connection is not None:
            _close(connection)


_servers: weakref.WeakSet[Server] = weakref.WeakSet()
"""The servers of this process that have planned an epoch."""
_RANGES = 140_000
"""The first server version that reads a range of blocks without a scan of the whole table."""


def _close(connection: Connection) -> None:
    """Closes ``connection``, even if its server has gone."""
    with suppress(*DATABASE_ERRORS):
        connection.close()


def _plain(sql: str) -> str:
    """``sql`` with % escaped: the driver would take a % for a placeholder."""
    return sql.replace("%", "%%")


def _letter(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
