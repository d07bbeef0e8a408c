"""Values of the server as columns of Flink's types. What cannot be held is a ValueError that shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from tidemill.connectors.formats.text_scalars import CSV_RULES, parse
from tidemill.types import logical as t
from tidemill.types.physical import arrow_type

_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
_TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set")
BINARY = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
_MOMENTS = ("datetime", "timestamp")
_READS: dict[type[t.LogicalType], tuple[str, ...]] = {
    t.BooleanType: ("tinyint", "bit"),
    t.TinyIntType: ("tinyint",),
    t.SmallIntType: ("tinyint", "smallint", "year"),
    t.IntType: ("tinyint", "smallint", "mediumint", "int", "year"),
    t.BigIntType: (*_INTEGERS, "year"),
    t.DecimalType: (*_INTEGERS, "decimal"),
    t.FloatType: ("float",),
    t.DoubleType: ("float", "double"),
    t.DateType: ("date",),
    t.TimeType: ("time",),
    t.TimestampType: _MOMENTS,
    t.LocalZonedTimestampType: _MOMENTS,
    **dict.fromkeys((t.CharType, t.VarCharType), _TEXTS),
    **dict.fromkeys((t.BinaryType, t.VarBinaryType), (*BINARY, "bit")),
}
"""By declared type, the server's types (``DATA_TYPE``) that it can read."""
ENCODINGS = {"utf8": "utf-8", "utf8mb3": "utf-8", "utf8mb4": "utf-8", "latin1": "cp1252", "ascii": "ascii"}
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """``kind``: ``DATA_TYPE``; ``text``: ``COLUMN_TYPE``, which has length, sign and an enum's names;
    ``charset``: None of what is no text; ``length``: in bytes, of texts and bytes."""

    name: str
    kind: str
    text: str
    charset: str | None
    length: int

    @property
    def unsigned(self) -> bool:
        return "unsigned" in self.text or "zerofill" in self.text

    @property
    def names(self) -> list[str]:
        """Of an enum or a set."""
        inner = self.text[self.text.index("(") + 1 : self.text.rindex(")")]
        return [part.replace("''", "'") for part in inner[1:-1].split("','")]


def can_declare(kind: t.LogicalType) -> bool:
    return type(kind) in _READS


def can_read(kind: t.LogicalType, column: Column) -> bool:
    if isinstance(kind, t.BooleanType):
        return column.text.split(" ")[0] in ("tinyint(1)", "bit(1)")
    return column.kind in _READS.get(type(kind), ())


def typed(values: Sequence[Any], column: Column, kind: t.LogicalType, zone: str) -> pa.Array:
    """``values`` of the server's ``column`` as ``kind``. ValueError shows one that does not fit."""
    convert = _converter(column, kind, ZoneInfo(zone))
    made = []
    for value in values:
        try:
            made.append(None if value is None else convert(value))
        except (ValueError, TypeError, ArithmeticError, LookupError):
            raise _misfit(value, kind) from None
    try:
        return pa.array(made, arrow_type(kind))
    except (pa.ArrowException, OverflowError):
        for value, one in zip(values, made, strict=True):
            try:
                pa.array([one], arrow_type(kind))
            except (pa.ArrowException, OverflowError):
                raise _misfit(value, kind) from None
        raise


def _misfit(value: object, kind: t.LogicalType) -> ValueError:
    return ValueError(f"'{value}' is no {kind.with_nullable(True)}")


def _converter(column: Column, kind: t.LogicalType, zone: ZoneInfo) -> Callable[[Any], Any]:
    match kind:
        case t.BooleanType():
            return bool if column.kind == "tinyint" else lambda v: any(v)
        case t.DecimalType():
            return lambda v: parse(kind, format(Decimal(v), "f"), CSV_RULES)
        case t.TimeType():
            return lambda v: _millis(v, kind.precision)
        case t.DateType():
            return _date
        case t.TimestampType() | t.LocalZonedTimestampType():
            return lambda v: _moment(v, column, kind, zone)
        case t.BinaryType() | t.VarBinaryType() if column.kind == "bit":
            return lambda v: v[::-1]
        case t.BinaryType() | t.VarBinaryType() if column.kind == "binary":
            return lambda v: v.ljust(column.length, b"\0")
        case t.CharType() | t.VarCharType() if column.kind not in ("enum", "set"):
            encoding = ENCODINGS[column.charset or "utf8"]
            return lambda v: v.decode(encoding) if isinstance(v, bytes) else v
        case _:
            return lambda v: v


def _millis(value: timedelta, precision: int) -> int:
    if not timedelta(0) <= value < _DAY:
        raise ValueError(value)
    millis = value // timedelta(milliseconds=1)
    unit: int = 10 ** max(0, 3 - precision)
    return millis - millis % unit


def _date(value: date) -> date:
    if not isinstance(value, date):
        raise TypeError(value)
    return value


def _moment(value: datetime, column: Column, kind: t.LogicalType, zone: ZoneInfo) -> datetime:
    """``value`` is wall-clock time of a DATETIME, or a TIMESTAMP in UTC."""
    if not isinstance(value, datetime):
        raise TypeError(value)
    assert isinstance(kind, t.TimestampType | t.LocalZonedTimestampType)
    unit = 10 ** max(0, 6 - kind.precision)
    value = value.replace(microsecond=value.microsecond - value.microsecond % unit)
    local = isinstance(kind, t.TimestampType)
    if column.kind == "timestamp":
        moment = value.replace(tzinfo=UTC)
        return moment.astimezone(zone).replace(tzinfo=None) if local else moment
    return value if local else value.replace(tzinfo=zone).astimezone(UTC)
