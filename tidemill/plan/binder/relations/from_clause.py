"""The FROM clause: joins relations from left to right, and dispatches by node class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from tidemill.errors import NotSupportedError, ValidationError
from tidemill.plan import nodes as n
from tidemill.plan.binder import hints
from tidemill.plan.binder.context import Context
from tidemill.plan.binder.expressions import literals
from tidemill.plan.binder.expressions.binding import QueryBinder
from tidemill.plan.binder.naming import column_aliases, with_column_names
from tidemill.plan.binder.relations import (
    joins,
    match_recognize,
    table_functions,
    tables,
    temporal_joins,
)
from tidemill.plan.binder.relations.joins import ON, joined, kind_of, padded_scope
from tidemill.plan.binder.relations.tables import Source, named_source
from tidemill.plan.binder.scope import Scope
from tidemill.plan.rules.construct import one_row
from tidemill.sql.expressions import FunctionTable
from tidemill.sql.positions import position_of


def bind(binder: QueryBinder, tree: exp.Expr, context: Context) -> Source:
    """The rows that a SELECT reads; without FROM one row without columns."""
    clause = tree.args.get("from_") or tree.args.get("from")
    if clause is None:
        return Source(plan=one_row(), scope=Scope())
    select_hints = _SelectHints(hints.state_ttl(tree), hints.strategies(tree))
    source = _joined(
        binder, relation(binder, clause.this, context, select_hints), tree, context, select_hints
    )
    hints.check_aliases(select_hints.ttl, source.scope, tree)
    return source


@dataclass(frozen=True, slots=True)
class _SelectHints:
    """The hints of the SELECT."""

    ttl: Mapping[str, str]
    strategies: hints.Hints


def relation(binder: QueryBinder, node: exp.Expr, context: Context, select_hints: _SelectHints) -> Source:
    """One FROM item, with the joins in its parentheses."""
    bind_one = _KINDS.get(type(node))
    if bind_one is None:
        raise NotSupportedError(f"{type(node).__name__} is not supported in FROM", position=position_of(node))
    return _joined(binder, bind_one(binder, node, context), node, context, select_hints)


def _joined(
    binder: QueryBinder, source: Source, node: exp.Expr, context: Context, select_hints: _SelectHints
) -> Source:
    for join in node.args.get("joins") or ():
        _check_condition(join)
        see_left = _LATERAL.get(type(join.this))
        joined = None if see_left is None else see_left(binder, source, join, context)
        if joined is None:
            right = relation(binder, join.this, context, select_hints)
            scopes = source.scope, right.scope
            sides, chosen = (
                hints.ttl_by_side(select_hints.ttl, *scopes),
                hints.strategies_by_side(select_hints.strategies, *scopes),
            )
            joined = joins.bind(binder, source, right, join, context, sides, chosen)
        _check_names(joined.scope, join)
        source = joined
    return source


def _check_condition(join: exp.Expr) -> None:
    """Every join but comma, CROSS and NATURAL needs a condition."""
    has_condition = any(join.args.get(slot) for slot in ("on", "using", "method"))
    if not has_condition and (join.args.get("side") or join.args.get("kind") == "INNER"):
        raise ValidationError(
            "INNER, LEFT, RIGHT or FULL join requires a condition (NATURAL keyword or ON or USING clause)",
            position=position_of(join),
        )


def _check_names(scope: Scope, node: exp.Expr) -> None:
    aliases = [r.alias for r in scope.relations if r.alias]
    for alias in aliases:
        if aliases.count(alias) > 1:
            raise ValidationError(
                f"Duplicate relation name '{alias}' in FROM clause", position=position_of(node)
            )


_KINDS: dict[type[exp.Expr], Callable[[QueryBinder, exp.Expr, Context], Source]] = {
    exp.Table: tables.bind_table,
    exp.Subquery: tables.bind_derived,
    exp.Values: tables.bind_values,
    exp.Unnest: table_functions.bind_unnest,
    exp.Lateral: tables.bind_lateral,
    exp.MatchRecognize: match_recognize.bind,
    FunctionTable: table_functions.bind_function,
}


def _join_lateral(binder: QueryBinder, left: Source, join: exp.Expr, context: Context) -> Source:
    """``left, LATERAL (query) AS t`` or ``left [LEFT] JOIN LATERAL (query) AS t ON condition``."""
    kind = kind_of(join)
    if kind not in (n.JoinKind.INNER, n.JoinKind.LEFT):
        raise NotSupportedError(f"{kind.value} with LATERAL is not supported", position=position_of(join))
    node = join.this
    alias = context.alias(node)
    inner = binder.bind(node.this, context.inside(left.scope))
    right = named_source(with_column_names(inner, column_aliases(node), node), alias)
    scope = left.scope.beside(right.scope)
    on = join.args.get("on")
    condition = literals.boolean(True) if on is None else binder.expressions(context, scope, ON).condition(on)
    plan = n.LateralJoin(
        fields=joined(left.plan, inner.plan, kind, condition).fields,
        left=left.plan,
        right=inner.plan,
        kind=kind,
        condition=condition,
        position=position_of(join),
    )
    outer = kind is n.JoinKind.LEFT
    return Source(plan=plan, scope=left.scope.beside(padded_scope(right.scope, outer)))


_LATERAL: dict[type[exp.Expr], Callable[[QueryBinder, Source, exp.Expr, Context], Source | None]] = {
    exp.Unnest: table_functions.join_unnest,
    exp.Lateral: _join_lateral,
    exp.Table: temporal_joins.join_version,
    FunctionTable: table_functions.join_function,
}
"""Right sides that see the row on their left; None: this one does not."""
