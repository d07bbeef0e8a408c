"""Flink's types and those of a Delta table's columns."""

from __future__ import annotations

from functools import singledispatch

import pyarrow as pa

from tidemill.connectors.formats.columnar.carriers import file_type
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.types import logical as t
from tidemill.types.logical import Field

_WIDER: dict[pa.DataType, tuple[pa.DataType, ...]] = {
    pa.int16(): (pa.int8(),),
    pa.int32(): (pa.int8(), pa.int16()),
    pa.int64(): (pa.int8(), pa.int16(), pa.int32()),
    pa.float64(): (pa.float32(),),
    pa.timestamp("us"): (pa.timestamp("us", tz="UTC"),),
}
"""Stored types that a column of the first type reads as they are."""


def delta_field(field: Field) -> pa.Field:
    """NotSupportedError for a type that Delta does not have."""
    _check(field.type, field.name)
    return pa.field(field.name, file_type(field.type), nullable=field.type.nullable)


def check_column(table: str, field: Field, stored: pa.Schema, *, written: bool) -> None:
    """ValidationError where a column of the declaration is not the table's."""
    wanted = delta_field(field)
    if field.name not in stored.names:
        raise ValidationError(
            f"Delta table '{table}' has no column '{field.name}'.", expected=tuple(stored.names)
        )
    found = stored.field(field.name)
    fits = _same(found.type, wanted.type) or (not written and found.type in _WIDER.get(wanted.type, ()))
    if not fits:
        raise ValidationError(
            f"Column '{field.name}' of Delta table '{table}' is {found.type}, but declared as {field.type}."
        )
    if written and wanted.nullable and not found.nullable:
        raise ValidationError(
            f"Column '{field.name}' of Delta table '{table}' is NOT NULL: declare it so.",
        )


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
    raise NotSupportedError(f"Column '{name}': Delta tables have no type for {kind}")


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
