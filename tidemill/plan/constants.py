"""Queries over a few literal rows: what they give is known without a job."""

from __future__ import annotations

from tidemill.plan import nodes as n
from tidemill.plan.expressions import Expr, InputRef, Literal
from tidemill.plan.rewrite import node_expressions
from tidemill.plan.rules.determinism import has_user_call
from tidemill.types import logical as t

FEW_ROWS = 200
"""More are a table: worth a task, and no text to be read again for each query around it."""


def is_constant(plan: n.LogicalNode) -> bool:
    """Whether the optimised ``plan`` only computes and filters a few literal rows, each by itself."""
    while isinstance(plan, n.Project | n.Filter):
        if any(map(has_user_call, node_expressions(plan))):
            return False
        plan = plan.input
    return isinstance(plan, n.Values) and 0 < len(plan.rows) <= FEW_ROWS


_AS_THEY_ARE = (t.BooleanType, *t.INTEGER_TYPES, *t.CHARACTER_TYPES)
"""A literal's value of these types is what a column carries."""


def literal_rows(plan: n.LogicalNode) -> list[tuple[object, ...]] | None:
    """What the optimised, constant ``plan`` gives, where nothing has to be computed for it; else None."""
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
    found = row[expression.index] if isinstance(expression, InputRef) else expression
    assert isinstance(found, Literal)
    return found.value
