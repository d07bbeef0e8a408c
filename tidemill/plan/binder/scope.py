"""Name resolution: the column that a dotted name means.

FROM gives one row, the concatenation of its relations' columns. A scope names the columns of that row. Lookup
follows Calcite: the longest prefix that names a relation wins; otherwise the first part names a column. The
remaining parts name ROW fields. Names are case-sensitive.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches

from tidemill.errors import Position, ValidationError
from tidemill.plan.expressions import Expr, FieldAccess, InputRef
from tidemill.types.logical import Field, RowType


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """One item of FROM: its columns stand in the row from ``offset`` on.

    ``fields`` are the visible names, which (unlike a node's) may repeat; ``path`` are the catalog,
    database and name of a table, by which it can be qualified too.
    """

    alias: str
    fields: tuple[Field, ...]
    offset: int = 0
    path: tuple[str, ...] = ()

    def answers(self, qualifier: tuple[str, ...]) -> bool:
        if len(qualifier) == 1:
            return qualifier[0] == self.alias
        return bool(self.path) and self.path[-len(qualifier) :] == qualifier and self.path[-1] == self.alias


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedColumn:
    """A column, and the ROW fields that the name's remaining parts name."""

    column: Expr
    field_names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """``merged``: columns of NATURAL and USING joins, in order. They hide other columns of their name."""

    relations: tuple[Relation, ...] = ()
    merged: tuple[tuple[str, Expr], ...] = ()
    hidden: frozenset[int] = frozenset()

    @property
    def width(self) -> int:
        return max((r.offset + len(r.fields) for r in self.relations), default=0)

    def find(self, parts: tuple[str, ...], position: Position | None) -> NamedColumn | None:
        """The column that ``parts`` name; None if no column fits, ValidationError if several fit."""
        for length in range(len(parts) - 1, 0, -1):
            relations = [r for r in self.relations if r.answers(parts[:length])]
            if relations:
                return self._qualified(relations, parts, length, position)
        return self._unqualified(parts, position)

    def _qualified(
        self, relations: list[Relation], parts: tuple[str, ...], length: int, position: Position | None
    ) -> NamedColumn:
        name = parts[length]
        columns = [c for r in relations for c in _columns(r) if c[0] == name]
        if not columns:
            table = ".".join(parts[:length])
            raise ValidationError(
                f"Column '{name}' not found in table '{table}'",
                position=position,
                hint=nearest(name, [f.name for r in relations for f in r.fields]),
            )
        return NamedColumn(column=_single(columns, name, position), field_names=parts[length + 1 :])

    def _unqualified(self, parts: tuple[str, ...], position: Position | None) -> NamedColumn | None:
        name = parts[0]
        merged = dict(self.merged)
        if name in merged:
            return NamedColumn(column=merged[name], field_names=parts[1:])
        columns = [c for r in self.relations for c in _columns(r) if c[0] == name]
        if len(parts) > 1:
            # ``a.b`` is no field access if column a is no ROW: a may be a table of an enclosing query.
            columns = [c for c in columns if isinstance(c[1].type, RowType)]
        return (
            NamedColumn(column=_single(columns, name, position), field_names=parts[1:]) if columns else None
        )

    def star(self, qualifier: tuple[str, ...] = ()) -> tuple[tuple[str, Expr], ...] | None:
        """The columns of ``*`` (merged ones first) or ``qualifier.*``; None: no such relation."""
        if not qualifier:
            rest = [c for r in self.relations for c in _columns(r) if c[1].index not in self.hidden]
            return (*self.merged, *rest)
        relations = [r for r in self.relations if r.answers(qualifier)]
        return tuple(c for r in relations for c in _columns(r)) if relations else None

    def full_name(self, column: Expr) -> tuple[str, ...]:
        """The relation's alias, if any, the column's name, and the fields of its ROW; () if ``column`` is no
        column. A merged column has no relation."""
        merged = next((name for name, x in self.merged if x == column), None)
        if merged is not None:
            return (merged,)
        if isinstance(column, FieldAccess) and isinstance(column.operand.type, RowType):
            row = self.full_name(column.operand)
            return row and (*row, column.operand.type.fields[column.index].name)
        if not isinstance(column, InputRef):
            return ()
        at = column.index
        owner = next((r for r in self.relations if r.offset <= at < r.offset + len(r.fields)), None)
        if owner is None:
            return ()
        name = owner.fields[at - owner.offset].name
        return (owner.alias, name) if owner.alias else (name,)

    def names(self) -> list[str]:
        return [f.name for r in self.relations for f in r.fields]

    def beside(self, right: Scope) -> Scope:
        """The scope of the concatenated row. Only the left's merged columns stay merged."""
        shift = self.width
        moved = tuple(replace(r, offset=r.offset + shift) for r in right.relations)
        return Scope(
            relations=(*self.relations, *moved),
            merged=self.merged,
            hidden=self.hidden | {i + shift for i in right.hidden},
        )


def _columns(relation: Relation) -> list[tuple[str, InputRef]]:
    return [(f.name, InputRef(type=f.type, index=relation.offset + i)) for i, f in enumerate(relation.fields)]


def _single(columns: list[tuple[str, InputRef]], name: str, position: Position | None) -> Expr:
    if len(columns) > 1:
        raise ValidationError(f"Column '{name}' is ambiguous", position=position)
    return columns[0][1]


def nearest(name: str, candidates: list[str] | tuple[str, ...]) -> str:
    """A hint with the closest existing name; '' if no name is close."""
    by_folded = {c.lower(): c for c in candidates}
    matches = get_close_matches(name.lower(), list(by_folded), n=1, cutoff=0.6)
    return f"Did you mean '{by_folded[matches[0]]}'?" if matches else ""


def unique_names(names: list[str]) -> list[str]:
    """Unique names, numbered as in Flink: id, id0, id1."""
    used: set[str] = set()
    unique: list[str] = []
    for name in names:
        unique.append(unique_name(name, used))
        used.add(unique[-1])
    return unique


def unique_name(name: str, used: set[str]) -> str:
    candidate, attempt = name, 0
    while candidate in used:
        candidate = f"{name}{attempt}"
        attempt += 1
    return candidate
