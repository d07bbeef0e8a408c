"""Dataclasses back out of JSON, each value checked against the annotation of its field.

``read(Column, {"name": "k", "type": 5}, "columns[0]")`` raises ``columns[0].type: expected a text, found 5``.
Files are written by others, too: what does not fit is a StateError that names its place, and no field is
passed over. A field with a default may be missing. Cost: linear.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import MISSING, fields
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from tidemill.catalog.table import CatalogTable, CatalogView
from tidemill.errors import StateError, TidemillError
from tidemill.sql.parser import parse_type
from tidemill.types import logical as t

T = TypeVar("T")
_ATTRIBUTES = ("ROWTIME", "PROCTIME")
_SHOWN = 40
"""Characters of a value that an error shows."""
_KINDS = {"table": CatalogTable, "view": CatalogView}
"""What the key 'kind' says of a table or view."""


def read(kind: type[T], kept: object, place: str) -> T:
    """The value of type ``kind`` that ``kept`` stands for; ``place`` is where it was found."""
    return cast(T, _of(kind, kept, place))


def _of(kind: Any, kept: object, place: str) -> Any:
    origin = get_origin(kind) or kind
    if origin in _READERS:
        return _READERS[origin](kind, kept, place)
    if issubclass(origin, Enum):
        return _choice(kind, kept, place)
    return _fields(kind, kept, place)


def _plain(kind: Any, kept: object, place: str) -> Any:
    if type(kept) is not kind:
        raise _damaged(place, _NAMES[kind], kept)
    return kept


def _items(kept: object, place: str) -> list[Any]:
    """A snapshot that has never been text has tuples."""
    if not isinstance(kept, list | tuple):
        raise _damaged(place, _NAMES[list], kept)
    return list(kept)


def _choice(kind: type[Enum], kept: object, place: str) -> Enum:
    for member in kind:
        if kept == member.value:
            return member
    raise _damaged(place, " or ".join(repr(member.value) for member in kind), kept)


def _type(kind: Any, kept: object, place: str) -> t.LogicalType:
    text = _plain(str, kept, place)
    try:
        return type_named(text)
    except TidemillError as e:
        raise StateError(f"{place}: {e}") from None


def _list(kind: Any, kept: object, place: str) -> list[Any]:
    return _each(get_args(kind)[0], kept, place)


def _each(kind: Any, kept: object, place: str) -> list[Any]:
    return [_of(kind, item, f"{place}[{i}]") for i, item in enumerate(_items(kept, place))]


def _tuple(kind: Any, kept: object, place: str) -> tuple[Any, ...]:
    """``tuple[X, ...]``, or one of as many values as it has types."""
    inner = get_args(kind)
    items = _items(kept, place)
    if inner[-1] is Ellipsis:
        return tuple(_each(inner[0], items, place))
    if len(items) != len(inner):
        raise _damaged(place, f"{len(inner)} values", items)
    return tuple(_of(k, item, f"{place}[{i}]") for i, (k, item) in enumerate(zip(inner, items, strict=True)))


def _dict(kind: Any, kept: object, place: str) -> dict[str, Any]:
    _, inner = get_args(kind)
    return {key: _of(inner, value, f"{place}['{key}']") for key, value in _plain(dict, kept, place).items()}


def _union(kind: Any, kept: object, place: str) -> Any:
    kinds = get_args(kind)
    if kept is None and NoneType in kinds:
        return None
    if kinds == tuple(_KINDS.values()):
        return _table_or_view(kept, place)
    (inner,) = (k for k in kinds if k is not NoneType)
    return _of(inner, kept, place)


def _table_or_view(kept: object, place: str) -> CatalogTable | CatalogView:
    found = _plain(dict, kept, place)
    named = _plain(str, found.get("kind"), f"{place}.kind")
    if named not in _KINDS:
        raise _damaged(f"{place}.kind", "'table' or 'view'", named)
    made: CatalogTable | CatalogView = read(
        _KINDS[named], {k: v for k, v in found.items() if k != "kind"}, place
    )
    _check_columns(made, place)
    return made


def _check_columns(entry: CatalogTable | CatalogView, place: str) -> None:
    """The columns that a table or view names are its own, each of them once."""
    if isinstance(entry, CatalogView):
        if len(entry.column_names) != len(entry.column_types) != 0:
            raise StateError(f"{place}: there are not as many 'column_types' as 'column_names'")
        return
    columns = {column.name: column.type for column in entry.columns}
    if not 0 < len(columns) == len(entry.columns):
        raise StateError(f"{place}.columns: expected names that differ")
    time = entry.watermark and columns.get(entry.watermark.column)
    if entry.watermark and not isinstance(time, t.TimestampType | t.LocalZonedTimestampType):
        raise StateError(f"{place}.watermark.column: '{entry.watermark.column}' is no column of timestamps")
    spread = entry.distribution.columns if entry.distribution else ()
    for name in (*entry.primary_key, *entry.partitioned_by, *spread):
        if name not in columns:
            raise StateError(f"{place}: there is no column '{name}'", expected=tuple(columns))


def _fields(kind: type[T], kept: object, place: str) -> T:
    found = _plain(dict, kept, place)
    hints = _hints(cast(Any, kind))
    unknown = [key for key in found if key not in hints]
    if unknown:
        raise StateError(f"{place}: '{unknown[0]}' is not known", expected=tuple(hints))
    for field in fields(cast(Any, kind)):
        required = field.default is MISSING and field.default_factory is MISSING
        if required and field.name not in found:
            raise StateError(f"{place}: '{field.name}' is missing")
    return kind(**{key: _of(hints[key], value, f"{place}.{key}") for key, value in found.items()})


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def type_named(text: str) -> t.LogicalType:
    """A type by its text; that it is a time attribute is no part of SQL's syntax."""
    plain, star, mark = text.partition(" *")
    kind, attribute = parse_type(plain), mark.rstrip("*")
    if not star:
        return kind
    if attribute in _ATTRIBUTES and isinstance(kind, t.LocalZonedTimestampType):
        return t.LocalZonedTimestampType(
            nullable=kind.nullable, precision=kind.precision, attribute=attribute
        )
    if attribute == "ROWTIME" and isinstance(kind, t.TimestampType):
        return t.TimestampType(nullable=kind.nullable, precision=kind.precision, rowtime=True)
    raise StateError(f"'{text}' is not a type")


def _damaged(place: str, expected: str, found: object) -> StateError:
    shown = _NAMES.get(type(found)) if isinstance(found, list | dict) else json.dumps(found)[:_SHOWN]
    return StateError(f"{place}: expected {expected}, found {shown}")


_NAMES = {
    str: "a text",
    int: "a whole number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}
_READERS: dict[Any, Callable[[Any, object, str], Any]] = {
    str: _plain,
    int: _plain,
    bool: _plain,
    t.LogicalType: _type,
    list: _list,
    tuple: _tuple,
    dict: _dict,
    UnionType: _union,
}
