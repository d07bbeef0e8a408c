"""Turn conjuncts of a join's condition that read only one side into a Filter of that side.

    before: l JOIN r ON l.k = r.k AND r.n > 5
    after:  l JOIN (r WHERE n > 5) ON l.k = r.k

An outer join keeps all rows of its preserved side, whatever its condition says. So the rule does not filter
that side.
"""

from __future__ import annotations

from dataclasses import replace

from tidemill.plan import nodes as n
from tidemill.plan.predicates import conjunction, conjuncts
from tidemill.plan.rewrite import move_inputs
from tidemill.plan.rules.push_filters import filtered, split, within

FILTERS_LEFT = frozenset((n.JoinKind.INNER, n.JoinKind.RIGHT, n.JoinKind.SEMI))
FILTERS_RIGHT = frozenset((n.JoinKind.INNER, n.JoinKind.LEFT, n.JoinKind.SEMI, n.JoinKind.ANTI))


def push_join_conditions(node: n.LogicalNode) -> n.LogicalNode | None:
    if not isinstance(node, n.Join) or node.null_aware:
        return None
    width = len(node.left.fields)
    total = width + len(node.right.fields)
    parts = conjuncts(node.condition)
    left, parts = split(parts, within(range(width))) if node.kind in FILTERS_LEFT else ((), parts)
    right, parts = split(parts, within(range(width, total))) if node.kind in FILTERS_RIGHT else ((), parts)
    if not left and not right:
        return None
    moved = [move_inputs(p, lambda i: i - width) for p in right]
    return replace(
        node,
        left=filtered(node.left, left),
        right=filtered(node.right, moved),
        condition=conjunction(parts),
    )
