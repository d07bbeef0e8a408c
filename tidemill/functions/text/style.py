"""Writes values one at a time, in the style of a target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

from tidemill.types import logical as t

Write = Callable[[Any], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """``scalars``: how to write a type without elements, by default ``str``. ``null``: NULL in a collection.

    ``row``: around a ROW. ``label``: before a field's value, from its name. ``key``: how to write a key of a
    MAP or MULTISET, by default like an element.
    """

    scalars: Mapping[type[t.LogicalType], Callable[[Any], Write]]
    null: str
    row: tuple[str, str]
    comma: str = ", "
    colon: str = "="
    label: Callable[[str], str] = lambda name: ""
    key: Callable[[t.LogicalType], Write] | None = None


@singledispatch
def writer(kind: t.LogicalType, style: Style) -> Write:
    """A function from a carrier of ``kind``, not NULL, to its text."""
    make = style.scalars.get(type(kind))
    return make(kind) if make else str


def or_null(kind: t.LogicalType, style: Style) -> Write:
    """As ``writer``, for NULL too."""
    write, null = writer(kind, style), style.null
    return lambda value: null if value is None else write(value)


@writer.register
def _(kind: t.ArrayType, style: Style) -> Write:
    element, comma = or_null(kind.element, style), style.comma
    return lambda values: f"[{comma.join(map(element, values))}]"


@writer.register
def _(kind: t.MapType, style: Style) -> Write:
    return _entries(kind.key, or_null(kind.value, style), style)


@writer.register
def _(kind: t.MultisetType, style: Style) -> Write:
    return _entries(kind.element, str, style)


def _entries(key: t.LogicalType, value: Write, style: Style) -> Write:
    name = style.key(key) if style.key else or_null(key, style)
    comma, colon = style.comma, style.colon
    return lambda entries: (
        "{" + comma.join(f"{name(e['key'])}{colon}{value(e['value'])}" for e in entries) + "}"
    )


@writer.register
def _(kind: t.RowType, style: Style) -> Write:
    fields = [(f.name, style.label(f.name), or_null(f.type, style)) for f in kind.fields]
    comma, (start, end) = style.comma, style.row
    return lambda row: start + comma.join(f"{label}{write(row[name])}" for name, label, write in fields) + end


def for_types(kinds: tuple[type[t.LogicalType], ...], write: Write) -> dict[type[t.LogicalType], Any]:
    """Scalars of which one function writes all."""
    return dict.fromkeys(kinds, lambda kind: write)
