"""Turn a LATERAL join, whose right side reads the left row, into a join of two plans that stand alone.

before: o CROSS JOIN LATERAL (SELECT v FROM i WHERE i.k = o.k)
after:  o JOIN (SELECT v, k FROM i) AS s ON s.k = o.k
"""

from __future__ import annotations

from tidemill.plan import nodes as n
from tidemill.plan.expressions import Expr
from tidemill.plan.predicates import conjunction, conjuncts
from tidemill.plan.rewrite import replace_inputs
from tidemill.plan.rules.construct import columns, join
from tidemill.plan.rules.correlation import correlate
from tidemill.plan.rules.push_filters import filtered
from tidemill.plan.rules.single_row import SingleRow, join_single_row, single_row, where_present


def lateral_join(node: n.LateralJoin) -> n.LogicalNode:
    """The right side must not contain subqueries any more."""
    single = single_row(node.right)
    if single is not None:
        return _single(node, single)
    correlated = correlate(node.left, node.right)
    condition = conjunction((*conjuncts(correlated.condition), *conjuncts(node.condition)))
    joined = join(node.left, correlated.plan, node.kind, condition)
    return n.Project(fields=node.fields, input=joined, expressions=columns(joined, len(node.fields)))


def _single(node: n.LateralJoin, single: SingleRow) -> n.LogicalNode:
    """Joins the one row per left row, also if the aggregate has no input rows."""
    wide, values, present = join_single_row(node.left, single)
    own = columns(wide, len(node.left.fields))
    both: tuple[Expr, ...] = (*own, *values)
    parts = [replace_inputs(part, lambda i: both[i]) for part in conjuncts(node.condition)]
    met = conjunction((*conjuncts(present), *parts))
    if node.kind is n.JoinKind.LEFT:
        padded = (where_present(value, met) for value in values)
        return n.Project(fields=node.fields, input=wide, expressions=(*own, *padded))
    return n.Project(fields=node.fields, input=filtered(wide, [met]), expressions=both)
