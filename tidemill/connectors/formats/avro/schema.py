"""Reads Avro schemas from JSON, and maps them to Arrow types."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pyarrow as pa
from fastavro.schema import SchemaParseException, UnknownType, expand_schema, parse_schema

Schema = Any
"""As in JSON: a name, an object, or the list of a union."""

_NAMED = ("record", "enum", "fixed")


class UnreadableSchema(Exception):
    """A schema that is no schema of a record, or has no Arrow type."""


def expanded(text: str) -> Schema:
    """Parses a JSON text: each use of a name is replaced by its definition, and each definition gets a name
    of its own. The schema is a record, or a union of null and a record, as in Flink's files. UnreadableSchema
    if the text is no such schema."""
    try:
        schema = _renamed(expand_schema(json.loads(text)), count())
        parse_schema(schema, expand=True)
    except (ValueError, KeyError, TypeError, SchemaParseException, UnknownType, RecursionError) as e:
        raise UnreadableSchema(f"it is no Avro schema that can be read here: {e!r}") from None
    record = branch(schema)
    if not isinstance(record, dict) or record["type"] != "record":
        raise UnreadableSchema("it is no schema of a record")
    return schema


def _renamed(schema: Schema, numbers: Iterator[int]) -> Schema:
    if isinstance(schema, list):
        return [_renamed(part, numbers) for part in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {key: value for key, value in schema.items() if not key.startswith("__") and key != "aliases"}
    for key in ("type", "items", "values"):
        if key in copy:
            copy[key] = _renamed(copy[key], numbers)
    if "fields" in copy:
        copy["fields"] = [_renamed(f, numbers) for f in copy["fields"]]
    if copy["type"] in _NAMED:
        copy["name"] = f"n{next(numbers)}"
        copy.pop("namespace", None)
    return copy


def branch(schema: Schema) -> Schema:
    """The schema of a value that is not null: ``["null", "int"]`` gives ``"int"``. UnreadableSchema for a
    union of several types."""
    if isinstance(schema, list):
        others = [part for part in schema if part != "null"]
        if len(others) > 1:
            raise UnreadableSchema("a union of several types")
        return branch(others[0]) if others else "null"
    if isinstance(schema, dict) and isinstance(schema["type"], dict | list):
        return branch(schema["type"])
    return schema


_PLAIN: dict[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "enum": pa.string(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
}
_LOGICAL: dict[tuple[str, str | None], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    **{
        ("long", f"{local}timestamp-{name}"): pa.timestamp(unit, tz=None if local else "UTC")
        for local in ("", "local-")
        for name, unit in (("millis", "ms"), ("micros", "us"), ("nanos", "ns"))
    },
}


def file_type_of(schema: Schema) -> pa.DataType:
    """The Arrow type of a schema's values. UnreadableSchema if Arrow has no such type."""
    value_schema = branch(schema)
    name = value_schema["type"] if isinstance(value_schema, dict) else value_schema
    if not isinstance(value_schema, dict):
        return _PLAIN[name]
    if name in _NESTED:
        return _NESTED[name](value_schema)
    logical = value_schema.get("logicalType")
    if logical == "decimal" and name in ("bytes", "fixed"):
        return pa.decimal128(value_schema["precision"], value_schema.get("scale", 0))
    return _LOGICAL.get((name, logical), _PLAIN[name])


_NESTED: dict[str, Callable[[Schema], pa.DataType]] = {
    "array": lambda s: pa.list_(file_type_of(s["items"])),
    "map": lambda s: pa.map_(pa.string(), file_type_of(s["values"])),
    "record": lambda s: pa.struct([(f["name"], file_type_of(f["type"])) for f in s["fields"]]),
}


def bare(schema: Schema, decimal: str = "decimal") -> Schema:
    """``schema`` without the logical types of times, so that times are read and written as numbers.
    ``decimal``: the logical type to give to bytes that are a DECIMAL."""
    if isinstance(schema, list):
        return [bare(part, decimal) for part in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {k: v for k, v in schema.items() if k != "logicalType" or v == "decimal"}
    if "logicalType" in copy and copy["type"] == "bytes":
        copy["logicalType"] = decimal
    for key in ("type", "items", "values"):
        if key in copy:
            copy[key] = bare(copy[key], decimal)
    if "fields" in copy:
        copy["fields"] = [bare(f, decimal) for f in copy["fields"]]
    return copy
