"""Many literal rows as Arrow data: as SQL text Spark would parse and analyse each value."""

from __future__ import annotations

import pyarrow as pa

from tidemill.physical import nodes as p
from tidemill.types import logical as t
from tidemill.types.physical import arrow_schema

_AS_THEY_ARE = (
    t.BooleanType,
    t.TinyIntType,
    t.SmallIntType,
    t.IntType,
    t.BigIntType,
    t.DoubleType,
    t.DecimalType,
    t.CharType,
    t.VarCharType,
    t.BinaryType,
    t.VarBinaryType,
    t.DateType,
    t.TimestampType,
)
"""Types whose literals are what Arrow makes values of. A FLOAT's would be rounded twice."""


def values_table(node: p.Values) -> pa.Table | None:
    """The rows of ``node``; None where Spark has to read a column's text itself."""
    if not all(isinstance(f.type, _AS_THEY_ARE) for f in node.fields):
        return None
    schema = arrow_schema(node.fields)
    columns = []
    for place, (field, column) in enumerate(zip(node.fields, schema, strict=True)):
        literals = [row[place] for row in node.rows]
        if not all(v.value is None or type(v.type) is type(field.type) for v in literals):
            return None
        try:
            columns.append(pa.array([v.value for v in literals], column.type))
        except (pa.ArrowException, UnicodeError, OverflowError):
            return None
    return pa.Table.from_arrays(columns, schema=schema)
