"""Flink's logical types as frozen values.

A type is a value: equal types compare equal, ``str(type)`` is Flink's own text ("BIGINT NOT NULL",
"ROW<`a` INT, `b` STRING>"). Physical carriers in Spark and Arrow are in ``types.physical``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

MAX_LENGTH = 2147483647
MAX_DECIMAL_PRECISION = 38
MAX_TIME_PRECISION = 3
MAX_TIMESTAMP_PRECISION = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalType:
    """Root of all types; ``nullable`` is part of the type, as in Flink."""

    nullable: bool = True

    def text(self) -> str:
        """The type's text without nullability."""
        raise NotImplementedError

    def with_nullable(self, nullable: bool) -> Self:
        return self if self.nullable == nullable else replace(self, nullable=nullable)

    @property
    def time_attribute(self) -> str:
        """ROWTIME or PROCTIME, '' for what is no time attribute."""
        return ""

    @property
    def mark(self) -> str:
        """What the text ends with for a time attribute; NOT NULL stands before it."""
        return f" *{self.time_attribute}*" if self.time_attribute else ""

    def __str__(self) -> str:
        if self.nullable:
            return self.text()
        return f"{self.text().removesuffix(self.mark)} NOT NULL{self.mark}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleType(LogicalType):
    """A type without parameters."""

    NAME: ClassVar[str] = ""

    def text(self) -> str:
        return self.NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class BooleanType(SimpleType):
    NAME: ClassVar[str] = "BOOLEAN"


@dataclass(frozen=True, slots=True, kw_only=True)
class TinyIntType(SimpleType):
    NAME: ClassVar[str] = "TINYINT"


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallIntType(SimpleType):
    NAME: ClassVar[str] = "SMALLINT"


@dataclass(frozen=True, slots=True, kw_only=True)
class IntType(SimpleType):
    NAME: ClassVar[str] = "INT"


@dataclass(frozen=True, slots=True, kw_only=True)
class BigIntType(SimpleType):
    NAME: ClassVar[str] = "BIGINT"


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatType(SimpleType):
    NAME: ClassVar[str] = "FLOAT"


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubleType(SimpleType):
    NAME: ClassVar[str] = "DOUBLE"


@dataclass(frozen=True, slots=True, kw_only=True)
class DateType(SimpleType):
    NAME: ClassVar[str] = "DATE"


@dataclass(frozen=True, slots=True, kw_only=True)
class NullType(SimpleType):
    """The type of a bare NULL literal."""

    NAME: ClassVar[str] = "NULL"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecimalType(LogicalType):
    precision: int = 10
    scale: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.precision <= MAX_DECIMAL_PRECISION or not 0 <= self.scale <= self.precision:
            raise ValueError(f"DECIMAL({self.precision}, {self.scale}): precision 1..38, scale 0..precision")

    def text(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthType(LogicalType):
    """CHAR, VARCHAR, BINARY, VARBINARY; length in characters or bytes."""

    NAME: ClassVar[str] = ""
    SHORT: ClassVar[str] = ""
    length: int = 1

    def text(self) -> str:
        if self.SHORT and self.length == MAX_LENGTH:
            return self.SHORT
        return f"{self.NAME}({self.length})"


@dataclass(frozen=True, slots=True, kw_only=True)
class CharType(LengthType):
    NAME: ClassVar[str] = "CHAR"


@dataclass(frozen=True, slots=True, kw_only=True)
class VarCharType(LengthType):
    """VARCHAR(n); STRING is VARCHAR(2147483647)."""

    NAME: ClassVar[str] = "VARCHAR"
    SHORT: ClassVar[str] = "STRING"
    length: int = MAX_LENGTH


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryType(LengthType):
    NAME: ClassVar[str] = "BINARY"


@dataclass(frozen=True, slots=True, kw_only=True)
class VarBinaryType(LengthType):
    """VARBINARY(n); BYTES is VARBINARY(2147483647)."""

    NAME: ClassVar[str] = "VARBINARY"
    SHORT: ClassVar[str] = "BYTES"
    length: int = MAX_LENGTH


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeType(LogicalType):
    precision: int = 0

    def text(self) -> str:
        return f"TIME({self.precision})"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimestampType(LogicalType):
    """TIMESTAMP(p) without time zone; ``rowtime`` marks a time attribute."""

    precision: int = 6
    rowtime: bool = False

    @property
    def time_attribute(self) -> str:
        return "ROWTIME" if self.rowtime else ""

    def text(self) -> str:
        return f"TIMESTAMP({self.precision}){self.mark}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalZonedTimestampType(LogicalType):
    """TIMESTAMP_LTZ(p), an instant; ``attribute`` is '', 'ROWTIME' or 'PROCTIME'."""

    precision: int = 6
    attribute: str = ""

    @property
    def time_attribute(self) -> str:
        return self.attribute

    def text(self) -> str:
        return f"TIMESTAMP_LTZ({self.precision}){self.mark}"


@dataclass(frozen=True, slots=True, kw_only=True)
class YearMonthIntervalType(LogicalType):
    """INTERVAL YEAR/MONTH; ``resolution`` is Flink's text after INTERVAL, values are months."""

    resolution: str = "YEAR(2) TO MONTH"

    def text(self) -> str:
        return f"INTERVAL {self.resolution}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DayTimeIntervalType(LogicalType):
    """INTERVAL DAY..SECOND; ``resolution`` is Flink's text after INTERVAL, values are milliseconds."""

    resolution: str = "SECOND(3)"

    def text(self) -> str:
        return f"INTERVAL {self.resolution}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayType(LogicalType):
    element: LogicalType

    def text(self) -> str:
        return f"ARRAY<{self.element}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class MapType(LogicalType):
    key: LogicalType
    value: LogicalType

    def text(self) -> str:
        return f"MAP<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class MultisetType(LogicalType):
    element: LogicalType

    def text(self) -> str:
        return f"MULTISET<{self.element}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowType(LogicalType):
    """ROW<name type, ...>: nested rows and table rows alike."""

    fields: tuple[Field, ...]

    def text(self) -> str:
        named = (f"`{f.name.replace('`', '``')}` {f.type}" for f in self.fields)
        return "ROW<" + ", ".join(named) + ">"


@dataclass(frozen=True, slots=True)
class Field:
    """A named, typed column."""

    name: str
    type: LogicalType


STRING = VarCharType()
BYTES = VarBinaryType()
BOOLEAN = BooleanType()
INT = IntType()
BIGINT = BigIntType()
DOUBLE = DoubleType()
DATE = DateType()

INTEGER_TYPES = (TinyIntType, SmallIntType, IntType, BigIntType)
APPROXIMATE_TYPES = (FloatType, DoubleType)
EXACT_TYPES = (*INTEGER_TYPES, DecimalType)
NUMERIC_TYPES = (*EXACT_TYPES, *APPROXIMATE_TYPES)
CHARACTER_TYPES = (CharType, VarCharType)
BINARY_TYPES = (BinaryType, VarBinaryType)
TIMESTAMP_TYPES = (TimestampType, LocalZonedTimestampType)
INTERVAL_TYPES = (YearMonthIntervalType, DayTimeIntervalType)
COLLECTION_TYPES = (ArrayType, MapType, MultisetType, RowType)


def without_attribute(kind: LogicalType) -> LogicalType:
    """The type of a value that is no time attribute, whatever it was made of."""
    if isinstance(kind, TimestampType):
        return replace(kind, rowtime=False) if kind.rowtime else kind
    if isinstance(kind, LocalZonedTimestampType):
        return replace(kind, attribute="") if kind.attribute else kind
    return kind
