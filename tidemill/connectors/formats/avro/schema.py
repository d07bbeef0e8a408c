"""Avro schemas as writers have them: read from JSON, and as Arrow types."""

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
    """The schema of a JSON text with each use of a name replaced by its definition, and all names different:
    a record, or a union of null and a record, as in files of Flink's. UnreadableSchema if it is none."""
    try:
        found = _renamed(expand_schema(json.loads(text)), count())
        parse_schema(found, expand=True)
    except (ValueError, KeyError, TypeError, SchemaParseException, UnknownType, RecursionError) as e:
        raise UnreadableSchema(f"it is no Avro schema that can be read here: {e!r}") from None
    record = branch(found)
    if not isinstance(record, dict) or record["type"] != "record":
        raise UnreadableSchema("it is no schema of a record")
    return found


def _renamed(schema: Schema, numbers: Iterator[int]) -> Schema:
    if isinstance(schema, list):
        return [_renamed(part, numbers) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if not key.startswith("__") and key != "aliases"}
    for key in ("type", "items", "values"):
        if key in kept:
            kept[key] = _renamed(kept[key], numbers)
    if "fields" in kept:
        kept["fields"] = [_renamed(f, numbers) for f in kept["fields"]]
    if kept["type"] in _NAMED:
        kept["name"] = f"n{next(numbers)}"
        kept.pop("namespace", None)
    return kept


def branch(schema: Schema) -> Schema:
    """What a value is that is not null. UnreadableSchema for a union of several types."""
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
    """The Arrow type of a schema's values. UnreadableSchema where there is none."""
    found = branch(schema)
    name = found["type"] if isinstance(found, dict) else found
    if not isinstance(found, dict):
        return _PLAIN[name]
    if name in _NESTED:
        return _NESTED[name](found)
    logical = found.get("logicalType")
    if logical == "decimal" and name in ("bytes", "fixed"):
        return pa.decimal128(found["precision"], found.get("scale", 0))
    return _LOGICAL.get((name, logical), _PLAIN[name])


_NESTED: dict[str, Callable[[Schema], pa.DataType]] = {
    "array": lambda s: pa.list_(file_type_of(s["items"])),
    "map": lambda s: pa.map_(pa.string(), file_type_of(s["values"])),
    "record": lambda s: pa.struct([(f["name"], file_type_of(f["type"])) for f in s["fields"]]),
}


def bare(schema: Schema, decimal: str = "decimal") -> Schema:
    """Without the logical types of times: their values are read and written as numbers. ``decimal``: the
    logical type of bytes that are a DECIMAL."""
    if isinstance(schema, list):
        return [bare(part, decimal) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {k: v for k, v in schema.items() if k != "logicalType" or v == "decimal"}
    if "logicalType" in kept and kept["type"] == "bytes":
        kept["logicalType"] = decimal
    for key in ("type", "items", "values"):
        if key in kept:
            kept[key] = bare(kept[key], decimal)
    if "fields" in kept:
        kept["fields"] = [bare(f, decimal) for f in kept["fields"]]
    return kept
