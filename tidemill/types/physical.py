"""Which carrier a Flink type has in Spark SQL and in Arrow.

The carriers follow Flink's internal data structures where Spark's own type would lose something:
TIME is milliseconds of the day (Spark has no TIME), intervals are months or milliseconds, MAP and
MULTISET are arrays of (key, value) entries, by key (a Spark map refuses NULL keys and cannot be grouped or
compared), TIMESTAMP_LTZ is Spark's TIMESTAMP shown in ``table.local-time-zone``.
"""

from __future__ import annotations

from functools import singledispatch

import pyarrow as pa

from tidemill.types import logical as t

_SIMPLE: dict[type[t.LogicalType], tuple[str, pa.DataType]] = {
    t.BooleanType: ("BOOLEAN", pa.bool_()),
    t.TinyIntType: ("TINYINT", pa.int8()),
    t.SmallIntType: ("SMALLINT", pa.int16()),
    t.IntType: ("INT", pa.int32()),
    t.BigIntType: ("BIGINT", pa.int64()),
    t.FloatType: ("FLOAT", pa.float32()),
    t.DoubleType: ("DOUBLE", pa.float64()),
    t.DateType: ("DATE", pa.date32()),
    t.NullType: ("VOID", pa.null()),
    t.CharType: ("STRING", pa.string()),
    t.VarCharType: ("STRING", pa.string()),
    t.BinaryType: ("BINARY", pa.binary()),
    t.VarBinaryType: ("BINARY", pa.binary()),
    t.TimeType: ("INT", pa.int32()),
    t.TimestampType: ("TIMESTAMP_NTZ", pa.timestamp("us")),
    t.LocalZonedTimestampType: ("TIMESTAMP", pa.timestamp("us", tz="UTC")),
    t.YearMonthIntervalType: ("INT", pa.int32()),
    t.DayTimeIntervalType: ("BIGINT", pa.int64()),
}


def quote(name: str) -> str:
    """A Spark SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


@singledispatch
def spark_type(kind: t.LogicalType) -> str:
    """The Spark SQL type text that carries values of ``kind``, e.g. ``ARRAY<INT>``."""
    return _SIMPLE[type(kind)][0]


@spark_type.register
def _(kind: t.DecimalType) -> str:
    return f"DECIMAL({kind.precision},{kind.scale})"


@spark_type.register
def _(kind: t.ArrayType) -> str:
    return f"ARRAY<{spark_type(kind.element)}>"


@spark_type.register
def _(kind: t.MapType) -> str:
    return f"ARRAY<STRUCT<key: {spark_type(kind.key)}, value: {spark_type(kind.value)}>>"


@spark_type.register
def _(kind: t.MultisetType) -> str:
    return f"ARRAY<STRUCT<key: {spark_type(kind.element)}, value: INT>>"


@spark_type.register
def _(kind: t.RowType) -> str:
    return "STRUCT<" + ", ".join(f"{quote(f.name)}: {spark_type(f.type)}" for f in kind.fields) + ">"


@singledispatch
def arrow_type(kind: t.LogicalType) -> pa.DataType:
    """The Arrow type that carries values of ``kind`` between Spark and kernels."""
    return _SIMPLE[type(kind)][1]


@arrow_type.register
def _(kind: t.DecimalType) -> pa.DataType:
    return pa.decimal128(kind.precision, kind.scale)


@arrow_type.register
def _(kind: t.ArrayType) -> pa.DataType:
    return pa.list_(arrow_type(kind.element))


@arrow_type.register
def _(kind: t.MapType) -> pa.DataType:
    return pa.list_(pa.struct([("key", arrow_type(kind.key)), ("value", arrow_type(kind.value))]))


@arrow_type.register
def _(kind: t.MultisetType) -> pa.DataType:
    return pa.list_(pa.struct([("key", arrow_type(kind.element)), ("value", pa.int32())]))


@arrow_type.register
def _(kind: t.RowType) -> pa.DataType:
    return pa.struct([(f.name, arrow_type(f.type)) for f in kind.fields])


def spark_schema(fields: tuple[t.Field, ...]) -> str:
    """A Spark DDL schema text for a row of ``fields``."""
    return ", ".join(f"{quote(f.name)} {spark_type(f.type)}" for f in fields)


def arrow_schema(fields: tuple[t.Field, ...]) -> pa.Schema:
    """The Arrow schema for a row of ``fields``."""
    return pa.schema([(f.name, arrow_type(f.type)) for f in fields])
