"""Make an outer join narrower if a Filter above it rejects the padded rows.

    before: SELECT * FROM l LEFT JOIN r ON l.k = r.k WHERE r.n > 5
    after:  SELECT * FROM l JOIN r ON l.k = r.k WHERE r.n > 5

The fields stay nullable, because the plan above was typed with nullable fields.
"""

from __future__ import annotations

from dataclasses import replace

from tidemill.plan import nodes as n
from tidemill.plan.predicates import rejects_nulls

NARROWED: dict[tuple[n.JoinKind, bool, bool], n.JoinKind] = {
    (n.JoinKind.LEFT, False, True): n.JoinKind.INNER,
    (n.JoinKind.LEFT, True, True): n.JoinKind.INNER,
    (n.JoinKind.RIGHT, True, False): n.JoinKind.INNER,
    (n.JoinKind.RIGHT, True, True): n.JoinKind.INNER,
    (n.JoinKind.FULL, True, True): n.JoinKind.INNER,
    (n.JoinKind.FULL, True, False): n.JoinKind.LEFT,
    (n.JoinKind.FULL, False, True): n.JoinKind.RIGHT,
}
"""By kind and by whose padding the condition rejects: the left's, the right's."""


def simplify_outer_joins(node: n.LogicalNode) -> n.LogicalNode | None:
    if not isinstance(node, n.Filter) or not isinstance(node.input, n.Join):
        return None
    join = node.input
    width, total = len(join.left.fields), len(join.fields)
    left = rejects_nulls(node.condition, frozenset(range(width)))
    right = rejects_nulls(node.condition, frozenset(range(width, total)))
    kind = NARROWED.get((join.kind, left, right))
    return None if kind is None else replace(node, input=replace(join, kind=kind))
