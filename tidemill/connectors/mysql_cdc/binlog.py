"""Reads a range of the log as whole transactions that change one table.

The log describes a table by the types of its columns alone: names, signs and the names of enums are those of
the table, which must not change in the range. A statement that changes the table, and a change that the log
does not show as rows, is an error; nothing is guessed.
"""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pymysql
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.constants import FIELD_TYPE
from pymysqlreplication.event import NotImplementedEvent, QueryEvent, XAPrepareEvent, XidEvent
from pymysqlreplication.row_event import (
    DeleteRowsEvent,
    PartialUpdateRowsEvent,
    TableMapEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
)

from tidemill.changelog.rowkind import RowKind
from tidemill.connectors.mysql_cdc.offsets import Place, order, shown
from tidemill.connectors.mysql_cdc.server import Capture
from tidemill.connectors.mysql_cdc.values import Column
from tidemill.errors import ConnectorError, NotSupportedError

logging.getLogger("pymysqlreplication").setLevel(logging.ERROR)  # it warns of defaults of servers
_ROWS = (WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent)
_EVENTS = (
    *_ROWS,
    PartialUpdateRowsEvent,
    TableMapEvent,
    QueryEvent,
    XidEvent,
    XAPrepareEvent,
    NotImplementedEvent,
)
_HIDDEN_EVENTS = {
    40: "a compressed transaction (binlog_transaction_compression)",
    **dict.fromkeys(range(165, 172), "a compressed event (log_bin_compress)"),
}
_BYTES = "bytes"
"""No character set of that name exists: the library gives the bytes as they are."""
_DML = re.compile(r"\s*(INSERT|UPDATE|DELETE|REPLACE|LOAD|WITH|CALL)\b", re.IGNORECASE)
_DDL = re.compile(r"\s*(ALTER|TRUNCATE|DROP|RENAME|CREATE\s+OR\s+REPLACE)\b", re.IGNORECASE)
_COMMENTS = re.compile(r"/\*(?!!).*?\*/|\A\s*(--|#)[^\n]*\n", re.DOTALL)
_BEGINNINGS = ("BEGIN", "XA START", "XA END")
_HINT = "Start the job with another checkpoint directory."


@dataclass(frozen=True, slots=True)
class Transaction:
    """``rows``: kind and values by column name; ``end``: where it ends; ``time``: in seconds."""

    rows: list[tuple[RowKind, dict[str, Any]]]
    end: Place
    time: int


def transactions(
    capture: Capture, columns: tuple[Column, ...], start: Place, end: Place
) -> Iterator[Transaction]:
    """The transactions between ``start`` and ``end`` in order, also those without rows of the table.
    ConnectorError if the log does not have them all; pymysql.Error if the server is away."""
    stream = _stream(capture, start)
    rows: list[tuple[RowKind, dict[str, Any]]] = []
    reached, begun = start, False
    try:
        if order(start) >= order(end):
            return
        for event in stream:
            place = (stream.log_file, stream.log_pos)
            if order(place) > order(end):
                break
            ended = False
            if isinstance(event, TableMapEvent):
                _describe(capture, event, columns, place)
            elif isinstance(event, _ROWS):
                rows += _rows(capture, event, columns, place)
                begun = True
            elif isinstance(event, QueryEvent):
                ended = _ends(capture, event, place, begun)
                begun = begun or _word(event.query) in _BEGINNINGS
                if _word(event.query) == "ROLLBACK":
                    rows = []
            elif isinstance(event, XidEvent):
                ended = True
            elif isinstance(event, XAPrepareEvent):
                ended = True
                if rows:
                    raise NotSupportedError(
                        f"An XA transaction that changes '{capture.name}', at {shown(place)}"
                    )
            elif isinstance(event, PartialUpdateRowsEvent):
                raise capture.error(
                    f"partial JSON at {shown(place)}.", "SET GLOBAL binlog_row_value_options = ''"
                )
            elif isinstance(event, NotImplementedEvent) and event.event_type in _HIDDEN_EVENTS:
                raise NotSupportedError(f"{_HIDDEN_EVENTS[event.event_type]} in the log at {shown(place)}")
            if ended:
                yield Transaction(rows, place, event.timestamp)
                rows = []
                reached, begun = place, False
            if order(place) >= order(end):
                break
        place = (stream.log_file, stream.log_pos)
        if order(place) < order(end) or rows:
            raise capture.error(
                f"the server's log ended at {shown(place)} inside the range that ends at {shown(end)};"
                f" the last transaction ended at {shown(reached)}."
            )
    except pymysql.Error as e:
        if e.args and e.args[0] == 1236:
            raise capture.error(f"the log cannot be read from {shown(start)}: {e.args[-1]}", _HINT) from None
        raise
    finally:
        stream.close()


def _stream(capture: Capture, start: Place) -> BinLogStreamReader:
    connects = 0

    def connect(**settings: Any) -> Any:
        """The library would go on after a lost connection without the tables that it knew: rows would be
        missing. So there are two connections, the stream and its control, and no more."""
        nonlocal connects
        connects += 1
        if connects > 2:
            raise pymysql.err.InterfaceError(2013, "the connection to the log was lost")
        schema = settings.pop("db", None)
        return pymysql.connect(**settings, database=schema)

    return BinLogStreamReader(
        connection_settings=capture.settings,
        ctl_connection_settings=capture.settings,
        pymysql_wrapper=connect,
        server_id=random.randrange(1 << 31, (1 << 32) - 1),
        resume_stream=True,
        log_file=start[0],
        log_pos=start[1],
        only_events=_EVENTS,
        filter_non_implemented_events=False,
        only_schemas=[capture.database],
        only_tables=[capture.table],
        enable_logging=False,
    )


def _describe(capture: Capture, event: TableMapEvent, columns: tuple[Column, ...], place: Place) -> None:
    """Gives the event's columns what the log does not say."""
    if len(event.columns) != len(columns):
        raise _altered(
            capture, place, f"it had {len(event.columns)} columns there, and has {len(columns)} now"
        )
    for logged, column in zip(event.columns, columns, strict=True):
        if not _fits(logged, column):
            raise _altered(capture, place, f"column '{column.name}' is {column.text} now, and was not there")
        logged.name, logged.unsigned = column.name, column.unsigned
        logged.character_set_name = _BYTES
        if column.kind == "enum":
            logged.enum_values = ["", *column.names]
        elif column.kind == "set":
            logged.set_values = column.names


_LOGGED = {
    "tinyint": (FIELD_TYPE.TINY,),
    "smallint": (FIELD_TYPE.SHORT,),
    "mediumint": (FIELD_TYPE.INT24,),
    "int": (FIELD_TYPE.LONG,),
    "bigint": (FIELD_TYPE.LONGLONG,),
    "float": (FIELD_TYPE.FLOAT,),
    "double": (FIELD_TYPE.DOUBLE,),
    "decimal": (FIELD_TYPE.NEWDECIMAL,),
    "date": (FIELD_TYPE.DATE, FIELD_TYPE.NEWDATE),
    "time": (FIELD_TYPE.TIME2,),
    "datetime": (FIELD_TYPE.DATETIME2,),
    "timestamp": (FIELD_TYPE.TIMESTAMP2,),
    "year": (FIELD_TYPE.YEAR,),
    "bit": (FIELD_TYPE.BIT,),
    "enum": (FIELD_TYPE.ENUM,),
    "set": (FIELD_TYPE.SET,),
    **dict.fromkeys(("char", "binary"), (FIELD_TYPE.STRING,)),
    **dict.fromkeys(("varchar", "varbinary"), (FIELD_TYPE.VARCHAR, FIELD_TYPE.VAR_STRING)),
    **dict.fromkeys(("tinytext", "text", "mediumtext", "longtext"), (FIELD_TYPE.BLOB,)),
    **dict.fromkeys(("tinyblob", "blob", "mediumblob", "longblob"), (FIELD_TYPE.BLOB,)),
}


def _fits(logged: Any, column: Column) -> bool:
    kinds = _LOGGED.get(column.kind)
    if kinds is not None and logged.type not in kinds:
        return False
    if column.kind == "decimal":
        precision, scale = column.text[len("decimal(") :].split(")")[0].split(",")
        return bool((logged.precision, logged.decimals) == (int(precision), int(scale)))
    return True


def _rows(
    capture: Capture, event: Any, columns: tuple[Column, ...], place: Place
) -> list[tuple[RowKind, dict[str, Any]]]:
    whole = (1 << len(columns)) - 1
    for bitmap in ("columns_present_bitmap", "columns_present_bitmap2"):
        present = getattr(event, bitmap, None)
        if present is not None and int.from_bytes(present, "little") & whole != whole:
            raise capture.error(
                f"a change at {shown(place)} does not have all columns.",
                "SET GLOBAL binlog_row_image = 'FULL'",
            )
    try:
        changed = event.rows
    except (NotImplementedError, LookupError, ValueError) as e:
        raise capture.error(f"a change at {shown(place)} cannot be read: {e}") from None
    if isinstance(event, UpdateRowsEvent):
        found = []
        for row in changed:
            found.append(
                (RowKind.UPDATE_BEFORE, _plain(row["before_values"], row["before_none_sources"], columns))
            )
            found.append(
                (RowKind.UPDATE_AFTER, _plain(row["after_values"], row["after_none_sources"], columns))
            )
        return found
    kind = RowKind.INSERT if isinstance(event, WriteRowsEvent) else RowKind.DELETE
    return [(kind, _plain(row["values"], row["none_sources"], columns)) for row in changed]


def _plain(values: dict[str, Any], nones: dict[str, str], columns: tuple[Column, ...]) -> dict[str, Any]:
    """As a SELECT gives them. The library gives None for a date like 0000-00-00, too."""
    for column in columns:
        value = values[column.name]
        if column.kind == "set" and (value is not None or nones.get(column.name) == "empty set"):
            values[column.name] = ",".join(name for name in column.names if name in (value or ()))
        elif column.kind == "bit" and value is not None:
            values[column.name] = int(value, 2).to_bytes((len(value) + 7) // 8, "big")
        elif column.kind in ("date", "datetime") and value is None and nones.get(column.name) != "null":
            values[column.name] = "a date with a zero in it"
    return values


def _ends(capture: Capture, event: QueryEvent, place: Place, begun: bool) -> bool:
    """Whether the statement ends a transaction, or is one. Raises if it changes the table."""
    word = _word(event.query)
    if word in (*_BEGINNINGS, "SAVEPOINT"):
        return False
    if word in ("COMMIT", "ROLLBACK"):
        return True
    text = _COMMENTS.sub(" ", event.query)
    if text.upper().startswith("ROLLBACK TO") and begun:
        raise NotSupportedError(f"ROLLBACK TO in the log of '{capture.name}', at {shown(place)}")
    if _DML.match(text):
        raise capture.error(
            f"the log has a statement instead of rows at {shown(place)}.",
            "A session has binlog_format other than ROW. " + _HINT,
        )
    names = (
        re.escape(capture.table)
        if not re.match(r"\s*DROP\s+(DATABASE|SCHEMA)\b", text, re.IGNORECASE)
        else (re.escape(capture.database))
    )
    if _DDL.match(text) and re.search(rf"(?<![\w$]){names}(?![\w$])", text, re.IGNORECASE):
        raise _altered(capture, place, f"the statement was: {' '.join(text.split())[:200]}")
    return not begun


def _word(query: str) -> str:
    text = query.strip().upper()
    for word in ("SAVEPOINT", "XA START", "XA END"):
        if text.startswith(word):
            return word
    return text


def _altered(capture: Capture, place: Place, what: str) -> ConnectorError:
    return capture.error(f"it was altered at {shown(place)} or later: {what}.", _HINT)
