"""A Spark DataFrame as a table: Flink's types for Spark's, and the carriers of ``types.physical``."""

from __future__ import annotations

from functools import singledispatch
from typing import TypeGuard

from pyspark.sql import DataFrame
from pyspark.sql import types as st

from tidemill.errors import NotSupportedError, ValidationError
from tidemill.functions.values import in_order
from tidemill.types import logical as t
from tidemill.types.physical import quote

_SIMPLE: dict[type[st.DataType], t.LogicalType] = {
    st.BooleanType: t.BooleanType(),
    st.ByteType: t.TinyIntType(),
    st.ShortType: t.SmallIntType(),
    st.IntegerType: t.IntType(),
    st.LongType: t.BigIntType(),
    st.FloatType: t.FloatType(),
    st.DoubleType: t.DoubleType(),
    st.StringType: t.STRING,
    st.BinaryType: t.BYTES,
    st.DateType: t.DateType(),
    st.TimestampType: t.LocalZonedTimestampType(),
    st.TimestampNTZType: t.TimestampType(),
    st.NullType: t.NullType(),
}


def is_frame(table: object) -> TypeGuard[DataFrame]:
    return isinstance(table, DataFrame)


def flink_fields(frame: DataFrame) -> tuple[t.Field, ...]:
    """The frame's columns; NOT NULL where Spark says so. Raises for types that Flink has no word for."""
    names = [f.name for f in frame.schema.fields]
    if len(set(names)) != len(names):
        raise ValidationError(f"The DataFrame has column names that are not unique: {names}")
    return tuple(
        t.Field(f.name, flink_type(f.dataType).with_nullable(f.nullable)) for f in frame.schema.fields
    )


@singledispatch
def flink_type(kind: st.DataType) -> t.LogicalType:
    """The Flink type of a Spark type, nullable."""
    found = _SIMPLE.get(type(kind))
    if found is None:
        raise NotSupportedError(f"A DataFrame column of Spark type '{kind.simpleString()}' is not supported")
    return found


@flink_type.register
def _(kind: st.DecimalType) -> t.LogicalType:
    return t.DecimalType(precision=kind.precision, scale=kind.scale)


@flink_type.register
def _(kind: st.CharType) -> t.LogicalType:
    return t.CharType(length=kind.length)


@flink_type.register
def _(kind: st.VarcharType) -> t.LogicalType:
    return t.VarCharType(length=kind.length)


@flink_type.register
def _(kind: st.ArrayType) -> t.LogicalType:
    return t.ArrayType(element=flink_type(kind.elementType).with_nullable(kind.containsNull))


@flink_type.register
def _(kind: st.MapType) -> t.LogicalType:
    return t.MapType(
        key=flink_type(kind.keyType).with_nullable(False),
        value=flink_type(kind.valueType).with_nullable(kind.valueContainsNull),
    )


@flink_type.register
def _(kind: st.StructType) -> t.LogicalType:
    return t.RowType(
        fields=tuple(t.Field(f.name, flink_type(f.dataType).with_nullable(f.nullable)) for f in kind.fields)
    )


def carrier_frame(frame: DataFrame, fields: tuple[t.Field, ...]) -> DataFrame:
    """The frame with maps, at any depth, as arrays of entries in the order of their keys."""
    return frame.selectExpr(
        *(f"{in_order(carried(quote(f.name), f.type), f.type)} AS {quote(f.name)}" for f in fields)
    )


def carried(sql: str, kind: t.LogicalType) -> str:
    """Spark SQL that turns the Spark value ``sql`` into the carrier of ``kind``."""
    return sql if not _has_map(kind) else _carried(kind, sql)


@singledispatch
def _carried(kind: t.LogicalType, sql: str) -> str:
    return sql


@_carried.register
def _(kind: t.MapType, sql: str) -> str:
    entry = f"named_struct('key', {carried('e.key', kind.key)}, 'value', {carried('e.value', kind.value)})"
    return f"transform(map_entries({sql}), e -> {entry})"


@_carried.register
def _(kind: t.ArrayType, sql: str) -> str:
    return f"transform({sql}, e -> {carried('e', kind.element)})"


@_carried.register
def _(kind: t.RowType, sql: str) -> str:
    parts = ", ".join(f"'{f.name}', {carried(f'{sql}.{quote(f.name)}', f.type)}" for f in kind.fields)
    return f"IF({sql} IS NULL, NULL, named_struct({parts}))"


@singledispatch
def _has_map(kind: t.LogicalType) -> bool:
    return isinstance(kind, t.MapType)


@_has_map.register
def _(kind: t.ArrayType) -> bool:
    return _has_map(kind.element)


@_has_map.register
def _(kind: t.RowType) -> bool:
    return any(_has_map(f.type) for f in kind.fields)
