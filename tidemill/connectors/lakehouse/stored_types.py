"""Flink's types and those of the columns of a table of versions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

import pyarrow as pa

from tidemill.connectors.formats.columnar.carriers import file_type
from tidemill.connectors.formats.text_scalars import CSV_RULES, parse
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.types import logical as t
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_type

_WIDER: dict[pa.DataType, tuple[pa.DataType, ...]] = {
    pa.int16(): (pa.int8(),),
    pa.int32(): (pa.int8(), pa.int16()),
    pa.int64(): (pa.int8(), pa.int16(), pa.int32()),
    pa.float64(): (pa.float32(),),
    pa.timestamp("us"): (pa.timestamp("us", tz="UTC"),),
}
"""Stored types that a column of the first type reads as they are."""


def stored_field(field: Field) -> pa.Field:
    """NotSupportedError for a type that such tables do not have here."""
    _check(field.type, field.name)
    return pa.field(field.name, file_type(field.type), nullable=field.type.nullable)


def check_column(table: str, field: Field, stored: pa.Schema, *, written: bool) -> None:
    """ValidationError where a column of the declaration is not the table's."""
    wanted = stored_field(field)
    if field.name not in stored.names:
        raise ValidationError(f"Table '{table}' has no column '{field.name}'.", expected=tuple(stored.names))
    found = stored.field(field.name)
    fits = _same(found.type, wanted.type) or (not written and found.type in _WIDER.get(wanted.type, ()))
    if not fits:
        raise ValidationError(
            f"Column '{field.name}' of table '{table}' is {found.type}, but declared as {field.type}."
        )
    if written and wanted.nullable and not found.nullable:
        raise ValidationError(
            f"Column '{field.name}' of table '{table}' is NOT NULL: declare it so.",
        )


def check_columns(table: str, fields: Sequence[Field], stored: pa.Schema, *, written: bool) -> None:
    """As ``check_column``, of all; a sink must write all columns that there are."""
    missing = [name for name in stored.names if name not in {f.name for f in fields}]
    if written and missing:
        raise ValidationError(f"Table '{table}' has the column '{missing[0]}', which its declaration lacks.")
    for field in fields:
        check_column(table, field, stored, written=written)


def _same(a: pa.DataType, b: pa.DataType) -> bool:
    """Apart from what may be NULL, and from the names that parts of lists and maps have."""
    if pa.types.is_list(a) and pa.types.is_list(b):
        return _same(a.value_type, b.value_type)
    if pa.types.is_map(a) and pa.types.is_map(b):
        return _same(a.key_type, b.key_type) and _same(a.item_type, b.item_type)
    if pa.types.is_struct(a) and pa.types.is_struct(b):
        pairs = list(zip(a, b, strict=False))
        return len(a) == len(b) and all(x.name == y.name and _same(x.type, y.type) for x, y in pairs)
    return bool(a == b)


@singledispatch
def _check(kind: t.LogicalType, name: str) -> None:
    """What Delta has a type for."""


@_check.register(t.TimeType)
@_check.register(t.YearMonthIntervalType)
@_check.register(t.DayTimeIntervalType)
@_check.register(t.NullType)
def _(kind: t.LogicalType, name: str) -> None:
    raise NotSupportedError(f"Column '{name}': there is no type for {kind} in Delta and Iceberg tables here")


@_check.register
def _(kind: t.ArrayType, name: str) -> None:
    _check(kind.element, name)


@_check.register
def _(kind: t.MapType, name: str) -> None:
    _check(kind.key, name)
    _check(kind.value, name)


@_check.register
def _(kind: t.MultisetType, name: str) -> None:
    _check(kind.element, name)


@_check.register
def _(kind: t.RowType, name: str) -> None:
    for field in kind.fields:
        _check(field.type, name)


def typed_value(field: Field, text: str | None) -> object:
    """The value of a partition column from its text in a log or token, as Arrow gives it. ValueError for a
    text that is no value of the column."""
    if text is None:
        return None
    if isinstance(field.type, t.TimestampType | t.LocalZonedTimestampType):
        text = text.replace("T", " ")
    if isinstance(field.type, t.LocalZonedTimestampType) and not text.endswith("Z"):
        text = f"{text}Z"
    try:
        return pa.scalar(parse(field.type, text, CSV_RULES), arrow_type(field.type)).as_py()
    except (ArithmeticError, TypeError, pa.ArrowException) as e:
        raise ValueError(str(e)) from None
