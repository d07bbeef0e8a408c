"""Expand GROUPING SETS below TUMBLE, HOP or CUMULATE, instead of above.

    before: rows -> window -> one copy per grouping set -> aggregate
    after:  rows -> one copy per grouping set -> window -> aggregate

The rule does not apply to SESSION and DYNAMIC_CUMULATE. The rows of a PARTITION BY key decide the bounds of
these windows, whatever the grouping sets are.
"""

from __future__ import annotations

from tidemill.plan import nodes as n
from tidemill.plan.expanded_windows import below_windows
from tidemill.plan.rules.determinism import has_subquery, is_deterministic


def expand_below_windows(node: n.LogicalNode) -> n.LogicalNode | None:
    if not isinstance(node, n.Expand):
        return None
    below = node.input
    if isinstance(below, n.Project):
        if any(has_subquery(x) or not is_deterministic(x) for x in below.expressions):
            return None
        below = below.input
    if not isinstance(below, n.WindowTableFunction) or below.kind.is_data_driven or below.partition:
        return None
    return below_windows(node)
