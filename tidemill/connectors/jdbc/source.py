"""Reads a table of a database, once: a bounded scan, in ranges of a column when that is asked for.

A range that is read again sees the table as it is then; the epoch log keeps the scan from being
read twice unless the first try failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sqlalchemy import text

from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.connectors.api import Offset
from tidemill.connectors.api.source import WholeSource
from tidemill.connectors.arrow_maps import map_batches
from tidemill.connectors.filters import ColumnFilter
from tidemill.connectors.formats.text_scalars import CSV_RULES, fit_decimal, parse
from tidemill.connectors.jdbc.conditions import EVERYTHING, Where, where
from tidemill.connectors.jdbc.failures import DATABASE_ERRORS, failure
from tidemill.connectors.jdbc.target import listed, quote
from tidemill.connectors.jdbc.urls import Database
from tidemill.connectors.task_frames import assigned, task_frame
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import ConnectorError
from tidemill.types import logical as t
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_schema, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BATCH = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """``low`` <= ``column`` < ``high``; None is open (and takes NULLs where ``low`` is None)."""

    column: str
    low: int | None
    high: int | None

    def condition(self) -> str:
        name = quote(self.column)
        parts = [] if self.low is None else [f"{name} >= {self.low}"]
        parts += [] if self.high is None else [f"{name} < {self.high}"]
        text_ = " AND ".join(parts)
        return f"({text_} OR {name} IS NULL)" if self.low is None and parts else text_


@dataclass(frozen=True, slots=True, kw_only=True)
class JdbcReader:
    """``limit``: the most rows that a slice gives, None for all."""

    database: Database
    table: str
    fields: tuple[Field, ...]
    slices: tuple[Slice, ...]
    fetch_size: int
    sequence: bool
    limit: int | None = None
    where: Where = EVERYTHING

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for task in assigned(batches):
            yield from self._slice(task)

    @property
    def batch(self) -> int:
        """Rows that are fetched at once."""
        return self.fetch_size or _BATCH

    def rows_of(self, task: int, where: Where) -> str:
        """FROM and WHERE of the task's slice."""
        name = ".".join(quote(part) for part in self.table.split("."))
        sliced = self.slices[task].condition() if self.slices else ""
        conditions = " AND ".join(filter(None, (escaped(sliced), where.text)))
        return escaped(f"FROM {name}") + (f" WHERE {conditions}" if conditions else "")

    def _slice(self, task: int) -> Iterator[pa.RecordBatch]:
        columns = listed(tuple(f.name for f in self.fields)) or "1"
        sql = f"{escaped(f'SELECT {columns}')} {self.rows_of(task, self.where)}"
        sql += "" if self.limit is None else f" LIMIT {self.limit}"
        count = 0
        try:
            with self.database.engine.connect() as open:
                streamed = open.execution_options(yield_per=self.batch)
                for rows in streamed.execute(text(sql), self.where.values).partitions():
                    yield self._batch(rows, (task << 40) + count)
                    count += len(rows)
        except DATABASE_ERRORS as e:
            raise WorkerError(failure(e, self.database, self.table)) from None
        except (ValueError, ArithmeticError, pa.ArrowException) as e:
            raise WorkerError(ConnectorError(f"Table '{self.table}': a value does not fit: {e}")) from None

    def _batch(self, rows: Any, first: int) -> pa.RecordBatch:
        columns, names = arrays(rows, self.fields), [f.name for f in self.fields]
        if self.sequence:
            columns.append(pa.array(first + np.arange(len(rows), dtype=np.int64)))
            names = [*names, SEQUENCE_COLUMN]
        return pa.record_batch(columns, names=names)


def escaped(sql: str) -> str:
    """What SQLAlchemy takes for no names of values."""
    return sql.replace(":", "\\:")


def arrays(rows: Any, fields: tuple[Field, ...]) -> list[pa.Array]:
    """A driver's rows as columns of the declared types."""
    schema = arrow_schema(fields)
    return [
        pa.array([_value(f.type, row[i]) for row in rows], schema.field(i).type) for i, f in enumerate(fields)
    ]


def _value(kind: t.LogicalType, value: Any) -> Any:
    """What the driver gave as the carrier has it: texts are read (SQLite has few types, and any value may
    stand in any column of its). ValueError where another value would come of it."""
    if value is None:
        return None
    if isinstance(kind, t.INTEGER_TYPES) and isinstance(value, float | Decimal):
        return _whole(value)
    if isinstance(value, bytes) and isinstance(kind, t.CHARACTER_TYPES):
        raise ValueError(f"{value!r} is no text")
    if isinstance(value, int | float) and isinstance(kind, _MOMENTS):
        raise ValueError(f"the number {value} is no {kind.with_nullable(True)}")
    if isinstance(kind, t.TimeType) and not isinstance(value, str):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000
    if isinstance(kind, t.CHARACTER_TYPES):
        return value if isinstance(value, str) else str(value)
    if isinstance(kind, t.DecimalType):
        return fit_decimal(parse(_WIDE, str(value), CSV_RULES), kind)
    if isinstance(kind, t.BooleanType):
        return _truth(value)
    if isinstance(value, str):
        zoned = isinstance(kind, t.LocalZonedTimestampType) and not value.endswith("Z")
        return parse(kind, value + "Z" if zoned else value, CSV_RULES)
    return value


def _whole(value: float | Decimal) -> int:
    whole = int(value)
    if whole != value:
        raise ValueError(f"{value} is no whole number")
    return whole


def _truth(value: Any) -> bool:
    if not isinstance(value, str):
        return bool(value)
    text_ = value.strip().lower()
    if text_ not in ("true", "false"):
        raise ValueError(f"{value!r} is neither TRUE nor FALSE")
    return text_ == "true"


_MOMENTS = (t.DateType, t.TimeType, t.TimestampType, t.LocalZonedTimestampType)
_WIDE = t.DecimalType(precision=38, scale=18)


@dataclass(frozen=True, slots=True, kw_only=True)
class JdbcSource(WholeSource):
    """``filters``: what rows are wanted for, as far as the database can be asked."""

    reader: JdbcReader
    filters: tuple[ColumnFilter, ...] = ()

    def read(self, spark: SparkSession, start: Offset | None, end: Offset) -> DataFrame:
        tasks = 0 if start else max(len(self.reader.slices), 1)
        schema = spark_schema(self.reader.fields)
        schema += f", `{SEQUENCE_COLUMN}` BIGINT" if self.reader.sequence else ""
        asked = where(self.filters, self.reader.database, self.reader.table)
        return map_batches(task_frame(spark, range(tasks)), replace(self.reader, where=asked), schema)


def slices(column: str, low: int, high: int, count: int) -> tuple[Slice, ...]:
    """``count`` ranges that cover everything, cut evenly between ``low`` and ``high``."""
    count = max(1, min(count, high - low + 1))
    borders = [low + (high - low + 1) * i // count for i in range(1, count)]
    edges: list[int | None] = [None, *borders, None]
    return tuple(Slice(column=column, low=a, high=b) for a, b in pairwise(edges))
