"""The expression binder: one syntax tree node in, one typed expression over the scope's row out.

Dispatch is a table from node class to handler; ``HANDLERS`` of the subject modules are merged by
``dispatch``. A node without a handler is an unsupported feature, named as such.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from sqlglot import exp

from tidemill.errors import NotSupportedError, Position, ValidationError
from tidemill.plan.binder.context import BoundQuery, Context
from tidemill.plan.binder.expressions import calls
from tidemill.plan.binder.scope import NamedColumn, Scope, nearest
from tidemill.plan.expressions import Expr, FieldAccess, InputRef, OuterRef
from tidemill.sql.positions import position_of
from tidemill.types import logical as t


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """The expressions that a clause allows. ``name``: the clause in error messages. ``group_by``: the query
    has a GROUP BY. ``grouped``: GROUP BY has keys, so an aggregate over NOT NULL input is NOT NULL."""

    name: str
    aggregates: bool = False
    windows: bool = False
    group_by: bool = False
    grouped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupWindow:
    """The window of GROUP BY: its arguments, and its start, end and time as columns."""

    arguments: object
    columns: tuple[InputRef, ...]


class QueryBinder(Protocol):
    """Binds a query tree; expressions call it for their subqueries."""

    def bind(self, tree: exp.Expr, context: Context) -> BoundQuery: ...

    def expressions(self, context: Context, scope: Scope, clause: Clause) -> ExpressionBinder:
        """A binder of expressions over the row of ``scope``."""
        ...


@dataclass(slots=True, kw_only=True)
class ExpressionBinder:
    """Binds the expressions of one clause over one scope.

    ``mentions``: the position of each column, for errors of later checks, such as grouping. ``aliases``: the
    select items that ORDER BY may name. ``filter``: the FILTER condition of the aggregate that is bound next.
    ``group_window``: the window of GROUP BY."""

    context: Context
    scope: Scope
    queries: QueryBinder
    clause: Clause
    handlers: Mapping[type[exp.Expr], Handler]
    windows: Mapping[str, exp.Expr] = field(default_factory=dict)
    aliases: tuple[tuple[str, Expr], ...] = ()
    filter: exp.Expr | None = None
    group_window: GroupWindow | None = None
    mentions: dict[int, tuple[str, Position | None]] = field(default_factory=dict)

    def bind(self, node: exp.Expr) -> Expr:
        handler = self.handlers.get(type(node))
        if handler is None:
            raise NotSupportedError(
                f"{type(node).__name__} is not supported in an expression", position=position_of(node)
            )
        return handler(self, node)

    def bind_all(self, nodes: list[exp.Expr]) -> tuple[Expr, ...]:
        return tuple(self.bind(n) for n in nodes)

    def call(self, name: str, args: tuple[Expr, ...], node: exp.Expr, options: calls.Options = ()) -> Expr:
        return calls.call(self.context.environment, name, args, position_of(node), options)

    def condition(self, node: exp.Expr) -> Expr:
        """A condition of WHERE, HAVING, ON, FILTER: BOOLEAN, else an error that names the clause."""
        bound = self.bind(node)
        if isinstance(bound.type, t.NullType):
            return calls.coerce(bound, t.BOOLEAN)
        if not isinstance(bound.type, t.BooleanType):
            raise ValidationError(
                f"{self.clause.name} clause must be a condition", position=position_of(node)
            )
        return bound

    def narrowed(self, clause: Clause) -> ExpressionBinder:
        """A binder of the same scope under the rules of another clause, such as FILTER."""
        return replace(self, clause=clause, filter=None)

    def column(self, parts: tuple[str, ...], node: exp.Expr) -> Expr:
        """The column with the dotted name ``parts``, of this query or of an enclosing query."""
        position = position_of(node)
        named = [x for name, x in self.aliases if (name,) == parts[:1]]
        if len(named) > 1:
            raise ValidationError(f"Column '{parts[0]}' is ambiguous", position=position)
        if named:
            return self.fields_of(named[0], parts[1:], position)
        named_column = self.scope.find(parts, position)
        if named_column is not None:
            _check_field_names(named_column, parts, position)
            self._record_full_name(node, self.scope, named_column)
            if isinstance(named_column.column, InputRef):
                self.mentions.setdefault(named_column.column.index, (".".join(parts), position))
            return self.fields_of(named_column.column, named_column.field_names, position)
        for level, scope in enumerate(self.context.scopes, start=1):
            named_column = scope.find(parts, position)
            if named_column is not None:
                _check_field_names(named_column, parts, position)
                self._record_full_name(node, scope, named_column)
                return self.fields_of(_outer(named_column.column, level), named_column.field_names, position)
        raise self._not_found(parts, position)

    def _record_full_name(self, node: exp.Expr, scope: Scope, named_column: NamedColumn) -> None:
        if self.context.full_names is not None:
            full = scope.full_name(named_column.column)
            self.context.full_names.column(node, full and (*full, *named_column.field_names))

    def _not_found(self, parts: tuple[str, ...], position: Position | None) -> ValidationError:
        if len(parts) > 1:
            aliases = [r.alias for r in self.scope.relations]
            table = ".".join(parts[:-1])
            return ValidationError(
                f"Table '{table}' not found", position=position, hint=nearest(table, aliases)
            )
        scopes = (self.scope, *self.context.scopes)
        names = [n for s in scopes for n in s.names()]
        hint = nearest(parts[0], names)
        return ValidationError(f"Column '{parts[0]}' not found in any table", position=position, hint=hint)

    def mention_all(self, position: Position | None) -> None:
        """Records the position of a star for every column of the scope."""
        for relation in self.scope.relations:
            for index, f in enumerate(relation.fields, start=relation.offset):
                self.mentions.setdefault(index, (f"{relation.alias}.{f.name}", position))

    def fields_of(self, operand: Expr, names: tuple[str, ...], position: Position | None) -> Expr:
        for name in names:
            operand = field_access(operand, name, position)
        return operand


Handler = Callable[[ExpressionBinder, exp.Expr], Expr]


def field_access(operand: Expr, name: str, position: Position | None) -> Expr:
    """Field ``name`` of a ROW; nullable if the ROW is."""
    kind = operand.type
    if not isinstance(kind, t.RowType):
        raise ValidationError(f"Incompatible types: cannot read field '{name}' of {kind}", position=position)
    for index, f in enumerate(kind.fields):
        if f.name == name:
            return row_field(operand, index)
    hint = nearest(name, [f.name for f in kind.fields])
    raise ValidationError(f"Unknown field '{name}'", position=position, hint=hint)


def row_field(operand: Expr, index: int) -> Expr:
    kind = operand.type
    assert isinstance(kind, t.RowType)
    field_type = kind.fields[index].type
    nullable = field_type.nullable or kind.nullable
    return FieldAccess(type=field_type.with_nullable(nullable), operand=operand, index=index)


def _check_field_names(named_column: NamedColumn, parts: tuple[str, ...], position: Position | None) -> None:
    """Only a ROW column has fields. For other columns the error is Flink's: an unknown table or column."""
    if not named_column.field_names or isinstance(named_column.column.type, t.RowType):
        return
    used = len(parts) - len(named_column.field_names)
    if used == 1:
        raise ValidationError(f"Table '{parts[0]}' not found", position=position)
    table, column = ".".join(parts[: used - 1]), ".".join(parts[used - 1 :])
    raise ValidationError(f"Column '{column}' not found in table '{table}'", position=position)


def _outer(column: Expr, level: int) -> Expr:
    if not isinstance(column, InputRef):
        raise NotSupportedError("A correlated reference to a merged column of a FULL JOIN is not supported")
    return OuterRef(type=column.type, level=level, index=column.index)
