"""What a declared column promises and values here do not keep: fractions of a second beyond microseconds."""

from __future__ import annotations

from functools import singledispatch

from tidemill.catalog.manager import quoted
from tidemill.catalog.table import CatalogTable
from tidemill.types import logical as t

KEPT = 6


def cut_times(table: CatalogTable) -> str:
    """A warning that names the columns of ``table`` whose nanoseconds are cut off; '' where none are."""
    cut = [f"'{c.name}' {c.type.with_nullable(True)}" for c in table.columns if _is_finer(c.type)]
    if not cut:
        return ""
    return (
        f"Table {quoted(table.path)}: of {', '.join(cut)} microseconds are kept, "
        f"digits beyond the {KEPT}th are cut off"
    )


@singledispatch
def _is_finer(kind: t.LogicalType) -> bool:
    return False


@_is_finer.register(t.TimestampType)
@_is_finer.register(t.LocalZonedTimestampType)
def _(kind: t.TimestampType | t.LocalZonedTimestampType) -> bool:
    return kind.precision > KEPT


@_is_finer.register(t.ArrayType)
@_is_finer.register(t.MultisetType)
def _(kind: t.ArrayType | t.MultisetType) -> bool:
    return _is_finer(kind.element)


@_is_finer.register
def _(kind: t.MapType) -> bool:
    return _is_finer(kind.key) or _is_finer(kind.value)


@_is_finer.register
def _(kind: t.RowType) -> bool:
    return any(_is_finer(f.type) for f in kind.fields)
