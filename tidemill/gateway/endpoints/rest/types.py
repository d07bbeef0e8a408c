"""A column's type as JSON, in the words of Flink's REST protocol."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import singledispatch
from typing import Any

from tidemill.types import logical as t
from tidemill.types.logical import Field

Json = dict[str, Any]
_NAMES: dict[type[t.LogicalType], str] = {
    t.BooleanType: "BOOLEAN",
    t.TinyIntType: "TINYINT",
    t.SmallIntType: "SMALLINT",
    t.IntType: "INTEGER",
    t.BigIntType: "BIGINT",
    t.FloatType: "FLOAT",
    t.DoubleType: "DOUBLE",
    t.DateType: "DATE",
    t.NullType: "NULL",
    t.CharType: "CHAR",
    t.VarCharType: "VARCHAR",
    t.BinaryType: "BINARY",
    t.VarBinaryType: "VARBINARY",
    t.DecimalType: "DECIMAL",
    t.TimeType: "TIME_WITHOUT_TIME_ZONE",
    t.TimestampType: "TIMESTAMP_WITHOUT_TIME_ZONE",
    t.LocalZonedTimestampType: "TIMESTAMP_WITH_LOCAL_TIME_ZONE",
    t.YearMonthIntervalType: "INTERVAL_YEAR_MONTH",
    t.DayTimeIntervalType: "INTERVAL_DAY_TIME",
    t.ArrayType: "ARRAY",
    t.MapType: "MAP",
    t.MultisetType: "MULTISET",
    t.RowType: "ROW",
}
_UNIT = re.compile(r"([A-Z]+)(?:\((\d+)\))?")


def type_json(kind: t.LogicalType) -> Json:
    return {"type": _NAMES[type(kind)], "nullable": kind.nullable, **_details(kind)}


_KINDS = {name: kind for kind, name in _NAMES.items()}
_SHAPES: dict[str, Callable[[Json], t.LogicalType]] = {
    "ARRAY": lambda j: t.ArrayType(element=type_of(j["elementType"])),
    "MULTISET": lambda j: t.MultisetType(element=type_of(j["elementType"])),
    "MAP": lambda j: t.MapType(key=type_of(j["keyType"]), value=type_of(j["valueType"])),
    "ROW": lambda j: t.RowType(fields=tuple(Field(f["name"], type_of(f["fieldType"])) for f in j["fields"])),
    "INTERVAL_YEAR_MONTH": lambda _: t.YearMonthIntervalType(),
    "INTERVAL_DAY_TIME": lambda _: t.DayTimeIntervalType(),
}


def type_of(described: Json) -> t.LogicalType:
    """The type that ``type_json`` described, intervals without their units; what is not known is a STRING."""
    name = described["type"]
    shape = _SHAPES.get(name)
    if shape is not None:
        return shape(described).with_nullable(described["nullable"])
    kind: Callable[..., t.LogicalType] | None = _KINDS.get(name)
    if kind is None:
        return t.STRING.with_nullable(described["nullable"])
    return kind(**{key: value for key, value in described.items() if key != "type"})


@singledispatch
def _details(kind: t.LogicalType) -> Json:
    return {}


@_details.register
def _(kind: t.LengthType) -> Json:
    return {"length": kind.length}


@_details.register
def _(kind: t.DecimalType) -> Json:
    return {"precision": kind.precision, "scale": kind.scale}


@_details.register(t.TimeType)
@_details.register(t.TimestampType)
@_details.register(t.LocalZonedTimestampType)
def _(kind: t.TimeType | t.TimestampType | t.LocalZonedTimestampType) -> Json:
    return {"precision": kind.precision}


@_details.register
def _(kind: t.YearMonthIntervalType) -> Json:
    units = _UNIT.findall(kind.resolution.replace(" TO ", " "))
    return {"resolution": _resolution(units), "precision": _digits(units, "YEAR", 2)}


@_details.register
def _(kind: t.DayTimeIntervalType) -> Json:
    units = _UNIT.findall(kind.resolution.replace(" TO ", " "))
    return {
        "resolution": _resolution(units),
        "precision": _digits(units, "DAY", 2),
        "fractionalPrecision": _digits(units, "SECOND", 6),
    }


def _resolution(units: list[tuple[str, str]]) -> str:
    return "_TO_".join(name for name, _ in units)


def _digits(units: list[tuple[str, str]], unit: str, default: int) -> int:
    return next((int(digits) for name, digits in units if name == unit and digits), default)


@_details.register
def _(kind: t.ArrayType) -> Json:
    return {"elementType": type_json(kind.element)}


@_details.register
def _(kind: t.MultisetType) -> Json:
    return {"elementType": type_json(kind.element)}


@_details.register
def _(kind: t.MapType) -> Json:
    return {"keyType": type_json(kind.key), "valueType": type_json(kind.value)}


@_details.register
def _(kind: t.RowType) -> Json:
    return {"fields": [{"name": f.name, "fieldType": type_json(f.type)} for f in kind.fields]}
