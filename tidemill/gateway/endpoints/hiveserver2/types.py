"""The protocol's names of types, and JDBC's numbers of types.

Types that Hive lacks are STRING: TIME, and intervals before version 8. TIMESTAMP_LTZ is a TIMESTAMP in the
session's time zone. Collections have their types' names, and JSON texts as values, as in Hive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidemill.gateway.endpoints.hiveserver2.structs import structs
from tidemill.types import logical as t

_STRING = 7
_LONGEST_VARCHAR, _LONGEST_CHAR = 65_535, 255
_INTERVALS_SINCE = 7


@dataclass(frozen=True, slots=True)
class WireType:
    """``jdbc``: the constant of ``java.sql.Types``; ``radix``: 0 if the type is no number."""

    id: int
    name: str
    jdbc: int
    radix: int = 0
    precision: int | None = None


_OTHER = 1111
STRING = WireType(_STRING, "STRING", 12)
_TYPES: dict[type[t.LogicalType], WireType] = {
    t.BooleanType: WireType(0, "BOOLEAN", 16),
    t.TinyIntType: WireType(1, "TINYINT", -6, 10, 3),
    t.SmallIntType: WireType(2, "SMALLINT", 5, 10, 5),
    t.IntType: WireType(3, "INT", 4, 10, 10),
    t.BigIntType: WireType(4, "BIGINT", -5, 10, 19),
    t.FloatType: WireType(5, "FLOAT", 6, 10, 7),
    t.DoubleType: WireType(6, "DOUBLE", 8, 10, 15),
    t.TimestampType: WireType(8, "TIMESTAMP", 93),
    t.LocalZonedTimestampType: WireType(8, "TIMESTAMP", 93),
    t.BinaryType: WireType(9, "BINARY", -2),
    t.VarBinaryType: WireType(9, "BINARY", -2),
    t.ArrayType: WireType(10, "ARRAY", 2003),
    t.MapType: WireType(11, "MAP", 2000),
    t.MultisetType: WireType(11, "MAP", 2000),
    t.RowType: WireType(12, "STRUCT", 2002),
    t.DecimalType: WireType(15, "DECIMAL", 3, 10, 38),
    t.NullType: WireType(16, "VOID", 0),
    t.DateType: WireType(17, "DATE", 91),
    t.VarCharType: WireType(18, "VARCHAR", 12),
    t.CharType: WireType(19, "CHAR", 1),
    t.YearMonthIntervalType: WireType(20, "INTERVAL_YEAR_MONTH", _OTHER),
    t.DayTimeIntervalType: WireType(21, "INTERVAL_DAY_TIME", _OTHER),
    t.TimeType: STRING,
}
ALL = tuple(sorted({*_TYPES.values()}, key=lambda found: found.id))


def wire_type(kind: t.LogicalType, version: int) -> WireType:
    """The type by which clients of ``version`` know ``kind``."""
    if isinstance(kind, t.VarCharType) and kind.length > _LONGEST_VARCHAR:
        return STRING
    if isinstance(kind, t.CharType) and kind.length > _LONGEST_CHAR:
        return STRING
    if isinstance(kind, t.INTERVAL_TYPES) and version < _INTERVALS_SINCE:
        return STRING
    return _TYPES[type(kind)]


def column_size(kind: t.LogicalType) -> int | None:
    """JDBC's COLUMN_SIZE: digits of numbers, the longest length of others."""
    if isinstance(kind, t.DecimalType):
        return kind.precision
    if isinstance(kind, t.LengthType):
        return kind.length
    return _TYPES[type(kind)].precision


def decimal_digits(kind: t.LogicalType) -> int | None:
    if isinstance(kind, t.DecimalType):
        return kind.scale
    if isinstance(kind, t.TIMESTAMP_TYPES):
        return kind.precision
    return 0 if isinstance(kind, t.INTEGER_TYPES) else None


def schema(fields: tuple[t.Field, ...], version: int) -> Any:
    """The protocol's schema of a result's columns."""
    thrift = structs()
    columns = [
        thrift.TColumnDesc(field.name, _description(field.type, version), position, "")
        for position, field in enumerate(fields, start=1)
    ]
    return thrift.TTableSchema(columns)


def _description(kind: t.LogicalType, version: int) -> Any:
    thrift = structs()
    wire = wire_type(kind, version)
    entry = thrift.TPrimitiveTypeEntry(wire.id, None if wire is STRING else _qualifiers(kind))
    return thrift.TTypeDesc([thrift.TTypeEntry(primitiveEntry=entry)])


def _qualifiers(kind: t.LogicalType) -> Any:
    match kind:
        case t.DecimalType():
            qualifiers = {"precision": kind.precision, "scale": kind.scale}
        case t.CharType() | t.VarCharType():
            qualifiers = {"characterMaximumLength": kind.length}
        case _:
            return None
    thrift = structs()
    return thrift.TTypeQualifiers({k: thrift.TTypeQualifierValue(i32Value=v) for k, v in qualifiers.items()})
