"""Joins: kinds, ON, USING and NATURAL; the row of a join is left columns, then right columns."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from sqlglot import exp

from tidemill.errors import NotSupportedError, ValidationError
from tidemill.plan import nodes as n
from tidemill.plan.binder.context import Context
from tidemill.plan.binder.expressions import calls, literals
from tidemill.plan.binder.expressions.binding import Clause, QueryBinder
from tidemill.plan.binder.relations.tables import Source
from tidemill.plan.binder.scope import Relation, Scope, unique_names
from tidemill.plan.expressions import Expr, InputRef
from tidemill.plan.rewrite import shift_inputs
from tidemill.sql.positions import position_of
from tidemill.types import logical as t

ON = Clause(name="ON")
KINDS = {
    "": n.JoinKind.INNER,
    "INNER": n.JoinKind.INNER,
    "CROSS": n.JoinKind.INNER,
    "LEFT": n.JoinKind.LEFT,
    "RIGHT": n.JoinKind.RIGHT,
    "FULL": n.JoinKind.FULL,
}
LEFT_NULLABLE = (n.JoinKind.RIGHT, n.JoinKind.FULL)
RIGHT_NULLABLE = (n.JoinKind.LEFT, n.JoinKind.FULL)


def kind_of(join: exp.Expr) -> n.JoinKind:
    side = str(join.args.get("side") or "").upper()
    kind = str(join.args.get("kind") or "").upper()
    join_kind = KINDS.get(side or ("" if kind == "OUTER" else kind))
    if join_kind is None:
        raise NotSupportedError(f"{side or kind} JOIN is not supported", position=position_of(join))
    return join_kind


def bind(
    binder: QueryBinder,
    left: Source,
    right: Source,
    join: exp.Expr,
    context: Context,
    hints: tuple[tuple[str, str], ...] = (),
    strategies: tuple[tuple[str, str], ...] = (),
) -> Source:
    kind = kind_of(join)
    scope = padded_scope(left.scope, kind in LEFT_NULLABLE).beside(
        padded_scope(right.scope, kind in RIGHT_NULLABLE)
    )
    names = _shared_names(left.scope, right.scope, join)
    on = join.args.get("on")
    if on is not None:
        # The condition sees the row before the padding, so a NOT NULL column is NOT NULL in it.
        inner = left.scope.beside(right.scope)
        condition = binder.expressions(context, inner, ON).condition(on)
    elif names:
        condition = _equal(binder, left.scope, right.scope, names, join, context)
        scope = _with_shared_columns(binder, scope, left.scope, names, kind, join, context)
    else:
        condition = literals.boolean(True)
    plan = replace(joined(left.plan, right.plan, kind, condition), hints=hints, strategies=strategies)
    return Source(plan=plan, scope=scope)


def joined(left: n.LogicalNode, right: n.LogicalNode, kind: n.JoinKind, condition: Expr) -> n.Join:
    """The join node. Fields of padded sides are nullable, and repeated names get a number."""
    fields = [
        *_padded_fields(left.fields, kind in LEFT_NULLABLE),
        *_padded_fields(right.fields, kind in RIGHT_NULLABLE),
    ]
    names = unique_names([f.name for f in fields])
    unique = tuple(t.Field(name, f.type) for name, f in zip(names, fields, strict=True))
    return n.Join(fields=unique, left=left, right=right, kind=kind, condition=condition)


def _padded_fields(fields: tuple[t.Field, ...], nullable: bool) -> tuple[t.Field, ...]:
    if not nullable:
        return fields
    return tuple(t.Field(f.name, f.type.with_nullable(True)) for f in fields)


def padded_scope(scope: Scope, nullable: bool) -> Scope:
    """The scope of a side of a join; nullable if an outer join may pad the side."""
    if not nullable:
        return scope
    relations = tuple(
        Relation(alias=r.alias, fields=_padded_fields(r.fields, True), offset=r.offset, path=r.path)
        for r in scope.relations
    )
    merged = tuple((name, _nullable(x)) for name, x in scope.merged)
    return Scope(relations=relations, merged=merged, hidden=scope.hidden)


def _nullable(expr: Expr) -> Expr:
    if isinstance(expr, InputRef):
        return InputRef(type=expr.type.with_nullable(True), index=expr.index)
    return expr


def _shared_names(left: Scope, right: Scope, join: exp.Expr) -> list[str]:
    """The columns of USING, or for NATURAL the names that both sides have, in the left side's order."""
    using = join.args.get("using")
    if using:
        return [identifier.name for identifier in using]
    if str(join.args.get("method") or "").upper() != "NATURAL":
        return []
    names = {name for name, _ in right.star() or ()}
    return [name for name, _ in left.star() or () if name in names]


def _side(scope: Scope, name: str, join: exp.Expr) -> Expr:
    named_column = scope.find((name,), position_of(join))
    if named_column is None:
        raise ValidationError(f"Column '{name}' not found in any table", position=position_of(join))
    return named_column.column


def _equal(
    binder: QueryBinder,
    left: Scope,
    right: Scope,
    names: list[str],
    join: exp.Expr,
    context: Context,
) -> Expr:
    environment, position = context.environment, position_of(join)
    pairs = [(_side(left, name, join), shift_inputs(_side(right, name, join), left.width)) for name in names]
    parts = [calls.call(environment, "=", pair, position) for pair in pairs]
    return reduce(lambda a, b: calls.call(environment, "AND", (a, b), position), parts)


def _with_shared_columns(
    binder: QueryBinder,
    scope: Scope,
    left: Scope,
    names: list[str],
    kind: n.JoinKind,
    join: exp.Expr,
    context: Context,
) -> Scope:
    """``scope`` with each shared column once: the left one, the right one, or the one that is not NULL."""
    position = position_of(join)
    columns: list[tuple[str, Expr]] = []
    hidden: set[int] = set(scope.hidden)
    right = Scope(relations=scope.relations[len(left.relations) :])
    before = Scope(relations=scope.relations[: len(left.relations)], merged=scope.merged)
    for name in names:
        sides = (_side(before, name, join), _side(right, name, join))
        hidden |= {x.index for x in sides if isinstance(x, InputRef)}
        columns.append((name, _choose(sides, kind, context, position)))
    merged = (*columns, *((name, x) for name, x in scope.merged if name not in names))
    return Scope(relations=scope.relations, merged=merged, hidden=frozenset(hidden))


def _choose(sides: tuple[Expr, Expr], kind: n.JoinKind, context: Context, position: object) -> Expr:
    if kind is n.JoinKind.RIGHT:
        return sides[1]
    if kind is n.JoinKind.FULL:
        return calls.call(context.environment, "COALESCE", sides)
    return sides[0]
