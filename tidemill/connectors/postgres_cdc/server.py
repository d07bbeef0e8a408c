"""What is asked of the server: the table and its slot, a snapshot, how far the changes go.

A slot can be used by one connection at a time: a question waits while another one has it, such as that of a
task that was killed, until a minute has passed.
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
from tidemill.connectors.postgres_cdc.offsets import Columns, Seen, shown
from tidemill.errors import ConnectorError

Found = TypeVar("Found")
SETTINGS = (
    "SET client_encoding = 'UTF8'; SET datestyle = 'ISO, YMD'; SET timezone = 'UTC';"
    " SET bytea_output = 'hex';"
    " SET extra_float_digits = 3; SET intervalstyle = 'postgres'; SET statement_timeout = 0;"
    " SET idle_in_transaction_session_timeout = 0; SET tcp_keepalives_idle = 60;"
    " SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 6"
)
"""How the server writes values, in all connections alike. It finds out when a client's machine has gone: a
snapshot and a slot are free then."""
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
    """``kind``, ``persistence`` and ``identity`` as in ``pg_class``; ``types``: of columns by name, without
    domains, and as text."""

    oid: int
    kind: str
    persistence: str
    identity: str
    columns: Columns
    types: dict[str, tuple[int, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotStatus:
    """``plugin`` is None if there is no such slot. ``flushed``: where the server's log ends."""

    plugin: str | None
    here: bool
    confirmed: int
    lost: bool
    flushed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationStatus:
    """``whole``: inserts, updates and deletes of all rows of the table, if it ``has`` the table."""

    whole: bool
    has: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """``changes`` of the table among ``messages`` of ``size`` bytes; ``end``: of the last transaction, None
    for none."""

    changes: int
    messages: int
    size: int
    end: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A snapshot that others can take part in while ``open`` is: its name, what it holds, and how many blocks
    the table has."""

    open: Connection
    exported: str
    seen: Seen
    blocks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """A table, and the slot and publication by which its changes are read; plain values."""

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
        """Of the slot."""
        return (*self.database.place, self.slot)

    @property
    def quoted(self) -> str:
        return f"{quote(self.schema)}.{quote(self.table)}"

    def connect(self, isolation: str = "AUTOCOMMIT") -> Connection:
        """With the settings by which values are written."""
        options: dict[str, Any] = {"isolation_level": isolation}
        open = self.database.engine.connect()
        open.exec_driver_sql(SETTINGS)
        open.commit()
        return open.execution_options(**options)

    def failed(self, error: Exception) -> ConnectorError:
        return failure(error, self.database, self.name)

    def wrong(self, what: str, hint: str = "") -> ConnectorError:
        return ConnectorError(f"Database {self.database.shown}, table '{self.name}': {what}", hint=hint)


def patiently(ask: Callable[[], Found], *, again: Callable[[Exception], bool]) -> Found:
    """What ``ask`` gives, which is asked ``again`` after some errors until a minute has passed."""
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
    """The driver's questions, over one connection. Once it has answered, it may go away for a minute."""

    capture: Capture
    clock: Callable[[], float] = time.monotonic
    _visited: float | None = None
    _reached: int = 0
    _open: Connection | None = field(default=None, repr=False)
    _answered: bool = False
    _held: list[Held] = field(default_factory=list, repr=False)

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
            columns={name: (place, own) for name, (place, own, _, _) in columns.items()},
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
        """Makes the publication, or adds the table to it."""
        name = quote(self.capture.publication)
        what = "FOR ALL TABLES" if everything else f"FOR TABLE {self.capture.quoted}"
        made = f"CREATE PUBLICATION {name} {what}"
        self._run(_plain(f"ALTER PUBLICATION {name} ADD TABLE {self.capture.quoted}" if exists else made))

    def make_slot(self) -> None:
        """Waits for the transactions that are open."""
        self._run("SELECT pg_create_logical_replication_slot(%s, %s)", self.capture.slot, PLUGIN)

    def settled(self) -> int:
        """Where the server's log ended when this was called, after all transactions of then are over.

        Of later ones the slot gives all changes, and a snapshot that is taken now has all earlier ones: none
        is between its commit record and its end, or began before the table was published.
        """
        (flushed,) = self._one("SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint")
        (after,) = self._one("SELECT txid_snapshot_xmax(txid_current_snapshot())")
        deadline = time.monotonic() + _PATIENCE
        while True:
            (oldest,) = self._one("SELECT txid_snapshot_xmin(txid_current_snapshot())")
            if oldest >= after:
                return int(flushed)
            if time.monotonic() > deadline:
                raise self.capture.wrong(
                    f"a transaction has been open for {_PATIENCE:.0f} s (the oldest is number {oldest}); the"
                    " job can begin when it is over.",
                    hint="SELECT pid, query FROM pg_stat_activity WHERE backend_xid IS NOT NULL shows it.",
                )
            time.sleep(_PAUSE)

    def hold(self) -> Held:
        """A snapshot of the table, as long as the table stays where it is: nobody can rewrite it now."""
        self.release()
        open = self._ask(lambda _: self.capture.connect("REPEATABLE READ"))
        weakref.finalize(self, _close, open)
        try:
            open.exec_driver_sql(_plain(f"LOCK TABLE {self.capture.quoted} IN ACCESS SHARE MODE"))
            row = open.exec_driver_sql(
                "SELECT pg_export_snapshot(), txid_current_snapshot()::text,"
                " current_setting('block_size')::bigint,"
                " current_setting('server_version_num')::int"
            ).one()
            exported, snapshot, block, version = row
            size, until = open.exec_driver_sql(
                "SELECT pg_relation_size(%s::regclass), (pg_current_wal_insert_lsn() - '0/0')::bigint",
                (self.capture.quoted,),
            ).one()
        except DATABASE_ERRORS as e:
            _close(open)
            raise self.capture.failed(e) from None
        blocks = size // block if version >= _RANGES else 0
        held = Held(open=open, exported=exported, seen=Seen(snapshot=snapshot, until=until), blocks=blocks)
        self._held.append(held)
        return held

    def holds(self, exported: str | None) -> bool:
        return any(held.exported == exported for held in self._held)

    def release(self) -> None:
        while self._held:
            _close(self._held.pop().open)

    def count(self, table: int, upto: int, most: int) -> Ahead:
        """What the slot gives, with changes of the server's ``table``, in whole transactions: up to the
        log's place ``upto``, or to the end of the transaction with message number ``most``."""
        capture = self.capture
        values = table, capture.slot, shown(upto), most, quote(capture.publication)
        changes, messages, size, end = self._one(_COUNT, *values)
        return Ahead(changes=changes, messages=messages, size=size, end=end)

    def let_go(self, lsn: int, confirmed: int) -> None:
        """The server may forget what is before ``lsn``; ``confirmed`` is what it may forget now.

        Tables of a job may share a slot, and are planned in turn: what another table has not read, as of its
        last plan since the one before this one, is kept.
        """
        since, self._visited, self._reached = self._visited, self.clock(), lsn
        _servers.add(self)
        place = self.capture.place
        sharing = [s for s in list(_servers) if s.capture.place == place and s._visited is not None]
        least = min(s._reached for s in sharing if since is None or (s._visited or since) >= since)
        if since is not None and least > confirmed:
            self._run("SELECT pg_replication_slot_advance(%s, %s::pg_lsn)", self.capture.slot, shown(least))

    def close(self) -> None:
        self.release()
        self._forget()

    def _first(self, sql: str, *values: object) -> Any:
        """None for no row."""
        return self._ask(lambda open: open.exec_driver_sql(sql, values).first())

    def _one(self, sql: str, *values: object) -> Any:
        return self._ask(lambda open: open.exec_driver_sql(sql, values).one())

    def _run(self, sql: str, *values: object) -> None:
        self._ask(lambda open: open.exec_driver_sql(sql, values))

    def _ask(self, question: Callable[[Connection], Found]) -> Found:
        """ConnectorError for what the server says."""

        def ask() -> Found:
            try:
                if self._open is None:
                    self._open = self.capture.connect()
                    weakref.finalize(self, _close, self._open)
                found = question(self._open)
            except DATABASE_ERRORS:
                self._forget()
                raise
            self._answered = True
            return found

        try:
            return patiently(ask, again=lambda e: is_busy(e) or (self._answered and is_fleeting(e)))
        except DATABASE_ERRORS as e:
            raise self.capture.failed(e) from None

    def _forget(self) -> None:
        open, self._open = self._open, None
        if open is not None:
            _close(open)


_servers: weakref.WeakSet[Server] = weakref.WeakSet()
"""Those of this process that have planned."""
_RANGES = 140_000
"""The first version that reads a range of blocks alone."""


def _close(open: Connection) -> None:
    """Of a server that may have gone."""
    with suppress(*DATABASE_ERRORS):
        open.close()


def _plain(sql: str) -> str:
    """In which the driver finds no places of values."""
    return sql.replace("%", "%%")


def _letter(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
