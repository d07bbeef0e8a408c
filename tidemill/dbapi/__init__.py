"""Python's DB-API 2.0 (PEP 249) over a gateway's REST protocol.

    import tidemill.dbapi
    connection = tidemill.dbapi.connect("http://127.0.0.1:8083")
    cursor = connection.cursor()
    cursor.execute("SELECT id, name FROM t WHERE id > ?", (7,))
    rows = cursor.fetchall()

A connection is a session of the gateway, in batch mode unless its properties say otherwise. ``cursor.py`` has
the cursors, ``values.py`` what becomes of parameters and of values, ``errors.py`` the exceptions.
"""

from __future__ import annotations

from tidemill.dbapi.connection import Connection, connect
from tidemill.dbapi.cursor import Cursor
from tidemill.dbapi.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)
from tidemill.dbapi.values import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)

apilevel = "2.0"
threadsafety = 1
"""Threads may share the module, not connections."""
paramstyle = "qmark"

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]
