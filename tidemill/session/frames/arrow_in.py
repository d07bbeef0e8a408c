"""Converts rows of a Python program to a table: Arrow data, pandas frames, lists of elements.

All rows first become an Arrow table. Its types are the columns' types, unless a schema gives them: a list of
names, or Flink's ``ROW<name TYPE, ...>``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import singledispatch
from typing import TYPE_CHECKING, Any, TypeGuard

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tidemill.errors import ValidationError
from tidemill.sql.parser import parse_type
from tidemill.types import logical as t
from tidemill.types.entries import in_order
from tidemill.types.physical import arrow_type, spark_schema
from tidemill.user_functions.annotations import type_text

if TYPE_CHECKING:
    import pandas as pd

Schema = str | Sequence[str] | None


def is_pandas(rows: object) -> TypeGuard[pd.DataFrame]:
    """Whether ``rows`` is a pandas frame. If nothing has imported pandas, there is no frame."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(rows, pandas.DataFrame)


def from_pandas(frame: pd.DataFrame, schema: Schema) -> pa.Table:
    """The frame without its index. Timestamps are truncated to microseconds, categories become their values,
    and missing values (NaN, too) are NULL."""
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as e:
        raise ValidationError(f"The pandas frame cannot be a table: {e}") from e
    return _named(_narrowed(table.replace_schema_metadata(None)), schema)


def from_elements(elements: Iterable[Any], schema: Schema) -> pa.Table:
    """Tuples, lists or dicts of one length, or plain values for one column; unnamed columns are ``_1``, …"""
    rows = [tuple(e.values()) if isinstance(e, Mapping) else _row(e) for e in elements]
    if not rows:
        raise ValidationError("from_elements() needs an element at least: a table's types come from them")
    if len({len(row) for row in rows}) > 1:
        raise ValidationError("from_elements(): the elements are not all of one length")
    schema_fields = _fields_of(schema)
    types = [None] * len(rows[0]) if schema_fields is None else [_plain_type(f.type) for f in schema_fields]
    if len(types) != len(rows[0]):
        raise ValidationError(f"The schema has {len(types)} columns, the elements have {len(rows[0])}")
    try:
        columns = [pa.array(c, k) for c, k in zip(zip(*rows, strict=True), types, strict=True)]
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as e:
        raise ValidationError(f"from_elements(): the elements do not fit a type: {e}") from e
    names = [f"_{i}" for i in range(1, len(columns) + 1)]
    return _named(_narrowed(pa.table(columns, names=names)), schema)


def fields_of(table: pa.Table, schema: Schema) -> tuple[t.Field, ...]:
    """The columns with Flink's types. ValidationError if Flink has no such type."""
    schema_fields = _fields_of(schema)
    if schema_fields is not None:
        return schema_fields
    return tuple(t.Field(f.name, _type_of(f)) for f in table.schema)


def _type_of(field: pa.Field) -> t.LogicalType:
    try:
        return parse_type(type_text(field.type))
    except TypeError as e:
        raise ValidationError(f"Column '{field.name}': {e}") from e


def carrier_frame(spark: SparkSession, table: pa.Table, fields: tuple[t.Field, ...]) -> DataFrame:
    """A Spark frame of the values in their carriers (``types.physical``)."""
    try:
        columns = [_ordered(_carriers(f.type, table.column(i)), f.type) for i, f in enumerate(fields)]
    except pa.ArrowException as e:
        raise ValidationError(f"The values do not fit the schema: {e}") from e
    carried = pa.table(columns, names=[f.name for f in fields])
    return spark.createDataFrame(carried, spark_schema(fields))


def _ordered(column: pa.ChunkedArray, kind: t.LogicalType) -> pa.ChunkedArray:
    return pa.chunked_array([in_order(chunk, kind) for chunk in column.chunks], column.type)


@singledispatch
def _carriers(kind: t.LogicalType, column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(arrow_type(kind))


@_carriers.register
def _(kind: t.TimeType, column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.time32("ms"), safe=False).cast(pa.int32())


@_carriers.register
def _(kind: t.MapType, column: pa.ChunkedArray) -> pa.ChunkedArray:
    entries = [None if v is None else [{"key": k, "value": x} for k, x in v] for v in column.to_pylist()]
    return pa.chunked_array([pa.array(entries, arrow_type(kind))])


def _plain_type(kind: t.LogicalType) -> pa.DataType:
    """The Arrow type of Python objects for values of ``kind``."""
    if isinstance(kind, t.TimeType):
        return pa.time64("us")
    if isinstance(kind, t.MapType):
        return pa.map_(arrow_type(kind.key), arrow_type(kind.value))
    return arrow_type(kind)


def _row(element: Any) -> tuple[Any, ...]:
    return tuple(element) if isinstance(element, tuple | list) else (element,)


def _named(table: pa.Table, schema: Schema) -> pa.Table:
    schema_fields = _fields_of(schema)
    names = [f.name for f in schema_fields] if schema_fields is not None else schema
    if names is None:
        names = [str(name) for name in table.column_names]
    if len(names) != table.num_columns:
        raise ValidationError(f"The schema has {len(names)} columns, the data has {table.num_columns}")
    if len(set(names)) != len(names):
        raise ValidationError(f"Column names are not unique: {list(names)}")
    return table.rename_columns(list(names))


def _fields_of(schema: Schema) -> tuple[t.Field, ...] | None:
    if not isinstance(schema, str):
        return None
    parsed = parse_type(schema)
    if not isinstance(parsed, t.RowType):
        raise ValidationError(f"A schema is a list of names or ROW<name TYPE, ...>, not '{schema}'")
    return tuple(parsed.fields)


def _narrowed(table: pa.Table) -> pa.Table:
    """``table`` with times of day in milliseconds and timestamps in microseconds, since carriers are not
    finer, and with dictionaries decoded."""
    schema = pa.schema([pa.field(f.name, _narrow(f.type)) for f in table.schema])
    return table.cast(schema, safe=False)


def _narrow(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _narrow(kind.value_type)
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    return pa.time32("ms") if pa.types.is_time64(kind) else kind
