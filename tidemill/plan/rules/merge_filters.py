"""Merge a Filter over a Filter, and remove trivial Filters.

before: Filter(a > 1, Filter(b < 2, t))    after: Filter(b < 2 AND a > 1, t)
before: Filter(TRUE, t)                    after: t
before: Filter(FALSE, t)                   after: an empty Values
"""

from __future__ import annotations

from dataclasses import replace

from tidemill.plan.expressions import Literal
from tidemill.plan.nodes import Filter, LogicalNode, Values
from tidemill.plan.predicates import conjunction, conjuncts
from tidemill.plan.rules.determinism import is_deterministic


def merge_filters(node: LogicalNode) -> LogicalNode | None:
    if not isinstance(node, Filter):
        return None
    if isinstance(node.condition, Literal):
        return node.input if node.condition.value is True else Values(fields=node.fields, rows=())
    below = node.input
    if isinstance(below, Filter) and is_deterministic(node.condition):
        parts = (*conjuncts(below.condition), *conjuncts(node.condition))
        return replace(node, input=below.input, condition=conjunction(parts))
    return None
