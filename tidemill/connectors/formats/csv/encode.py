"""Writes Arrow tables as CSV, with the quoting of Flink's writer.

A text is quoted if it is longer than 24 characters, or has a backslash or a character up to the
larger of delimiter and quote. Numbers and booleans are never quoted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

import pyarrow as pa
import pyarrow.compute as pc

from tidemill.connectors.formats.api import TextEncoder
from tidemill.connectors.formats.csv.dialect import Dialect
from tidemill.functions.text.format_columns import RenderRules, joined, or_null, render
from tidemill.types import logical as t
from tidemill.types.logical import Field

_BARE = (t.BooleanType, *t.NUMERIC_TYPES)
_LONG = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvEncoder(TextEncoder):
    fields: tuple[Field, ...]
    dialect: Dialect

    def texts(self, table: pa.Table) -> pa.Array:
        columns = [self._column(f, table.column(f.name).combine_chunks()) for f in self.fields]
        return pc.binary_join_element_wise(*columns, self.dialect.delimiter)

    def _column(self, field: Field, values: pa.Array) -> pa.Array:
        texts = _texts(field.type, values, self.dialect)
        if self.dialect.quote and not isinstance(field.type, _BARE):
            texts = self._quoted(texts)
        return pc.fill_null(texts, self.dialect.null or "")

    def _quoted(self, texts: pa.Array) -> pa.Array:
        dialect = self.dialect
        safe = max(ord(dialect.delimiter), ord(dialect.quote), ord("\n"))
        special = pc.match_substring_regex(texts, rf"[\x{{0}}-\x{{{safe:x}}}\\]")
        needs = pc.or_(special, pc.greater(pc.utf8_length(texts), _LONG))
        if not pc.any(needs).as_py():
            return texts
        body = texts
        if dialect.escape and dialect.escape != dialect.quote:
            body = pc.replace_substring(body, dialect.escape, dialect.escape * 2)
        body = pc.replace_substring(body, dialect.quote, dialect.quote * 2)
        quoted = pc.binary_join_element_wise(dialect.quote, body, dialect.quote, "")
        return pc.if_else(needs, quoted, texts)


@singledispatch
def _texts(kind: t.LogicalType, values: pa.Array, dialect: Dialect) -> pa.Array:
    return render(kind, values, RenderRules(plain_decimals=not dialect.scientific))


@_texts.register
def _(kind: t.ArrayType, values: pa.Array, dialect: Dialect) -> pa.Array:
    elements = pc.fill_null(_texts(kind.element, values.flatten(), dialect), dialect.null or "")
    return joined(values, elements, dialect.element_delimiter)


@_texts.register
def _(kind: t.RowType, values: pa.Array, dialect: Dialect) -> pa.Array:
    children = [
        pc.fill_null(_texts(f.type, child, dialect), dialect.null or "")
        for f, child in zip(kind.fields, values.flatten(), strict=True)
    ]
    return or_null(values, pc.binary_join_element_wise(*children, dialect.element_delimiter))
