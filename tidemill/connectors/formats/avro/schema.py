"""Avro schemas: the one that Flink derives of a table, and how a writer's schema lies in Arrow.

A derived schema has Flink's names, so that a registry takes the schemas of both engines for one. Example:
``ROW<a INT, ts TIMESTAMP(3)>`` is the record ``org.apache.flink.avro.generated.record`` of two unions with
null; ``ts`` is a long with the logical type timestamp-millis.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import singledispatch
from itertools import count
from typing import Any

import pyarrow as pa
from fastavro.schema import SchemaParseException, UnknownType, expand_schema, parse_schema

from tidemill.errors import NotSupportedError, ValidationError
from tidemill.types import logical as t
from tidemill.types.logical import Field

Schema = Any
"""As in JSON: a name, an object, or the list of a union."""

_NAMESPACE = "org.apache.flink.avro.generated"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAMED = ("record", "enum", "fixed")
_MILLIS, _MICROS = 3, 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivation:
    """``identifier``: of the format, for errors; ``legacy``: TIMESTAMP is an instant of milliseconds, as
    Flink maps it by default, and there is no TIMESTAMP_LTZ."""

    identifier: str
    legacy: bool


def derived(fields: tuple[Field, ...], how: Derivation, *, nullable: bool = False) -> str:
    """The JSON text of the schema that Flink derives of a row of ``fields``. ValidationError where Flink has
    none."""
    record = _of(t.RowType(fields=fields, nullable=False), "record", how)
    named = {"type": "record", "name": "record", "namespace": _NAMESPACE, "fields": record["fields"]}
    return json.dumps(["null", named] if nullable else named, separators=(",", ":"))


def _nullable(kind: t.LogicalType, name: str, how: Derivation) -> Schema:
    made = _of(kind, name, how)
    return ["null", made] if kind.nullable and made != "null" else made


_SIMPLE: dict[type[t.LogicalType], Schema] = {
    t.NullType: "null",
    t.BooleanType: "boolean",
    t.TinyIntType: "int",
    t.SmallIntType: "int",
    t.IntType: "int",
    t.BigIntType: "long",
    t.FloatType: "float",
    t.DoubleType: "double",
    t.CharType: "string",
    t.VarCharType: "string",
    t.BinaryType: "bytes",
    t.VarBinaryType: "bytes",
    t.DateType: {"type": "int", "logicalType": "date"},
    t.TimeType: {"type": "int", "logicalType": "time-millis"},
}


@singledispatch
def _of(kind: t.LogicalType, name: str, how: Derivation) -> Schema:
    if type(kind) not in _SIMPLE:
        raise ValidationError(f"Unsupported to derive Schema for type: {kind}")
    return _SIMPLE[type(kind)]


@_of.register
def _(kind: t.DecimalType, name: str, how: Derivation) -> Schema:
    return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}


@_of.register
def _(kind: t.TimestampType, name: str, how: Derivation) -> Schema:
    if not how.legacy:
        return {"type": "long", "logicalType": f"local-timestamp-{_unit(kind.precision)}"}
    if kind.precision > _MILLIS:
        raise ValidationError(
            f"Avro does not support TIMESTAMP type with precision: {kind.precision},"
            " it only supports precision less than 3.",
            hint=_hint(how, "TIMESTAMP(3)"),
        )
    return {"type": "long", "logicalType": "timestamp-millis"}


@_of.register
def _(kind: t.LocalZonedTimestampType, name: str, how: Derivation) -> Schema:
    if how.legacy:
        raise ValidationError(
            f"Unsupported to derive Schema for type: {kind}", hint=_hint(how, "TIMESTAMP(3)")
        )
    return {"type": "long", "logicalType": f"timestamp-{_unit(kind.precision)}"}


def _hint(how: Derivation, other: str) -> str:
    return f"Declare {other}, or set '{how.identifier}.timestamp_mapping.legacy' = 'false'."


def _unit(precision: int) -> str:
    return "millis" if precision <= _MILLIS else "micros" if precision <= _MICROS else "nanos"


@_of.register
def _(kind: t.ArrayType, name: str, how: Derivation) -> Schema:
    return {"type": "array", "items": _nullable(kind.element, name, how)}


@_of.register
def _(kind: t.MapType, name: str, how: Derivation) -> Schema:
    return _map(kind.key, kind.value, name, how)


@_of.register
def _(kind: t.MultisetType, name: str, how: Derivation) -> Schema:
    return _map(kind.element, t.INT, name, how)


def _map(key: t.LogicalType, value: t.LogicalType, name: str, how: Derivation) -> Schema:
    if not isinstance(key, t.CHARACTER_TYPES):
        raise NotSupportedError(
            f"Avro format doesn't support non-string as key type of map. The key type is: {key}"
        )
    return {"type": "map", "values": _nullable(value, name, how)}


@_of.register
def _(kind: t.RowType, name: str, how: Derivation) -> Schema:
    return {"type": "record", "name": name, "fields": [_field(f, name, how) for f in kind.fields]}


def _field(field: Field, name: str, how: Derivation) -> Schema:
    if not _NAME.fullmatch(field.name):
        raise ValidationError(
            f"Column '{field.name}' cannot be a field of an Avro record: names have letters, digits and '_'."
        )
    made = {"name": field.name, "type": _nullable(field.type, f"{name}_{field.name}", how)}
    return {**made, "default": None} if field.type.nullable else made


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
