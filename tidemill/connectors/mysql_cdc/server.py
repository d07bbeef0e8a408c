"""Queries to the server: the table, its log, and a snapshot with the place in the log where it was taken."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pymysql
from pymysql.constants import FIELD_TYPE
from pymysql.converters import conversions

from tidemill.connectors.mysql_cdc.offsets import Place
from tidemill.connectors.mysql_cdc.values import Column
from tidemill.errors import ConnectorError

Result = TypeVar("Result")
_PATIENCE = 60.0
_PAUSE = 0.1
_AWAY = (2002, 2003, 2006, 2013, 1053, 1040)
"""Errors that may be over in a moment: no connection, a lost one, a server that starts or stops."""
_SYNTAX = 1064
_SETTINGS = "SET time_zone = '+00:00', sql_mode = '', lock_wait_timeout = 60, wait_timeout = 86400"
_COLUMNS = """
SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, CHARACTER_SET_NAME,
       COALESCE(CHARACTER_OCTET_LENGTH, 0), COLUMN_KEY
FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION
"""
_CASCADE = re.compile(
    r"^ +CONSTRAINT `((?:[^`]|``)+)` FOREIGN KEY .* ON (?:DELETE|UPDATE) (?:CASCADE|SET NULL)", re.M
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatus:
    """``cascade``: a foreign key by which the server changes rows and does not log it."""

    kind: str
    engine: str | None
    columns: tuple[Column, ...]
    keys: tuple[str, ...]
    cascade: str | None

    @property
    def shape(self) -> tuple[tuple[str, str], ...]:
        return tuple((c.name, f"{c.text} {c.charset}" if c.charset else c.text) for c in self.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStatus:
    """``end``: where the log ends; None if the server writes none. ``files``: name and size, oldest first.
    ``problem``: a setting with which changes would be lost, and what to set."""

    end: Place | None
    files: tuple[tuple[str, int], ...]
    server: int
    problem: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """A table of a server. All fields are plain values, so that a task can be sent a Capture."""

    hostname: str
    port: int
    username: str
    password: str = field(repr=False)
    database: str
    table: str
    timeout: float

    @property
    def name(self) -> str:
        return f"{self.database}.{self.table}"

    @property
    def quoted(self) -> str:
        return f"{quote(self.database)}.{quote(self.table)}"

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments of a connection. Dates that Python does not have come as texts."""
        decoders = {**conversions, FIELD_TYPE.BIT: bytes}
        return {
            "host": self.hostname,
            "port": self.port,
            "user": self.username,
            "password": self.password,
            "charset": "utf8mb4",
            "connect_timeout": max(1, int(self.timeout)),
            "conv": decoders,
        }

    def connect(self) -> pymysql.Connection[Any]:
        return pymysql.connect(**self.settings, autocommit=True, init_command=_SETTINGS)

    def error(self, reason: str, hint: str = "") -> ConnectorError:
        return ConnectorError(
            f"Database {self.hostname}:{self.port}, table '{self.name}': {reason}", hint=hint
        )

    def database_error(self, error: Exception) -> ConnectorError:
        return self.error(str(error.args[-1]) if error.args else type(error).__name__)


def quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@dataclass(slots=True, kw_only=True)
class Server:
    """The driver's queries, over one connection. If the server has answered before, a query survives that the
    server is away for up to a minute."""

    capture: Capture
    _open: pymysql.Connection[Any] | None = field(default=None, repr=False)
    _answered: bool = False
    _snapshot: tuple[str, pymysql.Connection[Any]] | None = field(default=None, repr=False)

    def table(self) -> TableStatus | None:
        place = (self.capture.database, self.capture.table)
        found = self._rows(
            "SELECT TABLE_TYPE, ENGINE FROM information_schema.TABLES"
            " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
            *place,
        )
        if not found:
            return None
        columns = self._rows(_COLUMNS, *place)
        base = found[0][0] == "BASE TABLE"
        created = self._rows(f"SHOW CREATE TABLE {self.capture.quoted}")[0][1] if base else ""
        cascade = _CASCADE.search(created)
        return TableStatus(
            kind=found[0][0],
            engine=found[0][1],
            columns=tuple(
                Column(name=n, kind=k.lower(), text=t, charset=c, length=int(size))
                for n, k, t, c, size, _ in columns
            ),
            keys=tuple(row[0] for row in columns if row[5] == "PRI"),
            cascade=cascade[1] if cascade else None,
        )

    def log(self) -> LogStatus:
        names = (
            "log_bin",
            "binlog_format",
            "binlog_row_image",
            "binlog_transaction_compression",
            "log_bin_compress",
        )
        listed = ", ".join(f"'{name}'" for name in names)
        settings = {
            str(key).lower(): str(value).upper()
            for key, value in self._rows(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({listed})")
        }
        ((server,),) = self._rows("SELECT @@server_id")
        problem = _problem(settings)
        if problem is not None:
            return LogStatus(end=None, files=(), server=server, problem=problem)
        (status,) = self._ask(_log_end)
        only, ignored = (str(text or "").split(",") for text in status[2:4])
        database = self.capture.database
        if database in ignored or (only != [""] and database not in only):
            problem = f"the server's log leaves out database '{database}' (binlog-do-db, binlog-ignore-db)."
        files = tuple((str(row[0]), int(row[1])) for row in self._rows("SHOW BINARY LOGS"))
        return LogStatus(end=(status[0], int(status[1])), files=files, server=server, problem=problem)

    def end(self) -> Place:
        (status,) = self._ask(_log_end)
        return status[0], int(status[1])

    def take_snapshot(self) -> tuple[str, Place]:
        """Begins a transaction that sees the table as of now. Gives its name, and the place in the log.

        While the table is locked, no transaction has changes of it that are logged and not visible, or the
        other way round: the lock waits for their ends. Other tables do not matter.
        """
        self.release()

        def take(_: object) -> tuple[str, Place]:
            reader, locking = self.capture.connect(), self.capture.connect()
            try:
                _query(locking, f"LOCK TABLES {self.capture.quoted} READ")
                status = _log_end(locking)[0]
                _query(reader, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                _query(reader, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
            except BaseException:
                reader.close()
                raise
            finally:
                locking.close()
            name = uuid.uuid4().hex
            self._snapshot = name, reader
            return name, (status[0], int(status[1]))

        return self._ask(take)

    def snapshot(self, name: str) -> pymysql.Connection[Any] | None:
        held = self._snapshot
        return held[1] if held is not None and held[0] == name else None

    def release(self) -> None:
        held, self._snapshot = self._snapshot, None
        if held is not None:
            _close(held[1])

    def close(self) -> None:
        self.release()
        self._forget()

    def _rows(self, sql: str, *values: object) -> list[Any]:
        return self._ask(lambda open: _query(open, sql, values))

    def _ask(self, question: Callable[[pymysql.Connection[Any]], Result]) -> Result:
        """The answer to ``question``. ConnectorError if the server refuses or stays away."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                self._open = self._open or self.capture.connect()
                answer = question(self._open)
            except (pymysql.Error, OSError) as e:
                self._forget()
                if not (self._answered and is_away(e)) or time.monotonic() > deadline:
                    raise self.capture.database_error(e) from None
                time.sleep(_PAUSE)
                continue
            self._answered = True
            return answer

    def _forget(self) -> None:
        open_, self._open = self._open, None
        if open_ is not None:
            _close(open_)


def is_away(error: Exception) -> bool:
    return isinstance(error, OSError) or (bool(error.args) and error.args[0] in _AWAY)


def _problem(settings: dict[str, str]) -> str | None:
    if settings.get("log_bin") != "ON":
        return "the server writes no binlog. Start it with log_bin."
    if settings.get("binlog_format", "ROW") != "ROW":
        return f"binlog_format is {settings['binlog_format']}. SET GLOBAL binlog_format = 'ROW'"
    if settings.get("binlog_row_image", "FULL") != "FULL":
        return f"binlog_row_image is {settings['binlog_row_image']}. SET GLOBAL binlog_row_image = 'FULL'"
    for name in ("binlog_transaction_compression", "log_bin_compress"):
        if settings.get(name) == "ON":
            return f"{name} is ON. SET GLOBAL {name} = OFF"
    return None


def _log_end(open_: pymysql.Connection[Any]) -> list[Any]:
    try:
        return _query(open_, "SHOW MASTER STATUS")
    except pymysql.err.ProgrammingError as e:
        if e.args[0] != _SYNTAX:
            raise
        return _query(open_, "SHOW BINARY LOG STATUS")


def _query(open_: pymysql.Connection[Any], sql: str, values: tuple[object, ...] = ()) -> list[Any]:
    with open_.cursor() as cursor:
        cursor.execute(sql, values or None)
        return list(cursor.fetchall())


def _close(open_: pymysql.Connection[Any]) -> None:
    with suppress(pymysql.Error, OSError):
        open_.close()
