"""Give every global aggregate of a subquery its row over no rows.

    before: SELECT o.x, (SELECT SUM(n) FROM (SELECT COUNT(*) AS n FROM i) AS s) FROM o
    after:  SELECT o.x, (SELECT SUM(n) FROM (SELECT COALESCE(c.n, 0) AS n
            FROM (one row) LEFT JOIN (SELECT COUNT(*) AS n FROM i) AS c ON TRUE) AS s) FROM o

A streaming aggregate has no row until its input has a row. At the top of a query Flink shows that, and so do
we. Inside a subquery it would change the answer of the query around it.

The rule leaves three aggregates alone:

- the aggregate that makes a subquery a single row: it gets its row where the subquery is joined;
- a correlated aggregate: it gets its row from the domain (``dependent_join``);
- a user's aggregate: only a call of the user's code gives its value over no rows.
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
    """Rewrites the whole plan from its root, before its subqueries become joins."""
    changed = _outside(root)
    return None if changed is root else changed


@once_per_node
def _outside(node: n.LogicalNode) -> n.LogicalNode:
    return _rewritten(node, _outside)


@once_per_node
def _top(node: n.LogicalNode) -> n.LogicalNode:
    """``node`` is the top of a subquery, or a node between that top and the aggregate of a single row. If
    such a node has subqueries of its own, it becomes a join, and the subquery is not a single row by its
    form."""
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
    """``node`` with ``walk`` applied to its inputs. The right input of a lateral join is a subquery, too."""
    lateral = node.right if isinstance(node, n.LateralJoin) else None
    changed = map_inputs(node, lambda x: (_top if x is lateral else walk)(x))
    return map_node_expressions(changed, lambda expr: map_expr(expr, _subquery))


def _subquery(expr: Expr) -> Expr:
    inner = subplan(expr)
    return expr if inner is None else with_subplan(expr, _top(inner))
