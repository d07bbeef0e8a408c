"""Rows in the text format of PostgreSQL's COPY, made column by column."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

import pyarrow as pa
import pyarrow.compute as pc

from tidemill.connectors.formats.text_lines import line_bytes
from tidemill.connectors.formats.text_rendering import RenderRules, by_distinct, render
from tidemill.types import logical as t
from tidemill.types.logical import Field

_RULES = RenderRules(plain_decimals=True)
_ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"))
_NULL = "\\N"


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyText:
    fields: tuple[Field, ...]

    def encode(self, table: pa.Table) -> pa.Buffer:
        kinds = {f.name: f.type for f in self.fields}
        columns = [
            pc.fill_null(_escaped(_texts(kinds[name], table.column(name).combine_chunks())), _NULL)
            for name in table.column_names
        ]
        lines = pc.binary_join_element_wise(*columns, "\t")
        return line_bytes(lines)


def _escaped(texts: pa.Array) -> pa.Array:
    if not pc.any(pc.match_substring_regex(texts, r"[\\\t\n\r]")).as_py():
        return texts
    for plain, escape in _ESCAPES:
        texts = pc.replace_substring(texts, plain, escape)
    return texts


@singledispatch
def _texts(kind: t.LogicalType, values: pa.Array) -> pa.Array:
    return render(kind, values, _RULES)


@_texts.register
def _(kind: t.DecimalType, values: pa.Array) -> pa.Array:
    return values.cast(pa.string())


@_texts.register(t.BinaryType)
@_texts.register(t.VarBinaryType)
def _(kind: t.LogicalType, values: pa.Array) -> pa.Array:
    return by_distinct(values, lambda v: "\\x" + v.hex())


@_texts.register
def _(kind: t.ArrayType, values: pa.Array) -> pa.Array:
    """PostgreSQL's array literal; every element but NULL is quoted, which suits all types."""
    elements = _texts(kind.element, values.flatten())
    for plain, escape in (("\\", "\\\\"), ('"', '\\"')):
        elements = pc.replace_substring(elements, plain, escape)
    quoted = pc.fill_null(pc.binary_join_element_wise('"', elements, '"', ""), "NULL")
    lengths = pc.fill_null(pc.list_value_length(values), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, quoted), ",")
    literal = pc.binary_join_element_wise("{", joined, "}", "")
    return pc.if_else(values.is_valid(), literal, pa.scalar(None, pa.string()))
