"""LATERAL (query): a derived table that reads the row on its left."""

from __future__ import annotations

from sqlglot import exp

from tidemill.errors import NotSupportedError
from tidemill.plan import nodes as n
from tidemill.plan.binder.context import Context
from tidemill.plan.binder.expressions import literals
from tidemill.plan.binder.expressions.binding import QueryBinder
from tidemill.plan.binder.naming import column_aliases, with_column_names
from tidemill.plan.binder.relations.joins import ON, joined, kind_of, padded_scope
from tidemill.plan.binder.relations.tables import Source, named_source
from tidemill.sql.positions import position_of


def join_lateral(binder: QueryBinder, left: Source, join: exp.Expr, context: Context) -> Source:
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
