"""What EXPLAIN says of each physical node: Flink's node name and attributes in Flink's order.

Importing this package registers what every family of nodes says of itself.
"""

from __future__ import annotations

from tidemill.physical.explain.attributes import aggregates, joins, orders, relations
from tidemill.physical.explain.attributes.dispatch import attributes, describe, hints
from tidemill.physical.explain.attributes.names import execution_name, joined, node_name
from tidemill.physical.explain.attributes.windows import window_text

__all__ = [
    "aggregates",
    "attributes",
    "describe",
    "execution_name",
    "hints",
    "joined",
    "joins",
    "node_name",
    "orders",
    "relations",
    "window_text",
]
