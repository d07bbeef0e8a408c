"""Dispatch of a node's EXPLAIN attributes by its class. Each family of nodes registers its own."""

from __future__ import annotations

from functools import singledispatch

from tidemill.physical import nodes as p
from tidemill.physical.explain.attributes.names import Attributes, joined, node_name
from tidemill.physical.explain.printer import Form


def describe(node: p.PhysicalNode) -> str:
    """A node in an error message: ``GroupAggregate(groupBy=[g], select=[g, COUNT(*) AS c])``."""
    return f"{node_name(node)}({joined(attributes(node, Form.PREFIX))})"


def hints(node: p.PhysicalNode) -> Attributes:
    """The attributes after the changelog mode."""
    ttl = node.ttl_hints if isinstance(node, p.Join | p.GroupAggregate) else ()
    if not ttl:
        return []
    options = ", ".join(f"{side}={text}" for side, text in sorted(ttl))
    return [("stateTtlHints", f"[[[STATE_TTL options:{{{options}}}]]]")]


@singledispatch
def attributes(node: p.PhysicalNode, form: Form) -> Attributes:
    return []
