"""Give every global aggregate of a subquery its row over no rows.

    before: SELECT o.x, (SELECT SUM(n) FROM (SELECT COUNT(*) AS n FROM i) AS s) FROM o
    after:  SELECT o.x, (SELECT SUM(n) FROM (SELECT COALESCE(c.n, 0) AS n
            FROM (one row) LEFT JOIN (SELECT COUNT(*) AS n FROM i) AS c ON TRUE) AS s) FROM o

A streaming aggregate has no row before its input has a row. At the top of a query this is the answer, but a
subquery must have its row. The rule does not change three kinds of aggregates:

- the aggregate that makes a subquery a single row: the join with the subquery adds its row;
- correlated aggregates: the domain gives their rows;
- a user's aggregate: only running it gives its value over no rows.
"""

from __future__ import annotations

from collections.abc import Callable

from tidemill.plan import nodes as n
from tidemill.plan.expressions import Expr
from tidemill.plan.once import once_per_node
from tidemill.plan.rewrite import (
    map_expr,
    map_inputs,
    map_node_expressions,
    node_expressions,
    outer_refs,
    subplan,
    with_subplan,
)
from tidemill.plan.rules.construct import one_row
from tidemill.plan.rules.determinism import has_subquery
from tidemill.plan.rules.single_row import join_aggregate, single_row


def rows_of_nothing(root: n.LogicalNode) -> n.LogicalNode | None:
    """Works on the whole plan from the root, before its subqueries become joins."""
    changed = _outside(root)
    return None if changed is root else changed


@once_per_node
def _outside(node: n.LogicalNode) -> n.LogicalNode:
    return _rewritten(node, _outside)


@once_per_node
def _top(node: n.LogicalNode) -> n.LogicalNode:
    """A subquery's plan, down to the aggregate that makes it a single row. A further subquery on the way
    becomes a join, so the plan is no single row by its form any more."""
    single = single_row(node)
    if single is None or any(map(has_subquery, node_expressions(node))):
        return _inside(node)
    return _rewritten(node, _inside if single.aggregate is node else _top)


@once_per_node
def _inside(node: n.LogicalNode) -> n.LogicalNode:
    rewritten = _rewritten(node, _inside)
    if not isinstance(rewritten, n.Aggregate) or rewritten.keys or outer_refs(rewritten):
        return rewritten
    if any(call.user is not None for call in rewritten.calls):
        return rewritten
    wide, values = join_aggregate(one_row(), rewritten)
    return n.Project(fields=rewritten.fields, input=wide, expressions=values)


def _rewritten(node: n.LogicalNode, walk: Callable[[n.LogicalNode], n.LogicalNode]) -> n.LogicalNode:
    """``node`` with ``walk`` applied to its inputs. The right side of a lateral join is a subquery, too."""
    lateral = node.right if isinstance(node, n.LateralJoin) else None
    changed = map_inputs(node, lambda x: (_top if x is lateral else walk)(x))
    return map_node_expressions(changed, lambda expr: map_expr(expr, _subquery))


def _subquery(expr: Expr) -> Expr:
    inner = subplan(expr)
    return expr if inner is None else with_subplan(expr, _top(inner))
