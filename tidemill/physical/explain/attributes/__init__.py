"""The name and the attributes of each physical node in EXPLAIN, in Flink's order.

Importing this package registers the attributes of every family of nodes.
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
