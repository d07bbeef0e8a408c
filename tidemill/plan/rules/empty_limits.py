"""LIMIT 0 reads nothing."""

from __future__ import annotations

from tidemill.plan.nodes import LogicalNode, Sort, Values


def empty_limits(node: LogicalNode) -> LogicalNode | None:
    if isinstance(node, Sort) and node.fetch == 0:
        return Values(fields=node.fields, rows=())
    return None
