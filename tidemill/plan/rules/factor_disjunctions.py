"""Move a condition that all operands of an OR share out of the OR.

    before: (a AND b) OR (a AND c)
    after:  a AND (b OR c)

So a key that every alternative repeats becomes a join key, and a condition on one side can move to that
side.
"""

from __future__ import annotations

from functools import reduce

from tidemill.plan.expressions import Call, Expr
from tidemill.plan.nodes import LogicalNode
from tidemill.plan.predicates import conjunction, conjuncts, disjuncts
from tidemill.plan.rewrite import map_expr, map_node_expressions
from tidemill.plan.rules.construct import predicate
from tidemill.plan.rules.determinism import is_deterministic


def factor_disjunctions(node: LogicalNode) -> LogicalNode | None:
    factored = map_node_expressions(node, lambda expr: map_expr(expr, _one))
    return None if factored is node else factored


def _one(expr: Expr) -> Expr:
    if not isinstance(expr, Call) or expr.function != "OR" or not is_deterministic(expr):
        return expr
    branches = [conjuncts(x) for x in disjuncts(expr)]
    shared = [x for x in branches[0] if all(x in other for other in branches[1:])]
    if not shared:
        return expr
    rests = [[x for x in branch if x not in shared] for branch in branches]
    # An alternative that demands nothing more holds wherever the others do.
    if not all(rests):
        return conjunction(shared)
    either = reduce(lambda a, b: predicate("OR", a, b), map(conjunction, rests))
    return conjunction((*shared, either))
