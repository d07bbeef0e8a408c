"""Parameters as SQL, and the protocol's values as Python's."""

from __future__ import annotations

import base64
import datetime as dt
import time
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import singledispatch
from typing import Any

from tidemill.dbapi.errors import ProgrammingError
from tidemill.session.rows.row import Row
from tidemill.sql.lexer import Kind, tokens

Date, Time, Timestamp, Binary = dt.date, dt.time, dt.datetime, bytes


def DateFromTicks(ticks: float) -> dt.date:
    return dt.date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> dt.time:
    return dt.time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> dt.datetime:
    return dt.datetime(*time.localtime(ticks)[:6])


class TypeCode(frozenset[str]):
    """Equal to the name of each type that it stands for."""

    def __eq__(self, other: object) -> bool:
        return other in self if isinstance(other, str) else frozenset.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = frozenset.__hash__


STRING = TypeCode({"CHAR", "VARCHAR"})
BINARY = TypeCode({"BINARY", "VARBINARY"})
NUMBER = TypeCode({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL"})
DATETIME = TypeCode(
    {
        "DATE",
        "TIME_WITHOUT_TIME_ZONE",
        "TIMESTAMP_WITHOUT_TIME_ZONE",
        "TIMESTAMP_WITH_LOCAL_TIME_ZONE",
    }
)
ROWID = TypeCode(())


def with_parameters(statement: str, parameters: Sequence[Any]) -> str:
    """``statement`` with its question marks replaced; ProgrammingError where there are more or fewer."""
    marks = [t.start for t in tokens(statement) if t.kind is Kind.SYMBOL and t.text == "?"]
    if len(marks) != len(parameters):
        raise ProgrammingError(f"The statement has {len(marks)} question marks, not {len(parameters)}.")
    parts, done = [], 0
    for place, value in zip(marks, parameters, strict=True):
        parts += [statement[done:place], literal(value)]
        done = place + 1
    return "".join([*parts, statement[done:]])


@singledispatch
def literal(value: Any) -> str:
    """A value as SQL writes it."""
    raise ProgrammingError(f"A {type(value).__name__} is no parameter.")


@literal.register
def _(value: None) -> str:
    return "NULL"


@literal.register
def _(value: bool) -> str:
    return "TRUE" if value else "FALSE"


@literal.register
def _(value: int) -> str:
    return str(value)


@literal.register
def _(value: float) -> str:
    return f"CAST('{value!r}' AS DOUBLE)"


@literal.register
def _(value: Decimal) -> str:
    text = format(value, "f")
    whole, _, fraction = text.lstrip("-").partition(".")
    return f"CAST('{text}' AS DECIMAL({max(len(whole) + len(fraction), 1)}, {len(fraction)}))"


@literal.register
def _(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


@literal.register
def _(value: bytes) -> str:
    return f"x'{value.hex()}'"


@literal.register
def _(value: dt.date) -> str:
    return f"DATE '{value.isoformat()}'"


@literal.register
def _(value: dt.time) -> str:
    return f"TIME '{value.isoformat(timespec='seconds')}'"


@literal.register
def _(value: dt.datetime) -> str:
    if value.tzinfo is not None:
        raise ProgrammingError("A datetime with a zone is no parameter: give it as text to TO_TIMESTAMP_LTZ.")
    return f"TIMESTAMP '{value.isoformat(sep=' ', timespec='microseconds')}'"


def reader(kind: Mapping[str, Any]) -> Callable[[Any], Any]:
    """From a value of the protocol's JSON, which is not NULL, to Python's."""
    name = kind["type"]
    if name == "ARRAY":
        element = _nullable(reader(kind["elementType"]))
        return lambda value: [element(v) for v in value]
    if name == "MAP":
        inside = _nullable(reader(kind["valueType"]))
        return lambda value: {k: inside(v) for k, v in value.items()}
    if name == "ROW":
        parts = [(f["name"], _nullable(reader(f["fieldType"]))) for f in kind["fields"]]
        names = tuple(name for name, _ in parts)
        return lambda value: Row((read(value[n]) for n, read in parts), names)
    return _READERS.get(name, _same)


def row_reader(columns: Sequence[Mapping[str, Any]]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    readers = [_nullable(reader(c["logicalType"])) for c in columns]
    return lambda row: tuple(read(value) for read, value in zip(readers, row, strict=True))


def _nullable(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else read(value)


def _same(value: Any) -> Any:
    return value


def _instant(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text.removesuffix("Z")).replace(tzinfo=dt.UTC)


_READERS: dict[str, Callable[[Any], Any]] = {
    "FLOAT": float,
    "DOUBLE": float,
    "DECIMAL": lambda value: Decimal(value),
    "BINARY": base64.b64decode,
    "VARBINARY": base64.b64decode,
    "DATE": dt.date.fromisoformat,
    "TIME_WITHOUT_TIME_ZONE": dt.time.fromisoformat,
    "TIMESTAMP_WITHOUT_TIME_ZONE": dt.datetime.fromisoformat,
    "TIMESTAMP_WITH_LOCAL_TIME_ZONE": _instant,
    "INTERVAL_DAY_TIME": lambda value: dt.timedelta(milliseconds=value),
}


def type_code(kind: Mapping[str, Any]) -> str:
    """The type's name, an ARRAY's with its elements' type, as other drivers have it: ``ARRAY<INTEGER>``,
    ``ARRAY<DECIMAL(10, 2)>``."""
    name: str = kind["type"]
    return f"ARRAY<{_element_code(kind['elementType'])}>" if name == "ARRAY" else name


def _element_code(kind: Mapping[str, Any]) -> str:
    """There is no place for its precision beside it."""
    if kind["type"] == "DECIMAL":
        return f"DECIMAL({kind['precision']}, {kind['scale']})"
    return type_code(kind)
