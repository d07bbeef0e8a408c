"""CAST of arrays, maps, multisets and rows: element by element, and to Flink's text of them.

Text: ``[1, 2]``, ``{k=1}``, ``(1, z)``, a NULL inside is ``NULL``.
"""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

from tidemill.functions.cast_step import CastStep
from tidemill.functions.casts_text import fit
from tidemill.functions.sharing import share
from tidemill.functions.values import by_key, last_of_each_key
from tidemill.types import logical as t
from tidemill.types.physical import quote

Caster = Callable[[str, t.LogicalType, t.LogicalType], str]
_INT = t.IntType(nullable=False)


def _variable(sql: str) -> str:
    return f"_e{crc32(sql.encode()):08x}"


def entry_types(kind: t.LogicalType) -> tuple[t.LogicalType, t.LogicalType]:
    """Key and value types of a MAP; of a MULTISET element and count."""
    if isinstance(kind, t.MapType):
        return kind.key, kind.value
    assert isinstance(kind, t.MultisetType)
    return kind.element, _INT


def array_to_array(step: CastStep, cast: Caster) -> str:
    assert isinstance(step.source, t.ArrayType)
    assert isinstance(step.target, t.ArrayType)
    name = _variable(step.sql)
    return f"transform({step.sql}, {name} -> {cast(name, step.source.element, step.target.element)})"


def entries_to_entries(step: CastStep, cast: Caster) -> str:
    """MAP to MAP and MULTISET to MULTISET. Keys that are one now have the last entry of theirs."""
    (key, value), (to_key, to_value) = entry_types(step.source), entry_types(step.target)
    name = _variable(step.sql)
    keys = cast(f"{name}.key", key, to_key)
    entry = f"named_struct('key', {keys}, 'value', {cast(f'{name}.value', value, to_value)})"
    converted = f"transform({step.sql}, {name} -> {entry})"
    return converted if keys == f"{name}.key" else by_key(last_of_each_key(converted, to_key), step.target)


def row_to_row(step: CastStep, cast: Caster) -> str:
    assert isinstance(step.source, t.RowType)
    assert isinstance(step.target, t.RowType)
    pairs = list(zip(step.source.fields, step.target.fields, strict=True))

    def body(s: str) -> str:
        fields = ", ".join(
            f"{_text(to.name)}, {cast(f'{s}.{quote(of.name)}', of.type, to.type)}" for of, to in pairs
        )
        row = f"named_struct({fields})"
        return f"IF({s} IS NULL, NULL, {row})" if step.source.nullable else row

    return share(step.sql, body)


def array_to_text(step: CastStep, cast: Caster) -> str:
    assert isinstance(step.source, t.ArrayType)
    name = _variable(step.sql)
    items = f"transform({step.sql}, {name} -> {_shown(cast, name, step.source.element)})"
    return fit(f"concat('[', array_join({items}, ', '), ']')", None, step.target)


def entries_to_text(step: CastStep, cast: Caster) -> str:
    key, value = entry_types(step.source)
    name = _variable(step.sql)
    entry = f"concat({_shown(cast, f'{name}.key', key)}, '=', {_shown(cast, f'{name}.value', value)})"
    return fit(
        f"concat('{{', array_join(transform({step.sql}, {name} -> {entry}), ', '), '}}')", None, step.target
    )


def row_to_text(step: CastStep, cast: Caster) -> str:
    assert isinstance(step.source, t.RowType)
    fields = step.source.fields

    def body(s: str) -> str:
        field_texts = ", ', ', ".join(_shown(cast, f"{s}.{quote(f.name)}", f.type) for f in fields)
        text = f"concat('(', {field_texts}, ')')"
        return f"IF({s} IS NULL, NULL, {text})" if step.source.nullable else text

    return fit(share(step.sql, body), None, step.target)


def _shown(cast: Caster, sql: str, kind: t.LogicalType) -> str:
    return f"coalesce({cast(sql, kind, t.STRING)}, 'NULL')"


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
