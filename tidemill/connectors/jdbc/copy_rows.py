"""Rows in the CSV format of PostgreSQL's COPY, made column by column by Arrow's own writer.

Texts are always quoted and NULL never is, which is how COPY tells '' from NULL.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from tidemill.functions.text.format_columns import by_distinct, joined
from tidemill.types import logical as t
from tidemill.types.logical import Field
from tidemill.types.python_values import readable

COPY_OPTIONS = "FORMAT csv"
_WRITE = csv.WriteOptions(include_header=False, quoting_style="needed")


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyRows:
    """``fields``: what a staged table's columns, some of these, hold."""

    fields: tuple[Field, ...]

    def encode(self, table: pa.Table) -> pa.Buffer:
        kinds = {f.name: f.type for f in self.fields}
        columns = [
            _writable(kinds[name], column.combine_chunks())
            for name, column in zip(table.column_names, table.columns, strict=True)
        ]
        sink = pa.BufferOutputStream()
        csv.write_csv(pa.Table.from_arrays(columns, names=table.column_names), sink, _WRITE)
        return sink.getvalue()


def array_literal(kind: t.LogicalType, values: pa.Array) -> str:
    """``values`` as PostgreSQL's literal of one array of ``kind``."""
    whole = pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
    (literal,) = _writable(t.ArrayType(element=kind), whole).to_pylist()
    return str(literal)


@singledispatch
def _writable(kind: t.LogicalType, values: pa.Array) -> pa.Array:
    """``values`` as an array whose CSV text the server reads as ``kind``."""
    return values


@_writable.register(t.CharType)
@_writable.register(t.VarCharType)
def _(kind: t.LogicalType, values: pa.Array) -> pa.Array:
    return readable(values)


@_writable.register
def _(kind: t.TimeType, values: pa.Array) -> pa.Array:
    return values.cast(pa.time32("ms"))


@_writable.register(t.BinaryType)
@_writable.register(t.VarBinaryType)
def _(kind: t.LogicalType, values: pa.Array) -> pa.Array:
    return by_distinct(values, lambda v: "\\x" + v.hex())


@_writable.register
def _(kind: t.ArrayType, values: pa.Array) -> pa.Array:
    """PostgreSQL's array literal; every element but NULL is quoted, which suits all types."""
    elements = _writable(kind.element, values.flatten()).cast(pa.string())
    for plain, escape in (("\\", "\\\\"), ('"', '\\"')):
        elements = pc.replace_substring(elements, plain, escape)
    if not isinstance(kind.element, t.ArrayType):
        elements = pc.binary_join_element_wise('"', elements, '"', "")
    quoted = pc.fill_null(elements, "NULL")
    return pc.binary_join_element_wise("{", joined(values, quoted, ","), "}", "")
