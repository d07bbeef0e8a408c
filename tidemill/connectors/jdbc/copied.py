"""Rows out of PostgreSQL as columns: COPY in CSV, decoded by Arrow's own reader, no Python object per value.

Only what both write and read alike goes this way. A text that Arrow takes for no value of the declared type
is nothing that this module decides about: ``copied`` gives None, and the driver's objects are looked at.
"""

from __future__ import annotations

import psycopg
import pyarrow as pa
import pyarrow.csv as csv
from sqlalchemy import Connection

from tidemill.connectors.jdbc.copy_rows import COPY_OPTIONS, array_literal
from tidemill.connectors.jdbc.target import quote
from tidemill.types import logical as t
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_schema

_PLAIN = (
    t.BooleanType,
    t.TinyIntType,
    t.SmallIntType,
    t.IntType,
    t.BigIntType,
    t.FloatType,
    t.DoubleType,
    t.DecimalType,
    t.DateType,
    t.TimestampType,
    *t.CHARACTER_TYPES,
)
_CONVERT = {
    "null_values": [""],
    "strings_can_be_null": True,
    "quoted_strings_can_be_null": False,
    "true_values": ["t"],
    "false_values": ["f"],
}
_PARSE = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
_LARGEST = 1 << 30


def can_be_copied(fields: tuple[Field, ...]) -> bool:
    return all(isinstance(f.type, _PLAIN) for f in fields)


def chosen(key: Field, values: pa.Array) -> str:
    """The condition that ``key`` is one of ``values``; the literal takes the type of the server's column."""
    literal = array_literal(key.type, values).replace("'", "''")
    return f"{quote(key.name)} = ANY('{literal}')"


def copied(open: Connection, table: str, fields: tuple[Field, ...], condition: str) -> pa.Table | None:
    """The rows of ``table`` (quoted) that meet ``condition`` ('': all); None where a value does not fit."""
    where = f" WHERE {condition}" if condition else ""
    select = f"SELECT {', '.join(map(_column, fields))} FROM {table}{where}"
    connection = open.connection.driver_connection
    assert isinstance(connection, psycopg.Connection)
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY ({select}) TO STDOUT ({COPY_OPTIONS})".encode()) as out,
    ):
        text = b"".join(out)
    schema = arrow_schema(fields)
    if not text:
        return schema.empty_table()
    names = [f"c{i}" for i in range(len(fields))]
    read = csv.ReadOptions(column_names=names, block_size=min(len(text) + 1, _LARGEST))
    convert = csv.ConvertOptions(column_types=dict(zip(names, schema.types, strict=True)), **_CONVERT)
    try:
        found = csv.read_csv(pa.BufferReader(text), read, _PARSE, convert)
    except pa.ArrowException:
        return None
    return found.rename_columns(schema.names).cast(schema)


def _column(field: Field) -> str:
    """With as many digits behind the point as are declared."""
    name = quote(field.name)
    kind = field.type
    return f"CAST({name} AS NUMERIC(1000, {kind.scale}))" if isinstance(kind, t.DecimalType) else name
