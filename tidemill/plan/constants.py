"""Queries over a few literal rows: what they give is known without a job."""

from __future__ import annotations

from tidemill.plan import nodes as n
from tidemill.plan.rewrite import node_expressions
from tidemill.plan.rules.determinism import has_user_call

FEW_ROWS = 200
"""More are a table: worth a task, and no text to be read again for each query around it."""


def is_constant(plan: n.LogicalNode) -> bool:
    """Whether the optimised ``plan`` only computes and filters a few literal rows, each by itself."""
    while isinstance(plan, n.Project | n.Filter):
        if any(map(has_user_call, node_expressions(plan))):
            return False
        plan = plan.input
    return isinstance(plan, n.Values) and 0 < len(plan.rows) <= FEW_ROWS
