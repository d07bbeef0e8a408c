"""Arrow types from their texts, as manifests have them.

    arrow_named("list<item: decimal128(10, 2)>")  ->  pa.list_(pa.decimal128(10, 2))

A text may have the version of a column behind it, which is left out.
"""

from __future__ import annotations

import re

import pyarrow as pa

_NOT_NULL = " not null"
_SIMPLE = re.compile(r"[a-z0-9_]+(\[(?:s|ms|us|ns|day)\])?")
_DECIMAL = re.compile(r"decimal128\((\d+), (-?\d+)\)")
_ZONED = re.compile(r"timestamp\[(\w+), tz=([^\]]+)\]")
_NESTED = re.compile(r"(list|struct)<")


def arrow_named(text: str) -> pa.DataType:
    """ValueError for a text of no type that state has."""
    return _type(text)[0]


def _type(text: str) -> tuple[pa.DataType, str]:
    """The type that ``text`` begins with, and what is behind it."""
    if match := _NESTED.match(text):
        fields, rest = _fields(text[match.end() :])
        return (pa.list_(fields[0]) if match[1] == "list" else pa.struct(fields)), rest
    if match := _DECIMAL.match(text):
        return pa.decimal128(int(match[1]), int(match[2])), text[match.end() :]
    if match := _ZONED.match(text):
        return pa.timestamp(match[1], tz=match[2]), text[match.end() :]
    if match := _SIMPLE.match(text):
        return pa.type_for_alias(match[0]), text[match.end() :]
    raise ValueError(f"'{text}' is no type")


def _fields(text: str) -> tuple[list[pa.Field], str]:
    """The fields before the closing bracket."""
    fields: list[pa.Field] = []
    while not text.startswith(">"):
        name, colon, text = text.removeprefix(", ").partition(": ")
        if not colon:
            raise ValueError(f"'{name}' is no field")
        kind, text = _type(text)
        fields.append(pa.field(name, kind, nullable=not text.startswith(_NOT_NULL)))
        text = text.removeprefix(_NOT_NULL)
    return fields, text[1:]
