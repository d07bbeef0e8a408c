"""Which aggregates a database makes of its table, and how its answer is read.

It makes those for which its types are as exact as ours: whole numbers, of PostgreSQL also decimals, dates and
booleans; texts are keys or are counted, under the collation that compares bytes. A column of SQLite's holds
what it likes: each group tells how many of its values are of another type, and one that has any is none of
ours (``UNLIKE``). What a sum overflows to is the declared type's doing, as in Flink: it goes round.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlalchemy import text
from sqlalchemy import types as s

from tidemill.connectors.api import Offset
from tidemill.connectors.api.source import WholeSource
from tidemill.connectors.arrow_maps import map_batches
from tidemill.connectors.filters import ColumnFilter, columns_of
from tidemill.connectors.grouping import UNLIKE, Grouping
from tidemill.connectors.jdbc.conditions import Where, column_types, exactly
from tidemill.connectors.jdbc.failures import DATABASE_ERRORS, failure
from tidemill.connectors.jdbc.source import JdbcReader, escaped
from tidemill.connectors.jdbc.target import quote
from tidemill.connectors.task_frames import assigned, task_frame
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import ExecutionError
from tidemill.types import logical as t
from tidemill.types.logical import Field, LogicalType
from tidemill.types.physical import arrow_schema, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BYTES = {"postgresql": 'COLLATE "C"', "sqlite": "COLLATE BINARY"}
_BITS: Mapping[type[LogicalType], int] = {
    t.TinyIntType: 8,
    t.SmallIntType: 16,
    t.IntType: 32,
    t.BigIntType: 64,
}
_STORED_BITS = ((s.SmallInteger, 16), (s.BigInteger, 64), (s.Integer, 32))
_TEXTS = (s.VARCHAR, s.TEXT)
_OVERFLOW = ("integer overflow", "out of range")


def grouped(
    reader: JdbcReader, grouping: Grouping, columns: tuple[Field, ...], filters: tuple[ColumnFilter, ...]
) -> GroupedSource | None:
    """What has the database aggregate; None where it would not do it as we do. ``columns``: the table's."""
    asked = {*grouping.keys, *(part.column for part in grouping.parts if part.column is not None)}
    asked = asked.union(*map(columns_of, filters))
    declared = {f.name: f.type for f in columns}
    stored = column_types(reader.database, reader.table)
    dialect = reader.database.dialect
    if not all(name in stored and alike(declared[name], stored[name], dialect) for name in asked):
        return None
    numbers = (p.column for p in grouping.parts if p.function != "COUNT")
    if any(name is None or isinstance(declared[name], (t.VarCharType, t.BooleanType)) for name in numbers):
        return None
    conditions = exactly(filters, dialect, stored, BYTES[dialect])
    if conditions is None:
        return None
    guarded = sorted(asked) if dialect == "sqlite" else []
    made = GroupedReader(
        reader=reader,
        columns=tuple(_column(grouping, declared, dialect)),
        keys=len(grouping.keys),
        guard=" OR ".join(is_other(name, declared[name]) for name in guarded),
        fields=grouping.fields(columns),
        where=conditions,
    )
    return GroupedSource(reader=made)


def alike(declared: LogicalType, stored: Any, dialect: str) -> bool:
    """Whether all values of the column in the database are the same values of the declared type; of SQLite's
    those of its own type."""
    if type(declared) in _BITS:
        wide = next((bits for kind, bits in _STORED_BITS if isinstance(stored, kind)), 128)
        return (dialect == "sqlite" and wide < 128) or wide <= _BITS[type(declared)]
    if isinstance(declared, t.VarCharType):
        return isinstance(stored, _TEXTS)
    if dialect == "sqlite":
        return False
    if isinstance(declared, t.DecimalType):
        return _fits(declared, stored)
    dates = isinstance(declared, t.DateType) and isinstance(stored, s.Date)
    return dates or (isinstance(declared, t.BooleanType) and isinstance(stored, s.Boolean))


def _fits(declared: t.DecimalType, stored: Any) -> bool:
    if not isinstance(stored, s.Numeric) or isinstance(stored, s.Float) or stored.precision is None:
        return False
    scale = stored.scale or 0
    whole = stored.precision - scale <= declared.precision - declared.scale
    return whole and 0 <= scale <= declared.scale


def _column(grouping: Grouping, declared: Mapping[str, LogicalType], dialect: str) -> Iterator[str]:
    for key in grouping.keys:
        is_text = isinstance(declared[key], t.VarCharType)
        yield f"{quote(key)} {BYTES[dialect]}" if is_text else quote(key)
    for part in grouping.parts:
        yield f"{part.function}({'*' if part.column is None else quote(part.column)})"


def is_other(name: str, declared: LogicalType) -> str:
    """SQLite's condition that a value is none of the declared type's."""
    column = quote(name)
    if isinstance(declared, t.VarCharType):
        return f"typeof({column}) NOT IN ('text', 'null')"
    most = 2 ** (_BITS[type(declared)] - 1)
    return f"typeof({column}) NOT IN ('integer', 'null') OR {column} NOT BETWEEN {-most} AND {most - 1}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedReader:
    """``columns`` as SQL, of which the first ``keys`` are grouped by; ``guard``: a condition for which no row
    may be, '' for none."""

    reader: JdbcReader
    columns: tuple[str, ...]
    keys: int
    guard: str
    fields: tuple[Field, ...]
    where: Where

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for task in assigned(batches):
            yield from self._slice(task)

    def _slice(self, task: int) -> Iterator[pa.RecordBatch]:
        database, table = self.reader.database, self.reader.table
        try:
            with database.engine.connect() as open:
                streamed = open.execution_options(yield_per=self.reader.batch)
                for rows in streamed.execute(text(self._sql(task)), self.where.values).partitions():
                    yield self._batch(rows)
        except DATABASE_ERRORS as e:
            if any(told in str(e) for told in _OVERFLOW):
                raise WorkerError(ExecutionError(UNLIKE)) from None
            raise WorkerError(failure(e, database, table)) from None

    def _sql(self, task: int) -> str:
        guard = [f"SUM(CASE WHEN {self.guard} THEN 1 ELSE 0 END)"] if self.guard else []
        listed = escaped(", ".join([*self.columns, *guard]))
        by = f" GROUP BY {', '.join(self.columns[: self.keys])}" if self.keys else ""
        return f"SELECT {listed} {self.reader.rows_of(task, self.where)}{escaped(by)}"

    def _batch(self, rows: Any) -> pa.RecordBatch:
        if self.guard and any(row[-1] for row in rows):
            raise WorkerError(ExecutionError(UNLIKE))
        schema = arrow_schema(self.fields)
        try:
            columns = [
                pa.array([_value(f.type, row[i]) for row in rows], schema.field(i).type)
                for i, f in enumerate(self.fields)
            ]
        except (ValueError, ArithmeticError, pa.ArrowException):
            raise WorkerError(ExecutionError(UNLIKE)) from None
        return pa.record_batch(columns, names=[f.name for f in self.fields])


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedSource(WholeSource):
    reader: GroupedReader

    def read(self, spark: SparkSession, start: Offset | None, end: Offset) -> DataFrame:
        tasks = 0 if start else max(len(self.reader.reader.slices), 1)
        return map_batches(task_frame(spark, range(tasks)), self.reader, spark_schema(self.reader.fields))


def _value(kind: LogicalType, value: Any) -> Any:
    if value is None:
        return None
    if type(kind) in _BITS:
        half = 2 ** (_BITS[type(kind)] - 1)
        return (int(value) + half) % (2 * half) - half
    return Decimal(value) if isinstance(kind, t.DecimalType) else value
