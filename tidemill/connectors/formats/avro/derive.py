"""Derives the Avro schema of a table, as Flink derives it.

Its names are Flink's, so that both engines register equal schemas. Example:
``ROW<a INT, ts TIMESTAMP(3)>`` is the record ``org.apache.flink.avro.generated.record`` of two unions with
null; ``ts`` is a long with the logical type timestamp-millis.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import singledispatch

from tidemill.connectors.formats.avro.schema import Schema
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.types import logical as t
from tidemill.types.logical import Field

_NAMESPACE = "org.apache.flink.avro.generated"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MILLIS, _MICROS = 3, 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivation:
    """``identifier``: of the format, for errors; ``legacy``: TIMESTAMP is an instant of milliseconds, as
    Flink maps it by default, and there is no TIMESTAMP_LTZ."""

    identifier: str
    legacy: bool


def derived(fields: tuple[Field, ...], how: Derivation, *, nullable: bool = False) -> str:
    """The JSON text of the schema that Flink derives from a row of ``fields``. ValidationError for types that
    Flink has no schema for. Example: a field ``a INT`` gives ``{"type": "record", "name": "record", ...,
    "fields": [{"name": "a", "type": ["null", "int"], "default": null}]}``."""
    record = _of(t.RowType(fields=fields, nullable=False), "record", how)
    top_record = {"type": "record", "name": "record", "namespace": _NAMESPACE, "fields": record["fields"]}
    return json.dumps(["null", top_record] if nullable else top_record, separators=(",", ":"))


def _nullable(kind: t.LogicalType, name: str, how: Derivation) -> Schema:
    schema = _of(kind, name, how)
    return ["null", schema] if kind.nullable and schema != "null" else schema


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
    schema = {"name": field.name, "type": _nullable(field.type, f"{name}_{field.name}", how)}
    return {**schema, "default": None} if field.type.nullable else schema
