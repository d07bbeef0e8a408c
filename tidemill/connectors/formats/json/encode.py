"""Writes Arrow columns as JSON texts, column by column; an object is joined from the texts of its fields.

The texts equal those of Flink's writer: decimals without trailing zeros (or plain, by option), floats as Java
prints them, BYTES in base64, timestamps by the option's standard. NaN and the infinities are errors.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import singledispatch

import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.rowkind import KIND_COLUMN
from tidemill.connectors.formats.api import TextEncoder
from tidemill.connectors.option_values import OptionValues
from tidemill.errors import ConnectorError
from tidemill.functions.text.format_columns import RenderRules, by_distinct, joined, or_null, render
from tidemill.types import logical as t
from tidemill.types.logical import Field

_BARE = (t.BooleanType, *t.NUMERIC_TYPES)
_NEEDS_ESCAPE = r'["\\\x{0}-\x{1f}]'


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonStyle:
    """``null_keys``: FAIL, DROP or LITERAL, for NULL keys of a MAP; ``null_key``: the text of LITERAL."""

    render: RenderRules
    null_keys: str
    null_key: str
    skip_nulls: bool


def json_style(options: OptionValues) -> JsonStyle:
    return JsonStyle(
        render=RenderRules(
            timestamps=options["timestamp-format.standard"],
            plain_decimals=options["encode.decimal-as-plain-number"],
        ),
        null_keys=options["map-null-key.mode"].upper(),
        null_key=options["map-null-key.literal"],
        skip_nulls=options["encode.ignore-null-fields"],
    )


class UnwritableError(Exception):
    """A value that JSON cannot represent. ``path``: the names of the column and of nested fields."""

    def __init__(self, reason: str, path: tuple[str, ...] = (), hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path
        self.hint = hint


def objects(fields: tuple[Field, ...], columns: list[pa.Array], style: JsonStyle) -> pa.Array:
    """One JSON object per row: the columns a = 1 and b = NULL give ``{"a":1,"b":null}``."""
    if not fields:
        raise ConnectorError("A JSON object needs at least one field.")
    pieces = []
    for field, values in zip(fields, columns, strict=True):
        try:
            text = encode_values(field.type, values, style)
        except UnwritableError as e:
            raise UnwritableError(e.reason, (field.name, *e.path), e.hint) from None
        if not style.skip_nulls:
            text = pc.fill_null(text, "null")
        piece = pc.binary_join_element_wise(f",{_string(field.name)}:", text, "")
        pieces.append(pc.fill_null(piece, ""))
    members = pc.binary_join_element_wise(*pieces, "")
    return pc.binary_join_element_wise("{", pc.replace_substring_regex(members, "^,", ""), "}", "")


def _string(text: str) -> str:
    """``text`` as a JSON string. Only characters that JSON must escape are escaped."""
    return json.dumps(text, ensure_ascii=False)


@singledispatch
def encode_values(kind: t.LogicalType, values: pa.Array, style: JsonStyle) -> pa.Array:
    """The JSON texts of ``values``; NULL stays NULL."""
    texts = render(kind, values, style.render)
    if isinstance(kind, t.APPROXIMATE_TYPES):
        _check_finite(texts, values)
    if isinstance(kind, _BARE):
        return texts
    is_plain = pc.invert(pc.match_substring_regex(texts, _NEEDS_ESCAPE))
    quoted = pc.binary_join_element_wise('"', texts, '"', "")
    if pc.all(pc.fill_null(is_plain, True)).as_py() is not False:
        return quoted
    to_escape = pc.if_else(pc.fill_null(is_plain, True), pa.scalar(None, pa.string()), texts)
    return pc.coalesce(by_distinct(to_escape, _string), quoted)


def _check_finite(texts: pa.Array, values: pa.Array) -> None:
    is_special = pc.invert(pc.is_finite(values))
    if pc.any(is_special).as_py():
        raise UnwritableError(
            f"Infinite or NaN: {texts.filter(is_special)[0]}",
            hint="JSON has no such number: write NULL, or CAST the value to STRING.",
        )


@encode_values.register
def _(kind: t.RowType, values: pa.Array, style: JsonStyle) -> pa.Array:
    texts = objects(kind.fields, values.flatten(), style)
    return or_null(values, texts)


@encode_values.register
def _(kind: t.ArrayType, values: pa.Array, style: JsonStyle) -> pa.Array:
    elements = pc.fill_null(encode_values(kind.element, values.flatten(), style), "null")
    return _joined(values, elements, "[", "]")


@encode_values.register
def _(kind: t.MapType, values: pa.Array, style: JsonStyle) -> pa.Array:
    return _entries(values, kind.key, kind.value, style)


@encode_values.register
def _(kind: t.MultisetType, values: pa.Array, style: JsonStyle) -> pa.Array:
    return _entries(values, kind.element, t.INT, style)


def _entries(values: pa.Array, key: t.LogicalType, value: t.LogicalType, style: JsonStyle) -> pa.Array:
    keys, items = values.flatten().flatten()
    names = encode_values(key, keys, style)
    if keys.null_count:
        if style.null_keys == "FAIL":
            raise UnwritableError(
                "JSON format doesn't support to serialize map data with null keys. You can drop null key"
                " entries or encode null in literals by specifying map-null-key.mode option."
            )
        if style.null_keys == "LITERAL":
            names = pc.fill_null(names, _string(style.null_key))
    texts = pc.fill_null(encode_values(value, items, style), "null")
    pairs = pc.binary_join_element_wise(names, texts, ":")  # NULL where the key is to be dropped
    return _joined(values, pairs, "{", "}")


def _joined(lists: pa.Array, texts: pa.Array, start: str, end: str) -> pa.Array:
    """For each list, the ``texts`` of its elements between ``start`` and ``end``; a NULL text is skipped."""
    return pc.binary_join_element_wise(start, joined(lists, texts, ","), end, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonEncoder(TextEncoder):
    """Plain objects, one a line."""

    fields: tuple[Field, ...]
    style: JsonStyle

    def texts(self, table: pa.Table) -> pa.Array:
        return row_objects(self.fields, table, self.style)


def row_objects(fields: tuple[Field, ...], table: pa.Table, style: JsonStyle) -> pa.Array:
    """One JSON object per row. ConnectorError names the column of a value that JSON cannot represent."""
    try:
        return objects(fields, [table.column(f.name).combine_chunks() for f in fields], style)
    except UnwritableError as e:
        message = f"Could not serialize column '{'.'.join(e.path)}' as JSON: {e.reason}"
        raise ConnectorError(message, hint=e.hint) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeEncoder(TextEncoder):
    """Writes CDC messages. ``insert`` and ``delete`` are the texts before and after a row's object. As in
    Flink, -U is written as a delete, +U as an insert."""

    fields: tuple[Field, ...]
    style: JsonStyle
    insert: tuple[str, str]
    delete: tuple[str, str]

    def texts(self, table: pa.Table) -> pa.Array:
        row = row_objects(self.fields, table, self.style)
        inserted = pc.binary_join_element_wise(self.insert[0], row, self.insert[1], "")
        if KIND_COLUMN not in table.column_names:
            return inserted
        deleted = pc.binary_join_element_wise(self.delete[0], row, self.delete[1], "")
        kinds = table.column(KIND_COLUMN).combine_chunks()
        return pc.if_else(pc.equal(pc.bit_wise_and(kinds, 1), 1), deleted, inserted)
