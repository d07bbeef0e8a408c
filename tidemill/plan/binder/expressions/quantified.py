"""``x op ANY (query)`` and ``x op ALL (query)``: the query's extremes decide.

    x > ANY (q)                     x > MIN(q)
    x > ALL (q)                     x > MAX(q)
    x = ALL (q), x <> ANY (q)       need both extremes

If x or a member is NULL, a result that the other members do not decide is UNKNOWN. Over no members ANY is
FALSE and ALL is TRUE.
"""

from __future__ import annotations

from functools import reduce

from sqlglot import exp

from tidemill.errors import Position, ValidationError
from tidemill.plan import nodes as n
from tidemill.plan.binder.expressions import calls, literals
from tidemill.plan.binder.expressions.binding import ExpressionBinder
from tidemill.plan.expressions import AggregateCall, Expr
from tidemill.plan.nodes import ScalarSubquery
from tidemill.plan.rules.construct import column, project
from tidemill.sql.positions import position_of
from tidemill.types import logical as t

EXTREMES: dict[tuple[str, bool], tuple[str, ...]] = {
    (">", True): ("MIN",),
    (">=", True): ("MIN",),
    ("<", True): ("MAX",),
    ("<=", True): ("MAX",),
    (">", False): ("MAX",),
    (">=", False): ("MAX",),
    ("<", False): ("MIN",),
    ("<=", False): ("MIN",),
    ("=", False): ("MIN", "MAX"),
    ("<>", True): ("MIN", "MAX"),
}
"""By operator and whether it is ANY: the members to compare with."""


def compare(binder: ExpressionBinder, node: exp.Expr, operator: str, tree: exp.Expr, any_of: bool) -> Expr:
    """The comparison of ``node.this`` with the members of the query ``tree``."""
    operand = binder.bind(node.this)
    query = binder.queries.bind(tree, binder.context.inside(binder.scope)).plan
    if len(query.fields) != 1:
        message = "A quantified comparison takes a query of one column"
        raise ValidationError(message, position=position_of(node))
    names = EXTREMES[operator, any_of]
    rows, members, *extremes = _statistics(binder, node, query, names)
    tests = [binder.call(operator, (operand, extreme), node) for extreme in extremes]
    decided = reduce(lambda a, b: binder.call("OR" if any_of else "AND", (a, b), node), tests)
    if not any_of:
        decided = binder.call("NOT", (decided,), node)
    missing = binder.call("<", (members, rows), node)
    unknown = binder.call("OR", (binder.call("IS NULL", (operand,), node), missing), node)
    cases: tuple[Expr, ...] = (
        binder.call("=", (rows, literals.bigint(0)), node),
        literals.boolean(not any_of),
        decided,
        literals.boolean(any_of),
        unknown,
        literals.null(t.BOOLEAN),
        literals.boolean(not any_of),
    )
    return binder.call("CASE", cases, node)


def _statistics(
    binder: ExpressionBinder, node: exp.Expr, query: n.LogicalNode, extremes: tuple[str, ...]
) -> list[Expr]:
    """COUNT(*), COUNT(member) and the extremes, each as a scalar subquery."""
    count = t.BigIntType(nullable=False)
    specs: list[tuple[str, tuple[int, ...], t.LogicalType]] = [("COUNT", (), count), ("COUNT", (0,), count)]
    for name in extremes:
        extreme = binder.context.environment.aggregate_function(name)
        assert extreme is not None
        kind, _ = calls.aggregate_types(extreme, (column(query, 0),), (), position_of(node), grouped=False)
        specs.append((name, (0,), kind))
    named = tuple(
        AggregateCall(function=function, args=args, type=kind, name=f"$q{i}")
        for i, (function, args, kind) in enumerate(specs)
    )
    fields = tuple(t.Field(c.name, c.type) for c in named)
    aggregate = n.Aggregate(fields=fields, input=query, keys=(), calls=named)
    return [_value(aggregate, i, position_of(node)) for i in range(len(named))]


def _value(aggregate: n.Aggregate, index: int, position: Position | None) -> Expr:
    field = aggregate.fields[index]
    plan = project(aggregate, [column(aggregate, index)], [field.name])
    return ScalarSubquery(type=field.type.with_nullable(True), plan=plan, position=position)
