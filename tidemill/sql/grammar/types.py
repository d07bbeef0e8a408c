"""Flink's type syntax: the part of the grammar that reads a data type.

Names of simple types are a table; the types with their own shape (CHAR(n), DECIMAL(p, s), ROW<...>)
have one method each. A precision beyond Flink's largest is cut to it without a word, as Flink does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NoReturn

from tidemill.errors import NotSupportedError, ValidationError
from tidemill.sql.expressions import TypeSpec
from tidemill.sql.grammar.cursor import Cursor
from tidemill.sql.lexer import Kind, Token
from tidemill.sql.positions import place
from tidemill.types import logical as t

_SIMPLE: dict[str, t.LogicalType] = {
    "BOOLEAN": t.BOOLEAN,
    "TINYINT": t.TinyIntType(),
    "SMALLINT": t.SmallIntType(),
    "INT": t.INT,
    "INTEGER": t.INT,
    "BIGINT": t.BIGINT,
    "FLOAT": t.FloatType(),
    "DATE": t.DATE,
    "STRING": t.STRING,
    "BYTES": t.BYTES,
}
_COLLECTIONS: dict[str, Callable[[t.LogicalType], t.LogicalType]] = {
    "ARRAY": lambda element: t.ArrayType(element=element),
    "MULTISET": lambda element: t.MultisetType(element=element),
}
_UNSUPPORTED = frozenset({"RAW", "VARIANT", "STRUCTURED", "BITMAP", "REAL"})
_YEAR_MONTH = ("YEAR", "QUARTER", "MONTH")
_DAY_TIME = ("WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
UNITS = {unit: unit for unit in (*_YEAR_MONTH, *_DAY_TIME)} | {
    unit + "S": unit for unit in (*_YEAR_MONTH, *_DAY_TIME)
}
_YEAR_MONTH_INTERVAL = t.YearMonthIntervalType(resolution="MONTH")
_DAY_TIME_INTERVAL = t.DayTimeIntervalType(resolution="SECOND(3)")


@dataclass(frozen=True, slots=True)
class Types:
    """``interval_columns``: Flink's SQL has no column or field of an interval type, its printed types do."""

    cursor: Cursor
    interval_columns: bool = False

    def spec(self) -> TypeSpec:
        """A type as CAST and RETURNING write it: too large a precision is cut to the largest."""
        token = self.cursor.current
        kind = self.data_type()
        return place(TypeSpec(this=kind, written=self.cursor.text_since(token)), token)

    def data_type(self) -> t.LogicalType:
        """A type as CAST writes it: without nullability, the element of ``INT ARRAY`` is NOT NULL."""
        kind = self._base_type(self.cursor.current)
        while word := self.cursor.take_any(*_COLLECTIONS):
            kind = _COLLECTIONS[word](kind.with_nullable(False))
        return kind

    def nullable_type(self) -> t.LogicalType:
        """A type as columns and fields write it: ``INT NOT NULL ARRAY``."""
        if self.cursor.at("INTERVAL") and not self.interval_columns:
            self.cursor.fail("<TYPE>")
        kind = self._nullability(self._base_type(self.cursor.current))
        while word := self.cursor.take_any(*_COLLECTIONS):
            kind = self._nullability(_COLLECTIONS[word](kind))
        return kind

    def _nullability(self, kind: t.LogicalType) -> t.LogicalType:
        if self.cursor.take("NOT", "NULL"):
            return kind.with_nullable(False)
        self.cursor.take("NULL")
        return kind

    def _base_type(self, token: Token) -> t.LogicalType:
        if token.kind is not Kind.WORD:
            self.cursor.fail("<TYPE>")
        name = token.upper
        if name in _UNSUPPORTED:
            raise NotSupportedError(f"Type is not supported: {name}", position=token.position)
        if name in _SIMPLE:
            self.cursor.advance()
            return _SIMPLE[name]
        shape = self._SHAPES.get(name)
        if shape is None:
            self._fail_at_type(token)
        self.cursor.advance()
        try:
            return shape(self)
        except ValueError as error:
            raise ValidationError(str(error), position=token.position) from error

    def _fail_at_type(self, token: Token) -> NoReturn:
        if not self.cursor.at_identifier():
            self.cursor.fail("<TYPE>")
        expected = tuple(sorted({*_SIMPLE, *self._SHAPES}))
        message = f"Unknown identifier '{token.value}'"
        raise ValidationError(
            message, position=token.position, expected=expected, hint=self.cursor.nearest(expected)
        )

    def _size(self, default: int, largest: int) -> int:
        """``(n)``, cut to the largest."""
        if not self.cursor.take("("):
            return default
        size = self.cursor.integer()
        self.cursor.expect(")")
        return min(size, largest)

    def _char_type(self) -> t.LogicalType:
        if self.cursor.take("VARYING"):
            return self._varchar_type()
        length = self._size(1, t.MAX_LENGTH)
        self._character_set()
        return t.CharType(length=length)

    def _varchar_type(self) -> t.LogicalType:
        """Without a length it is STRING, as VARBINARY is BYTES; CHAR and BINARY are one long."""
        length = self._size(t.MAX_LENGTH, t.MAX_LENGTH)
        self._character_set()
        return t.VarCharType(length=length)

    def _character_set(self) -> None:
        if self.cursor.take("CHARACTER", "SET"):
            self.cursor.identifier()

    def _binary_type(self) -> t.LogicalType:
        if self.cursor.take("VARYING"):
            return self._varbinary_type()
        return t.BinaryType(length=self._size(1, t.MAX_LENGTH))

    def _varbinary_type(self) -> t.LogicalType:
        return t.VarBinaryType(length=self._size(t.MAX_LENGTH, t.MAX_LENGTH))

    def _double_type(self) -> t.LogicalType:
        self.cursor.take("PRECISION")
        return t.DOUBLE

    def _decimal_type(self) -> t.LogicalType:
        if not self.cursor.take("("):
            return t.DecimalType(precision=10, scale=0)
        token = self.cursor.current
        precision = self.cursor.integer()
        scale = self.cursor.integer() if self.cursor.take(",") else 0
        self.cursor.expect(")")
        precision = min(precision, t.MAX_DECIMAL_PRECISION)
        if not 1 <= precision <= t.MAX_DECIMAL_PRECISION:
            message = f"Decimal precision must be between 1 and {t.MAX_DECIMAL_PRECISION} (both inclusive)."
            raise ValidationError(message, position=token.position)
        if scale > precision:
            message = f"Decimal scale must be between 0 and the precision {precision} (both inclusive)."
            raise ValidationError(message, position=token.position)
        return t.DecimalType(precision=precision, scale=scale)

    def _time_type(self) -> t.LogicalType:
        precision = self._size(0, t.MAX_TIME_PRECISION)
        self.cursor.take("WITHOUT", "TIME", "ZONE")
        return t.TimeType(precision=precision)

    def _timestamp_type(self) -> t.LogicalType:
        precision = self._timestamp_precision()
        if self.cursor.take("WITH"):
            self.cursor.expect("LOCAL", "TIME", "ZONE")
            return t.LocalZonedTimestampType(precision=precision)
        self.cursor.take("WITHOUT", "TIME", "ZONE")
        return t.TimestampType(precision=precision)

    def _timestamp_ltz_type(self) -> t.LogicalType:
        return t.LocalZonedTimestampType(precision=self._timestamp_precision())

    def _timestamp_precision(self) -> int:
        return self._size(6, t.MAX_TIMESTAMP_PRECISION)

    def _interval_type(self) -> t.LogicalType:
        start = self._interval_unit()
        end = self._interval_unit() if self.cursor.take("TO") else start
        if (start in _YEAR_MONTH) != (end in _YEAR_MONTH):
            self.cursor.fail(*(_YEAR_MONTH if start in _YEAR_MONTH else _DAY_TIME))
        return _YEAR_MONTH_INTERVAL if start in _YEAR_MONTH else _DAY_TIME_INTERVAL

    def _interval_unit(self) -> str:
        """A unit with its precisions read and dropped: every interval has Flink's own resolution."""
        if self.cursor.current.upper not in UNITS:
            self.cursor.fail(*UNITS)
        unit = UNITS[self.cursor.advance().upper]
        if self.cursor.take("("):
            self.cursor.separated(self.cursor.integer)
            self.cursor.expect(")")
        return unit

    def _array_type(self) -> t.LogicalType:
        return t.ArrayType(element=self._element())

    def _multiset_type(self) -> t.LogicalType:
        return t.MultisetType(element=self._element())

    def _element(self) -> t.LogicalType:
        self.cursor.expect("<")
        element = self.nullable_type()
        self.cursor.expect(">")
        return element

    def _map_type(self) -> t.LogicalType:
        self.cursor.expect("<")
        key = self.nullable_type()
        self.cursor.expect(",")
        value = self.nullable_type()
        self.cursor.expect(">")
        return t.MapType(key=key, value=value)

    def _row_type(self) -> t.LogicalType:
        if self.cursor.take("<>"):
            return t.RowType(fields=())
        close = {"<": ">", "(": ")"}[self.cursor.expect_any("<", "(")]
        if self.cursor.take(close):
            return t.RowType(fields=())
        fields = self.cursor.separated(self._row_field)
        self.cursor.expect(close)
        return t.RowType(fields=tuple(fields))

    def _row_field(self) -> t.Field:
        name = self.cursor.identifier().name
        kind = self.nullable_type()
        if self.cursor.at_kind(Kind.STRING):
            self.cursor.string()
        return t.Field(name, kind)

    _SHAPES: ClassVar[dict[str, Callable[[Types], t.LogicalType]]] = {
        "CHAR": _char_type,
        "CHARACTER": _char_type,
        "VARCHAR": _varchar_type,
        "BINARY": _binary_type,
        "VARBINARY": _varbinary_type,
        "DOUBLE": _double_type,
        "DECIMAL": _decimal_type,
        "DEC": _decimal_type,
        "NUMERIC": _decimal_type,
        "TIME": _time_type,
        "TIMESTAMP": _timestamp_type,
        "TIMESTAMP_LTZ": _timestamp_ltz_type,
        "INTERVAL": _interval_type,
        "ARRAY": _array_type,
        "MULTISET": _multiset_type,
        "MAP": _map_type,
        "ROW": _row_type,
    }
