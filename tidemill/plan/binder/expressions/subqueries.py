"""Subqueries in expressions: scalar, EXISTS, IN; they see the enclosing query's row as OuterRefs."""

from __future__ import annotations

from functools import reduce

from sqlglot import exp

from tidemill.errors import ValidationError
from tidemill.functions.coercion import common_type
from tidemill.functions.signatures import calcite_text
from tidemill.plan import nodes as n
from tidemill.plan.binder.context import BoundQuery
from tidemill.plan.binder.expressions.binding import ExpressionBinder, Handler
from tidemill.plan.binder.expressions.calls import coerce
from tidemill.plan.binder.naming import all_columns
from tidemill.plan.expressions import Expr
from tidemill.plan.nodes import Exists, InSubquery, ScalarSubquery
from tidemill.sql.positions import position_of
from tidemill.types import logical as t

QUERIES = (exp.Select, exp.Union, exp.Intersect, exp.Except, exp.Values, exp.Subquery)


def _inner(binder: ExpressionBinder, tree: exp.Expr) -> BoundQuery:
    return binder.queries.bind(tree, binder.context.inside(binder.scope))


def _scalar(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    query = _inner(binder, node)
    if len(query.names) != 1:
        pairs = zip(query.names, query.plan.fields, strict=True)
        record = ", ".join(f"{calcite_text(f.type)} {name}".upper() for name, f in pairs)
        raise ValidationError(
            f"Cannot apply '$SCALAR_QUERY' to arguments of type '$SCALAR_QUERY(<RECORDTYPE({record})>)'."
            " Supported form(s): '$SCALAR_QUERY(<RECORDTYPE(SINGLE FIELD)>)'",
            position=position_of(node),
        )
    kind = query.plan.fields[0].type.with_nullable(True)
    return ScalarSubquery(type=kind, plan=query.plan, position=position_of(node))


def _exists(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    plan = _inner(binder, node.this).plan
    return Exists(type=t.BooleanType(nullable=False), plan=plan, position=position_of(node))


def _in(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    query = node.args.get("query")
    if query is not None:
        return in_query(binder, node, query)
    return in_list(binder, node, node.this, list(node.expressions))


def in_list(binder: ExpressionBinder, node: exp.Expr, left: exp.Expr, right: list[exp.Expr]) -> Expr:
    """x IN (a, b); row values compare field by field."""
    if isinstance(left, exp.Tuple) and all(isinstance(r, exp.Tuple) for r in right):
        rows = [_row_equals(binder, node, left, r) for r in right]
        return reduce(lambda a, b: binder.call("OR", (a, b), node), rows)
    return binder.call("IN", (binder.bind(left), *binder.bind_all(right)), node)


def _row_equals(binder: ExpressionBinder, node: exp.Expr, left: exp.Expr, right: exp.Expr) -> Expr:
    if len(left.expressions) != len(right.expressions):
        raise ValidationError(
            "Values passed to IN operator must have compatible types", position=position_of(node)
        )
    pairs = zip(left.expressions, right.expressions, strict=True)
    parts = [binder.call("=", (binder.bind(a), binder.bind(b)), node) for a, b in pairs]
    return reduce(lambda a, b: binder.call("AND", (a, b), node), parts)


def in_query(binder: ExpressionBinder, node: exp.Expr, tree: exp.Expr) -> Expr:
    """``node.this IN (tree)``; a row value on the left compares column by column."""
    left = node.this
    nodes = list(left.expressions) if isinstance(left, exp.Tuple) else [left]
    operands, query = binder.bind_all(nodes), _inner(binder, tree)
    if len(operands) != len(query.names):
        raise ValidationError(
            "Values passed to IN operator must have compatible types", position=position_of(node)
        )
    plan, operands = _compatible(operands, query.plan, node)
    nullable = any(k.nullable for k in (*(x.type for x in operands), *(f.type for f in plan.fields)))
    kind = t.BooleanType(nullable=nullable)
    return InSubquery(type=kind, operands=operands, plan=plan, position=position_of(node))


def _compatible(
    operands: tuple[Expr, ...], plan: n.LogicalNode, node: exp.Expr
) -> tuple[n.LogicalNode, tuple[Expr, ...]]:
    """Casts both sides to common column types."""
    kinds = []
    for operand, field in zip(operands, plan.fields, strict=True):
        kind = common_type((operand.type, field.type))
        if kind is None:
            raise ValidationError(
                f"implicit type conversion between {calcite_text(operand.type)} and"
                f" {calcite_text(field.type)} is not supported on join's condition now",
                position=position_of(node),
            )
        kinds.append(kind)
    cast = tuple(coerce(x, k) for x, k in zip(operands, kinds, strict=True))
    fields = tuple(
        t.Field(f.name, k.with_nullable(f.type.nullable)) for f, k in zip(plan.fields, kinds, strict=True)
    )
    if fields == plan.fields:
        return plan, cast
    typed = tuple(coerce(x, f.type) for x, f in zip(all_columns(plan), fields, strict=True))
    return n.Project(fields=fields, input=plan, expressions=typed), cast


HANDLERS: dict[type[exp.Expr], Handler] = {
    **dict.fromkeys(QUERIES, _scalar),
    exp.Exists: _exists,
    exp.In: _in,
}
