"""Writes staged rows into SQLite: prepared statements over many rows."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from sqlalchemy import Connection

from tidemill.connectors.jdbc.target import TargetTable, listed, quote
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import ConnectorError
from tidemill.files.storage import Storage
from tidemill.functions.text.times import clock, local, timestamp
from tidemill.types import logical as t
from tidemill.types.logical import Field
from tidemill.types.python_values import python_values

_MANY = 10_000


@dataclass(frozen=True, slots=True)
class ParquetRows:
    """Staged rows with the carriers' types; ``name``: the table they are for, for messages."""

    name: str

    def encode(self, table: pa.Table) -> bytes:
        """WorkerError for a NaN: SQLite stores NULL in its place, and does not say so."""
        for column, values in zip(table.column_names, table.columns, strict=True):
            if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
                raise WorkerError(
                    ConnectorError(
                        f"Column '{column}' of table '{self.name}' got a NaN, which SQLite cannot store.",
                        hint="Give another value in its place, or CAST it to STRING for a text column.",
                    )
                )
        stream = io.BytesIO()
        parquet.write_table(table, stream)
        return stream.getvalue()


class SqliteWriter:
    def rows(self, target: TargetTable) -> ParquetRows:
        return ParquetRows(target.name)

    def upsert(self, open: Connection, target: TargetTable, storage: Storage, file: str) -> None:
        marks = ", ".join("?" for _ in target.columns)
        sql = f"INSERT INTO {target.quoted} ({listed(target.columns)}) VALUES ({marks}){target.on_conflict()}"
        _execute(open, sql, target.fields, storage, file)

    def delete(self, open: Connection, target: TargetTable, storage: Storage, files: list[str]) -> None:
        same = " AND ".join(f"{quote(k)} = ?" for k in target.keys)
        keys = tuple(f for k in target.keys for f in target.fields if f.name == k)
        for file in files:
            _execute(open, f"DELETE FROM {target.quoted} WHERE {same}", keys, storage, file)


def _execute(open: Connection, sql: str, fields: tuple[Field, ...], storage: Storage, name: str) -> None:
    with storage.open(name) as file:
        table = parquet.read_table(file)
    for batch in table.to_batches(max_chunksize=_MANY):
        columns = [map(binder(f.type), python_values(batch.column(f.name))) for f in fields]
        open.exec_driver_sql(sql, list(zip(*columns, strict=True)))


def binder(kind: t.LogicalType) -> Callable[[Any], Any]:
    """A carrier's value as a parameter: SQLite has few types."""
    show = _BINDERS.get(type(kind))
    return (lambda v: None if v is None else show(v)) if show else (lambda v: v)


def _moment(value: datetime) -> str:
    return timestamp(value, 6 if value.microsecond else 0)


_BINDERS: dict[type[t.LogicalType], Callable[[Any], Any]] = {
    t.DecimalType: lambda v: format(Decimal(v), "f"),
    t.DateType: date.isoformat,
    t.TimeType: lambda millis: clock(millis, 3 if millis % 1000 else 0),
    t.TimestampType: _moment,
    t.LocalZonedTimestampType: lambda v: _moment(local(v, UTC)),
}
