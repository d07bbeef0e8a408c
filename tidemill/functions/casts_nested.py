"""CAST of arrays, maps, multisets and rows: element by element."""

from __future__ import annotations

from collections.abc import Callable

from tidemill.functions.cast_step import CastStep
from tidemill.functions.sharing import share
from tidemill.functions.spark_text import each, quoted
from tidemill.functions.values import by_key, last_of_each_key
from tidemill.types import logical as t
from tidemill.types.physical import quote

Caster = Callable[[str, t.LogicalType, t.LogicalType], str]
_INT = t.IntType(nullable=False)


def entry_types(kind: t.LogicalType) -> tuple[t.LogicalType, t.LogicalType]:
    """Key and value types of a MAP; of a MULTISET element and count."""
    if isinstance(kind, t.MapType):
        return kind.key, kind.value
    assert isinstance(kind, t.MultisetType)
    return kind.element, _INT


def array_to_array(step: CastStep, cast: Caster) -> str:
    assert isinstance(step.source, t.ArrayType)
    assert isinstance(step.target, t.ArrayType)
    of, to = step.source.element, step.target.element
    return each(step.sql, lambda e: cast(e, of, to))


def entries_to_entries(step: CastStep, cast: Caster) -> str:
    """MAP to MAP and MULTISET to MULTISET. Keys that are one now have the last entry of theirs."""
    (key, value), (to_key, to_value) = entry_types(step.source), entry_types(step.target)
    converted = each(
        step.sql,
        lambda e: (
            f"named_struct('key', {cast(f'{e}.key', key, to_key)}, "
            f"'value', {cast(f'{e}.value', value, to_value)})"
        ),
    )
    same = cast("k", key, to_key) == "k"
    return converted if same else by_key(last_of_each_key(converted, to_key), step.target)


def row_to_row(step: CastStep, cast: Caster) -> str:
    assert isinstance(step.source, t.RowType)
    assert isinstance(step.target, t.RowType)
    pairs = list(zip(step.source.fields, step.target.fields, strict=True))

    def body(s: str) -> str:
        fields = ", ".join(
            f"{quoted(to.name)}, {cast(f'{s}.{quote(of.name)}', of.type, to.type)}" for of, to in pairs
        )
        row = f"named_struct({fields})"
        return f"IF({s} IS NULL, NULL, {row})" if step.source.nullable else row

    return share(step.sql, body)
