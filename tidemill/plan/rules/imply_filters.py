"""Derive a filter of one side from an OR over both sides of an inner or semi join.

    before: l JOIN r ON (l.a = 1 AND r.b = 2) OR (l.a = 3 AND r.b = 4)
    after:  (l WHERE a = 1 OR a = 3) JOIN (r WHERE b = 2 OR b = 4) ON the same condition

The condition of the join stays. So the rule must run only once: it would find the same filters again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce

from tidemill.plan import nodes as n
from tidemill.plan.expressions import Expr
from tidemill.plan.once import once_per_node
from tidemill.plan.predicates import conjunction, conjuncts, disjuncts
from tidemill.plan.rewrite import map_inputs, move_inputs
from tidemill.plan.rules.construct import predicate
from tidemill.plan.rules.determinism import is_deterministic
from tidemill.plan.rules.merge_filters import merge_filters
from tidemill.plan.rules.push_filters import filtered, push_filters, within

_DEMANDING = (n.JoinKind.INNER, n.JoinKind.SEMI)
"""Joins in which a row of either side that meets none counts for nothing."""


def imply_filters(plan: n.LogicalNode) -> n.LogicalNode | None:
    implied = _implied(plan)
    return None if implied is plan else implied


@once_per_node
def _implied(node: n.LogicalNode) -> n.LogicalNode:
    """Top-down, because an implied filter of a side that is a join becomes a condition of that join."""
    if isinstance(node, n.Join) and node.kind in _DEMANDING:
        node = _narrowed(node)
    return map_inputs(node, _implied)


def _narrowed(join: n.Join) -> n.Join:
    width = len(join.left.fields)
    columns = range(width), range(width, width + len(join.right.fields))
    parts = [part for part in conjuncts(join.condition) if is_deterministic(part)]
    left, right = ([x for part in parts for x in _demanded(part, within(side))] for side in columns)
    if not left and not right:
        return join
    moved = [move_inputs(x, lambda i: i - width) for x in right]
    return replace(join, left=_sunk(filtered(join.left, left)), right=_sunk(filtered(join.right, moved)))


def _demanded(part: Expr, of_side: Callable[[Expr], bool]) -> Iterator[Expr]:
    """The OR of the side's conditions in the alternatives of ``part``; nothing if an alternative has none."""
    alternatives = disjuncts(part)
    demands = [[x for x in conjuncts(each) if of_side(x)] for each in alternatives]
    if len(alternatives) > 1 and all(demands):
        yield reduce(lambda a, b: predicate("OR", a, b), dict.fromkeys(map(conjunction, demands)))


@once_per_node
def _sunk(node: n.LogicalNode) -> n.LogicalNode:
    """``node`` with its Filters pushed down as far as possible."""
    while isinstance(node, n.Filter):
        changed = merge_filters(node) or push_filters(node)
        if changed is None:
            break
        node = changed
    return map_inputs(node, _sunk)
