"""Decides, column by column, how Spark's own readers can read columnar files.

A format with this interface gives for each column of a file its ``StoredType``: the type by which Spark's
reader returns exactly the stored values. This module maps a stored type to a value of the declared type: the
column itself, or an expression over it. If Spark's value may differ from that of our decoders, there is no
mapping, and our decoders read the file. Cost: one footer per file on the driver.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Protocol, runtime_checkable

import pyarrow as pa

from tidemill.connectors.formats.column_names import mistaken
from tidemill.types import logical as t
from tidemill.types.logical import Field
from tidemill.types.physical import spark_type

NANOS = "NANOS"
"""Nanoseconds since 1970 in a file; Spark returns the number."""
MILLIS = "MILLIS"
"""Instants of whole milliseconds in a file."""

_EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
_AS_WALL_CLOCK = f"timestampadd(MICROSECOND, unix_micros({{0}}), {_EPOCH})"
_MICROS = "(({0} DIV 1000L) - IF({0} % 1000L < 0L, 1L, 0L))"
_UNPUSHED = "nanvl({0}, {0})"
"""A float, unchanged. Spark's readers distinguish 0.0 and -0.0 when they skip rows by a pushed-down equality,
and would miss rows of a bare column."""
_UNPUSHED_INSTANT = "timestamp_micros(unix_micros({0}))"
"""An instant, unchanged. In a file of milliseconds Spark's reader truncates a pushed-down constant to
milliseconds, and would miss rows of that millisecond."""
_NO_TIME = "CAST(raise_error(concat({0}, ' ms are no time of day')) AS INT)"
_OF_A_DAY = f"IF({{0}} BETWEEN 0 AND 86399999 OR {{0}} IS NULL, {{0}}, {_NO_TIME})"


@dataclass(frozen=True, slots=True)
class StoredType:
    """``spark``: a scalar type's name, NANOS, MILLIS, or ARRAY, MAP, STRUCT of ``parts`` (STRUCT's named)."""

    spark: str
    parts: tuple[tuple[str, StoredType], ...] = ()


StoredColumns = dict[str, StoredType | None]
"""Stored types by column name; None if Spark's reader does not return exactly the stored values."""


@dataclass(frozen=True, slots=True)
class NativeColumn:
    """``read``: the DDL type that Spark reads; ``value``: Spark SQL with {0} for the column that Spark
    reads."""

    read: str
    value: str = "{0}"


@runtime_checkable
class NativeFormat(Protocol):
    """Optional interface of a format whose files Spark can read itself."""

    def __hash__(self) -> int: ...

    @property
    def spark_class(self) -> str:
        """The class of Spark's FileFormat."""
        ...

    def stored(self, file: pa.NativeFile) -> StoredColumns | None:
        """The stored types of a file's columns; None if Spark cannot read the file as a whole."""
        ...


def native_column(stored: StoredColumns, field: Field) -> NativeColumn | None:
    """How Spark reads ``field``; None if it cannot. A column that the file lacks is NULL."""
    if field.name not in stored:
        return missing(field.type)
    kind = stored[field.name]
    return None if kind is None else converted(field.type, kind)


def missing(kind: t.LogicalType) -> NativeColumn:
    """NULL, whatever Spark reads under the name."""
    return NativeColumn(unread(kind), f"CAST(NULL AS {spark_type(kind)})")


def unread(kind: t.LogicalType) -> str:
    """The DDL type of a column that Spark does not read, about as wide as ``kind``. Timestamps are replaced:
    Spark's ORC reader compares the timestamp types of table and file by position, even of columns that it
    does not read, and fails if they differ."""
    ddl = spark_type(kind)
    if "TIMESTAMP" not in ddl:
        return ddl
    return "BIGINT" if isinstance(kind, t.TimestampType | t.LocalZonedTimestampType) else "BINARY"


@singledispatch
def converted(kind: t.LogicalType, stored: StoredType) -> NativeColumn | None:
    """How Spark turns a column of ``stored`` into one of ``kind``; None if it cannot."""
    target = spark_type(kind)
    if stored.spark == target:
        return NativeColumn(target)
    if stored.spark in _WIDENED.get(target, ()):
        return NativeColumn(stored.spark, f"CAST({{0}} AS {target})")
    return None


_WIDENED: dict[str, tuple[str, ...]] = {
    "SMALLINT": ("TINYINT",),
    "INT": ("TINYINT", "SMALLINT"),
    "BIGINT": ("TINYINT", "SMALLINT", "INT"),
}


@converted.register(t.FloatType)
@converted.register(t.DoubleType)
def _(kind: t.LogicalType, stored: StoredType) -> NativeColumn | None:
    wanted = spark_type(kind)
    if stored.spark == wanted:
        return NativeColumn(wanted, _UNPUSHED)
    if (stored.spark, wanted) == ("FLOAT", "DOUBLE"):
        return NativeColumn("FLOAT", f"CAST({_UNPUSHED} AS DOUBLE)")
    return None


@converted.register
def _(kind: t.DecimalType, stored: StoredType) -> NativeColumn | None:
    """More digits on either side of the point do no harm."""
    if not stored.spark.startswith("DECIMAL("):
        return None
    precision, scale = map(int, stored.spark[len("DECIMAL(") : -1].split(","))
    if (precision, scale) == (kind.precision, kind.scale):
        return NativeColumn(stored.spark)
    if scale <= kind.scale and precision - scale <= kind.precision - kind.scale:
        return NativeColumn(stored.spark, f"CAST({{0}} AS {spark_type(kind)})")
    return None


@converted.register
def _(kind: t.TimeType, stored: StoredType) -> NativeColumn | None:
    """Spark has no such type; where the file has the milliseconds as a number they are the carrier."""
    return NativeColumn("INT", _OF_A_DAY) if stored.spark == "INT" else None


@converted.register
def _(kind: t.TimestampType, stored: StoredType) -> NativeColumn | None:
    """An instant is taken as UTC wall-clock time, nanoseconds are cut."""
    return {
        "TIMESTAMP_NTZ": NativeColumn("TIMESTAMP_NTZ"),
        "TIMESTAMP": NativeColumn("TIMESTAMP", _AS_WALL_CLOCK),
        MILLIS: NativeColumn("TIMESTAMP", _AS_WALL_CLOCK),
        NANOS: NativeColumn("BIGINT", f"timestampadd(MICROSECOND, {_MICROS}, {_EPOCH})"),
    }.get(stored.spark)


@converted.register
def _(kind: t.LocalZonedTimestampType, stored: StoredType) -> NativeColumn | None:
    """A wall-clock time is taken as UTC."""
    return {
        "TIMESTAMP": NativeColumn("TIMESTAMP"),
        MILLIS: NativeColumn("TIMESTAMP", _UNPUSHED_INSTANT),
        "TIMESTAMP_NTZ": NativeColumn("TIMESTAMP"),
        NANOS: NativeColumn("BIGINT", f"timestamp_micros({_MICROS})"),
    }.get(stored.spark)


@converted.register
def _(kind: t.ArrayType, stored: StoredType) -> NativeColumn | None:
    if stored.spark != "ARRAY":
        return None
    ((_, element),) = stored.parts
    return NativeColumn(spark_type(kind)) if _as_it_is(kind.element, element) else None


@converted.register
def _(kind: t.RowType, stored: StoredType) -> NativeColumn | None:
    """Fields by name. Spark tells a NULL row from one of NULLs by a field that is there."""
    parts, names = dict(stored.parts), [f.name for f in kind.fields]
    if mistaken(names, names, parts):
        return None  # our decoders say so
    there = [f for f in kind.fields if f.name in parts]
    if stored.spark != "STRUCT" or not there or not all(_as_it_is(f.type, parts[f.name]) for f in there):
        return None
    return NativeColumn(spark_type(kind))


@converted.register
def _(kind: t.MapType, stored: StoredType) -> NativeColumn | None:
    return _entries(kind.key, kind.value, stored)


@converted.register
def _(kind: t.MultisetType, stored: StoredType) -> NativeColumn | None:
    return _entries(kind.element, t.INT, stored)


def _entries(key: t.LogicalType, value: t.LogicalType, stored: StoredType) -> NativeColumn | None:
    """A map's carrier is the array of its entries."""
    if stored.spark != "MAP":
        return None
    (_, stored_key), (_, stored_value) = stored.parts
    if not _as_it_is(key, stored_key) or not _as_it_is(value, stored_value):
        return None
    return NativeColumn(f"MAP<{spark_type(key)}, {spark_type(value)}>", "map_entries({0})")


def _as_it_is(kind: t.LogicalType, stored: StoredType) -> bool:
    """Whether it is the carrier, all the way down: parts are not converted on their own."""
    found = converted(kind, stored)
    return (
        found is not None
        and found.read == spark_type(kind)
        and found.value in ("{0}", _UNPUSHED, _UNPUSHED_INSTANT)
    )
