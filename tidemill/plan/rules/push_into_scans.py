"""Offer the conjuncts over a Scan to its source, which may use them to skip data. The Filter stays.

before: Filter(day = '2024-05-01', Scan(t))
after:  Filter(day = '2024-05-01', Scan(t, filters=[day = '2024-05-01']))
"""

from __future__ import annotations

from dataclasses import replace

from tidemill.plan import nodes as n
from tidemill.plan.expressions import Expr, OuterRef, UserCall
from tidemill.plan.predicates import conjuncts
from tidemill.plan.rewrite import subplan
from tidemill.plan.rules.determinism import is_deterministic


def push_into_scans(node: n.LogicalNode) -> n.LogicalNode | None:
    if not isinstance(node, n.Filter) or not isinstance(node.input, n.Scan):
        return None
    offered = tuple(
        p
        for p in conjuncts(node.condition)
        if is_deterministic(p) and not any(_is_engine_only(x) for x in p.walk())
    )
    scan = node.input
    return replace(node, input=replace(scan, filters=offered)) if offered != scan.filters else None


def _is_engine_only(expr: Expr) -> bool:
    """Whether only the engine can evaluate ``expr``."""
    return isinstance(expr, OuterRef | UserCall) or subplan(expr) is not None
