"""Flink's type syntax: the part of the grammar that reads a data type.

Names of simple types are a table; the types with their own shape (CHAR(n), DECIMAL(p, s), ROW<...>)
have one method each. A precision beyond Flink's largest is cut to it without a word, as Flink does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NoReturn

from tidemill.errors import NotSupportedError, ValidationError
from tidemill.sql.cursor import Cursor
from tidemill.sql.lexer import Kind, Token
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
MAX_TIME_PRECISION = 3
YEAR_MONTH_INTERVAL = t.YearMonthIntervalType(resolution="MONTH")
DAY_TIME_INTERVAL = t.DayTimeIntervalType(resolution="SECOND(3)")


class TypeGrammar(Cursor):
    # Flink's SQL has no column or field of an interval type, though its printed types do.
    intervals_have_columns: ClassVar[bool] = False

    def data_type(self) -> t.LogicalType:
        """A type as CAST writes it: without nullability, the element of ``INT ARRAY`` is NOT NULL."""
        kind = self._base_type(self.current)
        while word := self.take_any(*_COLLECTIONS):
            kind = _COLLECTIONS[word](kind.with_nullable(False))
        return kind

    def nullable_type(self) -> t.LogicalType:
        """A type as columns and fields write it: ``INT NOT NULL ARRAY``."""
        if self.at("INTERVAL") and not self.intervals_have_columns:
            self.fail("<TYPE>")
        kind = self._nullability(self._base_type(self.current))
        while word := self.take_any(*_COLLECTIONS):
            kind = self._nullability(_COLLECTIONS[word](kind))
        return kind

    def _nullability(self, kind: t.LogicalType) -> t.LogicalType:
        if self.take("NOT", "NULL"):
            return kind.with_nullable(False)
        self.take("NULL")
        return kind

    def _base_type(self, token: Token) -> t.LogicalType:
        if token.kind is not Kind.WORD:
            self.fail("<TYPE>")
        name = token.upper
        if name in _UNSUPPORTED:
            raise NotSupportedError(f"Type is not supported: {name}", position=token.position)
        if name in _SIMPLE:
            self.advance()
            return _SIMPLE[name]
        shape = self._SHAPES.get(name)
        if shape is None:
            self._fail_at_type(token)
        self.advance()
        try:
            return shape(self)
        except ValueError as error:
            raise ValidationError(str(error), position=token.position) from error

    def _fail_at_type(self, token: Token) -> NoReturn:
        if not self.at_identifier():
            self.fail("<TYPE>")
        expected = tuple(sorted({*_SIMPLE, *self._SHAPES}))
        message = f"Unknown identifier '{token.value}'"
        raise ValidationError(
            message, position=token.position, expected=expected, hint=self.nearest(expected)
        )

    def _size(self, default: int, largest: int) -> int:
        """``(n)``, cut to the largest."""
        if not self.take("("):
            return default
        size = self.integer()
        self.expect(")")
        return min(size, largest)

    def _char_type(self) -> t.LogicalType:
        if self.take("VARYING"):
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
        if self.take("CHARACTER", "SET"):
            self.identifier()

    def _binary_type(self) -> t.LogicalType:
        if self.take("VARYING"):
            return self._varbinary_type()
        return t.BinaryType(length=self._size(1, t.MAX_LENGTH))

    def _varbinary_type(self) -> t.LogicalType:
        return t.VarBinaryType(length=self._size(t.MAX_LENGTH, t.MAX_LENGTH))

    def _double_type(self) -> t.LogicalType:
        self.take("PRECISION")
        return t.DOUBLE

    def _decimal_type(self) -> t.LogicalType:
        if not self.take("("):
            return t.DecimalType(precision=10, scale=0)
        token = self.current
        precision = self.integer()
        scale = self.integer() if self.take(",") else 0
        self.expect(")")
        precision = min(precision, t.MAX_DECIMAL_PRECISION)
        if not 1 <= precision <= t.MAX_DECIMAL_PRECISION:
            message = f"Decimal precision must be between 1 and {t.MAX_DECIMAL_PRECISION} (both inclusive)."
            raise ValidationError(message, position=token.position)
        if scale > precision:
            message = f"Decimal scale must be between 0 and the precision {precision} (both inclusive)."
            raise ValidationError(message, position=token.position)
        return t.DecimalType(precision=precision, scale=scale)

    def _time_type(self) -> t.LogicalType:
        precision = self._size(0, MAX_TIME_PRECISION)
        self.take("WITHOUT", "TIME", "ZONE")
        return t.TimeType(precision=precision)

    def _timestamp_type(self) -> t.LogicalType:
        precision = self._timestamp_precision()
        if self.take("WITH"):
            self.expect("LOCAL", "TIME", "ZONE")
            return t.LocalZonedTimestampType(precision=precision)
        self.take("WITHOUT", "TIME", "ZONE")
        return t.TimestampType(precision=precision)

    def _timestamp_ltz_type(self) -> t.LogicalType:
        return t.LocalZonedTimestampType(precision=self._timestamp_precision())

    def _timestamp_precision(self) -> int:
        return self._size(6, t.MAX_TIMESTAMP_PRECISION)

    def _interval_type(self) -> t.LogicalType:
        start = self.interval_unit()
        end = self.interval_unit() if self.take("TO") else start
        if (start in _YEAR_MONTH) != (end in _YEAR_MONTH):
            self.fail(*(_YEAR_MONTH if start in _YEAR_MONTH else _DAY_TIME))
        return YEAR_MONTH_INTERVAL if start in _YEAR_MONTH else DAY_TIME_INTERVAL

    def interval_unit(self) -> str:
        """A unit with its precisions read and dropped: every interval has Flink's own resolution."""
        if self.current.upper not in UNITS:
            self.fail(*UNITS)
        unit = UNITS[self.advance().upper]
        if self.take("("):
            self.separated(self.integer)
            self.expect(")")
        return unit

    def _array_type(self) -> t.LogicalType:
        return t.ArrayType(element=self._element())

    def _multiset_type(self) -> t.LogicalType:
        return t.MultisetType(element=self._element())

    def _element(self) -> t.LogicalType:
        self.expect("<")
        element = self.nullable_type()
        self.close_angle()
        return element

    def _map_type(self) -> t.LogicalType:
        self.expect("<")
        key = self.nullable_type()
        self.expect(",")
        value = self.nullable_type()
        self.close_angle()
        return t.MapType(key=key, value=value)

    def _row_type(self) -> t.LogicalType:
        if self.take("<>"):
            return t.RowType(fields=())
        close = {"<": ">", "(": ")"}[self.expect_any("<", "(")]
        if self.take(close):
            return t.RowType(fields=())
        fields = self.separated(lambda: self._row_field())
        self.expect(close)
        return t.RowType(fields=tuple(fields))

    def _row_field(self) -> t.Field:
        name = self.identifier().name
        kind = self.nullable_type()
        if self.at_kind(Kind.STRING):
            self.string()
        return t.Field(name, kind)

    def close_angle(self) -> None:
        self.expect(">")

    _SHAPES: ClassVar[dict[str, Callable[[TypeGrammar], t.LogicalType]]] = {
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
