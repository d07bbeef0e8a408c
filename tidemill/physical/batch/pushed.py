"""What a batch plan asks of a table beside its columns and conditions, of connectors that know more.

LIMIT goes into a scan that nothing but projections lies above: each part of the scan gives so many rows at
most, and the LIMIT looks at them again. Conditions are in the way: a table may give rows that they rule out.
"""

from __future__ import annotations

from dataclasses import replace

from tidemill.physical.batch.nodes import BatchNode, Calc, TableSourceScan

_LIMITED = frozenset(("jdbc",))
"""Connectors that are told how many rows are wanted."""


def limited(node: BatchNode, rows: int) -> BatchNode:
    """``node``, of which ``rows`` rows are enough, whichever."""
    if isinstance(node, Calc) and node.condition is None:
        below = limited(node.input, rows)
        return node if below is node.input else replace(node, input=below)
    if isinstance(node, TableSourceScan) and not node.filters and _connector(node) in _LIMITED:
        return replace(node, limit=rows)
    return node


def _connector(scan: TableSourceScan) -> str:
    return dict(scan.options).get("connector", "")
