"""Types between SQLAlchemy and Flink SQL."""

from __future__ import annotations

from typing import Any

from sqlalchemy import types as sa
from sqlalchemy.sql.compiler import GenericTypeCompiler
from sqlalchemy.types import TypeEngine, to_instance

from tidemill.types import logical as t

Engine = TypeEngine[Any] | type[TypeEngine[Any]]


class MAP(TypeEngine[dict[Any, Any]]):
    """``MAP(sa.String, sa.Integer)``."""

    __visit_name__ = "MAP"

    def __init__(self, key_type: Engine, value_type: Engine) -> None:
        self.key_type, self.value_type = to_instance(key_type), to_instance(value_type)


class MULTISET(TypeEngine[dict[Any, int]]):
    """Elements, and how often each is there."""

    __visit_name__ = "MULTISET"

    def __init__(self, item_type: Engine) -> None:
        self.item_type = to_instance(item_type)


class ROW(TypeEngine[tuple[Any, ...]]):
    """``ROW(("id", sa.Integer), ("name", sa.String))``."""

    __visit_name__ = "ROW"

    def __init__(self, *fields: tuple[str, Engine]) -> None:
        self.fields = tuple((name, to_instance(kind)) for name, kind in fields)


class YEAR_TO_MONTH(TypeEngine[int]):
    """INTERVAL YEAR TO MONTH: a number of months."""

    __visit_name__ = "YEAR_TO_MONTH"


_SIMPLE: dict[type[t.LogicalType], type[TypeEngine[Any]]] = {
    t.BooleanType: sa.BOOLEAN,
    t.TinyIntType: sa.SMALLINT,
    t.SmallIntType: sa.SMALLINT,
    t.IntType: sa.INTEGER,
    t.BigIntType: sa.BIGINT,
    t.FloatType: sa.REAL,
    t.DoubleType: sa.DOUBLE,
    t.DateType: sa.DATE,
    t.TimeType: sa.TIME,
    t.TimestampType: sa.TIMESTAMP,
    t.BinaryType: sa.LargeBinary,
    t.VarBinaryType: sa.LargeBinary,
    t.DayTimeIntervalType: sa.Interval,
    t.YearMonthIntervalType: YEAR_TO_MONTH,
}


def reflected(kind: t.LogicalType) -> TypeEngine[Any]:
    """As a table's reflection shows it."""
    match kind:
        case t.DecimalType():
            return sa.DECIMAL(kind.precision, kind.scale)
        case t.CharType():
            return sa.CHAR(kind.length)
        case t.VarCharType():
            return sa.VARCHAR(None if kind.length == t.MAX_LENGTH else kind.length)
        case t.LocalZonedTimestampType():
            return sa.TIMESTAMP(timezone=True)
        case t.ArrayType():
            return sa.ARRAY(reflected(kind.element))
        case t.MapType():
            return MAP(reflected(kind.key), reflected(kind.value))
        case t.MultisetType():
            return MULTISET(reflected(kind.element))
        case t.RowType():
            return ROW(*((field.name, reflected(field.type)) for field in kind.fields))
    return _SIMPLE.get(type(kind), sa.NullType)()


class TidemillTypes(GenericTypeCompiler):
    """SQLAlchemy's types as Flink SQL writes them; unsized ones hold what Python's values need."""

    def visit_string(self, type_: sa.String, **kw: Any) -> str:
        return "STRING" if type_.length is None else f"VARCHAR({type_.length})"

    visit_VARCHAR = visit_unicode = visit_NVARCHAR = visit_string

    def visit_text(self, type_: sa.Text, **kw: Any) -> str:
        return "STRING"

    visit_TEXT = visit_unicode_text = visit_CLOB = visit_text

    def visit_enum(self, type_: sa.Enum, **kw: Any) -> str:
        return "STRING"

    def visit_float(self, type_: sa.Float[Any], **kw: Any) -> str:
        """Python's float."""
        return "DOUBLE"

    visit_FLOAT = visit_DOUBLE = visit_DOUBLE_PRECISION = visit_float

    def visit_REAL(self, type_: sa.REAL[Any], **kw: Any) -> str:
        return "FLOAT"

    def visit_numeric(self, type_: sa.Numeric[Any], **kw: Any) -> str:
        if type_.precision is None:
            return "DECIMAL(38, 18)"
        return f"DECIMAL({type_.precision}, {type_.scale or 0})"

    visit_NUMERIC = visit_DECIMAL = visit_numeric

    def visit_datetime(self, type_: sa.DateTime, **kw: Any) -> str:
        return "TIMESTAMP_LTZ(6)" if type_.timezone else "TIMESTAMP(6)"

    visit_DATETIME = visit_TIMESTAMP = visit_datetime

    def visit_large_binary(self, type_: sa.LargeBinary, **kw: Any) -> str:
        return "BYTES"

    visit_BLOB = visit_large_binary

    def visit_uuid(self, type_: sa.Uuid[Any], **kw: Any) -> str:
        return "STRING"

    def visit_ARRAY(self, type_: sa.ARRAY[Any], **kw: Any) -> str:
        return f"ARRAY<{self.process(type_.item_type)}>"

    def visit_MAP(self, type_: MAP, **kw: Any) -> str:
        return f"MAP<{self.process(type_.key_type)}, {self.process(type_.value_type)}>"

    def visit_MULTISET(self, type_: MULTISET, **kw: Any) -> str:
        return f"MULTISET<{self.process(type_.item_type)}>"

    def visit_ROW(self, type_: ROW, **kw: Any) -> str:
        quote = self.dialect.identifier_preparer.quote_identifier
        return f"ROW<{', '.join(f'{quote(name)} {self.process(kind)}' for name, kind in type_.fields)}>"

    def visit_YEAR_TO_MONTH(self, type_: YEAR_TO_MONTH, **kw: Any) -> str:
        return "INTERVAL YEAR TO MONTH"
