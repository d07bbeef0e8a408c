"""Applies staged rows to a table within a transaction, one way per database.

PostgreSQL: the rows are copied into a temporary table and merged from there by two statements (or
copied straight into the table when it has no primary key). SQLite: prepared statements over many rows.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Protocol

import psycopg
import pyarrow as pa
from pyarrow import parquet
from sqlalchemy import Connection, text

from tidemill.connectors.filesystem.storage import Storage
from tidemill.connectors.jdbc.copy_text import CopyText
from tidemill.connectors.jdbc.staging import RowsFormat
from tidemill.types import logical as t
from tidemill.types.logical import Field

_CHUNK = 1 << 20
_MANY = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetTable:
    """``name`` as the option has it, ``schema.table`` or ``table``; ``keys`` () to append."""

    name: str
    fields: tuple[Field, ...]
    keys: tuple[str, ...]

    @property
    def quoted(self) -> str:
        return ".".join(quote(part) for part in self.name.split("."))

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(c for c in self.columns if c not in self.keys)

    def on_conflict(self) -> str:
        """The clause that makes an INSERT an upsert."""
        if not self.keys:
            return ""
        target = f" ON CONFLICT ({listed(self.keys)}) DO "
        if not self.others:
            return target + "NOTHING"
        return target + "UPDATE SET " + ", ".join(f"{quote(c)} = excluded.{quote(c)}" for c in self.others)


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def listed(names: tuple[str, ...], prefix: str = "") -> str:
    return ", ".join(prefix + quote(n) for n in names)


class TableWriter(Protocol):
    def rows(self, target: TargetTable) -> RowsFormat:
        """How tasks keep the rows for this writer."""
        ...

    def upsert(self, open: Connection, target: TargetTable, storage: Storage, files: list[str]) -> None: ...

    def delete(self, open: Connection, target: TargetTable, storage: Storage, files: list[str]) -> None: ...


class PostgresWriter:
    def rows(self, target: TargetTable) -> RowsFormat:
        return CopyText(fields=target.fields)

    def upsert(self, open: Connection, target: TargetTable, storage: Storage, files: list[str]) -> None:
        columns = listed(target.columns)
        if not target.keys:
            _copy(open, target.quoted, target.columns, storage, files)
            return
        staged = _temporary(open, target, target.columns, "tidemill_upsert", storage, files)
        into = f"INSERT INTO {target.quoted} ({columns}) SELECT "
        end = f"{columns} FROM {staged}{target.on_conflict()}"
        try:
            with open.begin_nested():
                open.exec_driver_sql(into + end)
        except Exception as e:
            if len(files) < 2 or not isinstance(
                getattr(e, "orig", None), psycopg.errors.CardinalityViolation
            ):
                raise
            open.exec_driver_sql(f"{into}DISTINCT ON ({listed(target.keys)}) {end}")
        open.exec_driver_sql(f"DROP TABLE {staged}")

    def delete(self, open: Connection, target: TargetTable, storage: Storage, files: list[str]) -> None:
        staged = _temporary(open, target, target.keys, "tidemill_delete", storage, files)
        same = " AND ".join(f"t.{quote(k)} = s.{quote(k)}" for k in target.keys)
        open.exec_driver_sql(f"DELETE FROM {target.quoted} AS t USING {staged} AS s WHERE {same}")
        open.exec_driver_sql(f"DROP TABLE {staged}")


def _temporary(
    open: Connection,
    target: TargetTable,
    columns: tuple[str, ...],
    name: str,
    storage: Storage,
    files: list[str],
) -> str:
    """A temporary table with ``columns`` of the target's types, filled."""
    select = f"SELECT {listed(columns)} FROM {target.quoted} WITH NO DATA"
    open.exec_driver_sql(f"CREATE TEMPORARY TABLE {name} ON COMMIT DROP AS {select}")
    _copy(open, name, columns, storage, files)
    return name


def _copy(open: Connection, table: str, columns: tuple[str, ...], storage: Storage, files: list[str]) -> None:
    connection = open.connection.driver_connection
    assert isinstance(connection, psycopg.Connection)
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {table} ({listed(columns)}) FROM STDIN".encode()) as copy,
    ):
        for name in files:
            with storage.open(name) as file:
                while chunk := file.read(_CHUNK):
                    copy.write(chunk)


@dataclass(frozen=True, slots=True)
class ParquetRows:
    """Staged rows with the carriers' types."""

    def encode(self, table: pa.Table) -> bytes:
        stream = io.BytesIO()
        parquet.write_table(table, stream)
        return stream.getvalue()


class SqliteWriter:
    def rows(self, target: TargetTable) -> RowsFormat:
        return ParquetRows()

    def upsert(self, open: Connection, target: TargetTable, storage: Storage, files: list[str]) -> None:
        marks = ", ".join("?" for _ in target.columns)
        sql = f"INSERT INTO {target.quoted} ({listed(target.columns)}) VALUES ({marks}){target.on_conflict()}"
        _execute(open, sql, target.fields, storage, files)

    def delete(self, open: Connection, target: TargetTable, storage: Storage, files: list[str]) -> None:
        same = " AND ".join(f"{quote(k)} = ?" for k in target.keys)
        keys = tuple(f for k in target.keys for f in target.fields if f.name == k)
        _execute(open, f"DELETE FROM {target.quoted} WHERE {same}", keys, storage, files)


def _execute(
    open: Connection, sql: str, fields: tuple[Field, ...], storage: Storage, files: list[str]
) -> None:
    for name in files:
        with storage.open(name) as file:
            table = parquet.read_table(file)
        for batch in table.to_batches(max_chunksize=_MANY):
            columns = [map(_binder(f.type), batch.column(f.name).to_pylist()) for f in fields]
            open.exec_driver_sql(sql, list(zip(*columns, strict=True)))


def _binder(kind: t.LogicalType) -> Callable[[Any], Any]:
    show = _BINDERS.get(type(kind))
    return (lambda v: None if v is None else show(v)) if show else (lambda v: v)


def _moment(value: datetime) -> str:
    return value.strftime("%Y-%m-%d %H:%M:%S") + (f".{value.microsecond:06d}" if value.microsecond else "")


def _time(millis: int) -> str:
    seconds = millis // 1000
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return text + (f".{millis % 1000:03d}" if millis % 1000 else "")


_BINDERS: dict[type[t.LogicalType], Callable[[Any], Any]] = {
    t.DecimalType: lambda v: format(Decimal(v), "f"),
    t.DateType: date.isoformat,
    t.TimeType: _time,
    t.TimestampType: _moment,
    t.LocalZonedTimestampType: lambda v: _moment(v.astimezone(UTC)),
}

WRITERS: dict[str, TableWriter] = {"postgresql": PostgresWriter(), "sqlite": SqliteWriter()}


def epoch_statements() -> Iterator[str]:
    """What makes the table of published epochs, if it is not there."""
    yield (
        "CREATE TABLE IF NOT EXISTS tidemill_epochs"
        " (job VARCHAR(200) NOT NULL PRIMARY KEY, epoch BIGINT NOT NULL)"
    )


def published(open: Connection, job: str) -> int:
    """The last epoch of ``job`` that was published here; 0 for none."""
    row = open.execute(text("SELECT epoch FROM tidemill_epochs WHERE job = :job"), {"job": job}).fetchone()
    return int(row[0]) if row else 0


def record(open: Connection, job: str, epoch: int) -> None:
    open.execute(
        text(
            "INSERT INTO tidemill_epochs (job, epoch) VALUES (:job, :epoch)"
            " ON CONFLICT (job) DO UPDATE SET epoch = excluded.epoch"
        ),
        {"job": job, "epoch": epoch},
    )
