"""Queries over a few literal rows: their result is known without running a job."""

from __future__ import annotations

from tidemill.plan import nodes as n
from tidemill.plan.expressions import Expr, InputRef, Literal
from tidemill.plan.rewrite import node_expressions
from tidemill.plan.rules.determinism import has_user_call
from tidemill.types import logical as t

FEW_ROWS = 200
"""More are a table: worth a task, and no text to be read again for each query around it."""


def is_constant(plan: n.LogicalNode) -> bool:
    """Whether the optimised ``plan`` only projects and filters a few literal rows."""
    while isinstance(plan, n.Project | n.Filter):
        if any(map(has_user_call, node_expressions(plan))):
            return False
        plan = plan.input
    return isinstance(plan, n.Values) and 0 < len(plan.rows) <= FEW_ROWS


_AS_THEY_ARE = (t.BooleanType, *t.INTEGER_TYPES, *t.CHARACTER_TYPES)
"""For these types a literal has the same value as a column."""


def literal_rows(plan: n.LogicalNode) -> list[tuple[object, ...]] | None:
    """The rows of the optimised, constant ``plan``; None if an expression has to be computed."""
    if not all(isinstance(field.type, _AS_THEY_ARE) for field in plan.fields):
        return None
    if isinstance(plan, n.Values):
        return [tuple(literal.value for literal in row) for row in plan.rows]
    if not isinstance(plan, n.Project) or not isinstance(plan.input, n.Values):
        return None
    if not all(isinstance(e, InputRef | Literal) for e in plan.expressions):
        return None
    return [tuple(_value(e, row) for e in plan.expressions) for row in plan.input.rows]


def _value(expression: Expr, row: tuple[Literal, ...]) -> object:
    literal = row[expression.index] if isinstance(expression, InputRef) else expression
    assert isinstance(literal, Literal)
    return literal.value
