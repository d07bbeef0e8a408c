"""A join whose right side reads the left row, as a join of two plans that stand alone."""

from __future__ import annotations

from tidemill.errors import NotSupportedError
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Expr
from tidemill.plan.predicates import conjunction, conjuncts
from tidemill.plan.rewrite import replace_inputs
from tidemill.plan.rules.construct import columns, join, named
from tidemill.plan.rules.correlation import correlate
from tidemill.plan.rules.push_filters import filtered
from tidemill.plan.rules.unnest_subqueries import join_single, peeled, unnested


def lateral_join(
    left: n.LogicalNode, right: n.LogicalNode, kind: n.JoinKind, condition: Expr
) -> n.LogicalNode:
    """Left fields, then right fields. References of level 1 in ``right`` are columns of ``left``;
    ``condition`` is over both sides' columns; ``kind`` INNER or LEFT."""
    right = unnested(right)
    core, _ = peeled(right)
    if isinstance(core, n.Aggregate) and not core.keys:
        return _single(left, right, kind, condition)
    found = correlate(left, right)
    joined = join(left, found.plan, kind, conjunction((*conjuncts(found.condition), *conjuncts(condition))))
    width = len(left.fields) + found.width
    if len(joined.fields) == width:
        return joined
    kept = columns(joined, width)
    return n.Project(fields=joined.fields[:width], input=joined, expressions=kept)


def _single(left: n.LogicalNode, right: n.LogicalNode, kind: n.JoinKind, condition: Expr) -> n.LogicalNode:
    """A global aggregate gives each left row exactly one row, also where it aggregates nothing."""
    if kind is n.JoinKind.LEFT and conjuncts(condition):
        raise NotSupportedError("LEFT JOIN LATERAL of an aggregate with a condition is not supported")
    wide, values = join_single(left, right)
    expressions = (*columns(wide, len(left.fields)), *values)
    names = [*(f.name for f in left.fields), *(f.name for f in right.fields)]
    plan = n.Project(fields=named(names, expressions), input=wide, expressions=expressions)
    return filtered(plan, conjuncts(replace_inputs(condition, lambda i: columns(plan)[i])))
