"""The checks that a sink, or the result of a SELECT, makes on the columns of its rows.

The checks are NOT NULL (see ``not_null`` for the columns that need a check) and the lengths of CHAR,
VARCHAR, BINARY and VARBINARY, each according to its option, and inside rows and collections if
``nested-constraint-enforcer`` says so. An INSERT casts other types, so a length can only be wrong in data
from outside that violates its table's declaration. A row that NOT NULL drops is not checked further. Lengths
are code points or bytes. A plan pays for the checks that are on: by default no values are checked inside, and
no lengths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import singledispatch

import pyarrow as pa
import pyarrow.compute as pc

from tidemill.config.option import Configuration
from tidemill.config.sink_options import NESTED_CONSTRAINTS, NOT_NULL_ENFORCER, TYPE_LENGTHS
from tidemill.errors import ValidationError
from tidemill.functions.arrays.expressions import Applied, Column, Projection
from tidemill.functions.arrays.logic import conjunction, without_null
from tidemill.functions.literals import literal_sql
from tidemill.functions.text.cast_sql import fit
from tidemill.physical.nodes import PhysicalNode
from tidemill.runtime.compile.not_null import required_columns
from tidemill.types import logical as t
from tidemill.types.physical import quote


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """``condition``: the condition of rows that are kept. ``texts``: the columns that are changed.
    ``required``: the columns that must not be NULL, if nothing else is checked. ``drops``: a row with NULL
    there is dropped, otherwise the job fails."""

    condition: str | None
    texts: Mapping[str, str]
    required: frozenset[str]
    drops: bool

    def checks(self, column: str) -> bool:
        return column in self.texts

    def expression(self, column: str) -> str:
        return self.texts.get(column, quote(column))

    def projection(self, columns: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Projection | None:
        """The same over Arrow batches; None if more is asked than that flat columns are not NULL."""
        kinds = dict(zip(columns, types, strict=True))
        if not self.required or any(pa.types.is_nested(kinds[name]) for name in self.required):
            return None
        asked = {name: Column(name, kinds[name]) for name in self.required}
        if self.drops:
            there = (Applied(pc.is_valid, (column,)) for column in asked.values())
            return Projection(
                condition=Applied(conjunction, tuple(there)), columns=tuple(map(Column, columns)), types=types
            )
        checked = {name: Applied(without_null, (column,)) for name, column in asked.items()}
        return Projection(
            condition=None, columns=tuple(checked.get(c) or Column(c) for c in columns), types=types
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    drops: bool
    lengths: str
    rows: bool
    collections: bool


@dataclass(frozen=True, slots=True)
class _Value:
    """A value at hand: its Spark text, its type, the texts that name it, how many lambdas are around."""

    sql: str
    kind: t.LogicalType
    path: tuple[str, ...]
    depth: int = 0

    def inner(self, sql: str, kind: t.LogicalType, *step: str, lambdas: int = 0) -> _Value:
        return _Value(sql, kind, (*self.path, *step), self.depth + lambdas)


def constraints(
    root: PhysicalNode, columns: tuple[str, ...], targets: tuple[t.Field, ...], config: Configuration
) -> Constraints | None:
    """What to ask of the rows of ``root``, whose fields go by ``columns``, for a sink of ``targets``."""
    rules = _rules(config)
    required = required_columns(root, columns, targets)
    conditions, texts, plain = [], {}, True
    for column, target in zip(columns, targets, strict=False):
        kind = target.type.with_nullable(column not in required)
        value = _Value(quote(column), kind, (_text(target.name),))
        conditions += [_complete(value, rules)] if rules.drops else []
        text = _enforced(value, rules)
        if text != value.sql:
            texts[column] = text
        plain &= _fitting(kind, value, rules) == value.sql and not _complete_inside(kind, value, rules)
    condition = " AND ".join(c for c in conditions if c) or None
    if condition is None and not texts:
        return None
    names = frozenset(required) if plain else frozenset[str]()
    return Constraints(condition=condition, texts=texts, required=names, drops=rules.drops)


def _rules(config: Configuration) -> _Rules:
    lengths, nested = config.read(TYPE_LENGTHS).upper(), config.read(NESTED_CONSTRAINTS).upper()
    if lengths == "TRIM_PAD" and nested == "ROWS_AND_COLLECTIONS":
        raise ValidationError(
            "Trimming and/or padding is not supported if constraint checking is enabled on types nested in "
            "collections.",
            hint=f"Set '{NESTED_CONSTRAINTS.key}' to 'ROWS' or 'IGNORE'.",
        )
    return _Rules(
        drops=config.read(NOT_NULL_ENFORCER).upper() == "DROP",
        lengths=lengths,
        rows=nested != "IGNORE",
        collections=nested == "ROWS_AND_COLLECTIONS",
    )


def _enforced(value: _Value, rules: _Rules) -> str:
    """The value; it fails, or is made to fit, where it does not."""
    text = _fitting(value.kind, value, rules)
    if value.kind.nullable or rules.drops:
        return text
    return f"coalesce({text}, {_failure(value.path, _NULL)})"


@singledispatch
def _fitting(kind: t.LogicalType, value: _Value, rules: _Rules) -> str:
    """As ``_enforced``, NULL left as it is."""
    return value.sql


@_fitting.register
def _(kind: t.LengthType, value: _Value, rules: _Rules) -> str:
    if rules.lengths == "IGNORE" or kind.length == t.MAX_LENGTH:
        return value.sql
    if rules.lengths == "TRIM_PAD":
        return fit(value.sql, None, kind)
    length = f"length({value.sql})"
    wrong = "<>" if isinstance(kind, t.CharType | t.BinaryType) else ">"
    said = _text(f" is {kind.text()}, however, a string of length ")
    failure = _failure(value.path, said, length, _LENGTH)
    return f"IF({length} {wrong} {kind.length}, {failure}, {value.sql})"


@_fitting.register
def _(kind: t.RowType, value: _Value, rules: _Rules) -> str:
    if not rules.rows:
        return value.sql
    parts = list(_row_fields(kind, value))
    texts = [_enforced(part, rules) for part in parts]
    if all(text == part.sql for text, part in zip(texts, parts, strict=True)):
        return value.sql
    named = ", ".join(f"{_text(f.name)}, {x}" for f, x in zip(kind.fields, texts, strict=True))
    return f"IF({value.sql} IS NULL, NULL, named_struct({named}))"


@_fitting.register
def _(kind: t.ArrayType, value: _Value, rules: _Rules) -> str:
    if not rules.collections:
        return value.sql
    item, place = _element(kind, value)
    text = _enforced(item, rules)
    return value.sql if text == item.sql else f"transform({value.sql}, ({item.sql}, {place}) -> {text})"


@_fitting.register
def _(kind: t.MapType, value: _Value, rules: _Rules) -> str:
    if not rules.collections:
        return value.sql
    entry, parts = _entry(kind, value)
    texts = [_enforced(part, rules) for part in parts]
    if all(text == part.sql for text, part in zip(texts, parts, strict=True)):
        return value.sql
    return f"transform({value.sql}, {entry} -> named_struct('key', {texts[0]}, 'value', {texts[1]}))"


def _complete(value: _Value, rules: _Rules) -> str:
    """Whether there is no NULL where there must be none; '' where that goes without looking."""
    inside = _complete_inside(value.kind, value, rules)
    if value.kind.nullable:
        return f"({value.sql} IS NULL OR {inside})" if inside else ""
    return f"{value.sql} IS NOT NULL" + (f" AND {inside}" if inside else "")


@singledispatch
def _complete_inside(kind: t.LogicalType, value: _Value, rules: _Rules) -> str:
    return ""


@_complete_inside.register
def _(kind: t.RowType, value: _Value, rules: _Rules) -> str:
    return _all(_row_fields(kind, value), rules) if rules.rows else ""


@_complete_inside.register
def _(kind: t.ArrayType, value: _Value, rules: _Rules) -> str:
    item, _ = _element(kind, value)
    inside = _complete(item, rules) if rules.collections else ""
    return f"forall({value.sql}, {item.sql} -> {inside})" if inside else ""


@_complete_inside.register
def _(kind: t.MapType, value: _Value, rules: _Rules) -> str:
    entry, parts = _entry(kind, value)
    inside = _all(iter(parts), rules) if rules.collections else ""
    return f"forall({value.sql}, {entry} -> {inside})" if inside else ""


def _all(parts: Iterator[_Value], rules: _Rules) -> str:
    found = [x for x in (_complete(part, rules) for part in parts) if x]
    return f"({' AND '.join(found)})" if found else ""


def _row_fields(kind: t.RowType, value: _Value) -> Iterator[_Value]:
    for f in kind.fields:
        yield value.inner(f"{value.sql}.{quote(f.name)}", f.type, _text(f".{f.name}"))


def _element(kind: t.ArrayType, value: _Value) -> tuple[_Value, str]:
    """Any element, and the text of its place, from 0."""
    item, place = f"e{value.depth}", f"i{value.depth}"
    return value.inner(item, kind.element, _text("["), place, _text("]"), lambdas=1), place


def _entry(kind: t.MapType, value: _Value) -> tuple[str, tuple[_Value, _Value]]:
    """Any entry: its text, its key and its value."""
    entry = f"e{value.depth}"
    key = value.inner(f"{entry}.key", kind.key, _text("[key]"), lambdas=1)
    return entry, (key, value.inner(f"{entry}.value", kind.value, _text("[value]"), lambdas=1))


def _failure(path: tuple[str, ...], *said: str) -> str:
    parts = (_text("Column '"), *path, _text("'"), *said)
    return f"raise_error(concat({', '.join(parts)}))"


def _text(text: str) -> str:
    return literal_sql(text, t.STRING)


_NULL = _text(
    " is NOT NULL, however, a null value is being written into it. You can set job configuration "
    f"'{NOT_NULL_ENFORCER.key}'='DROP' to suppress this exception and drop such records silently."
)
_LENGTH = _text(
    f" is being written into it. You can set job configuration '{TYPE_LENGTHS.key}' to control this "
    "behaviour."
)
