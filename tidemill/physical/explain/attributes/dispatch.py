"""What EXPLAIN asks of a node: its name and its attributes, in Flink's order."""

from __future__ import annotations

from functools import singledispatch

from tidemill.physical import nodes as p
from tidemill.physical.explain.attributes.texts import Attributes, joined
from tidemill.physical.explain.printer import Form
from tidemill.physical.questions import unanswered, without_default


@singledispatch
def node_name(node: p.PhysicalNode) -> str:
    """Flink's name of a node. By default its class's."""
    return type(node).__name__


@singledispatch
def execution_name(node: p.PhysicalNode) -> str:
    """The name in the execution plan. By default as in the physical plan."""
    return node_name(node)


@without_default
def attributes(node: p.PhysicalNode, form: Form) -> Attributes:
    """The attributes before the changelog mode."""
    raise unanswered("its attributes in EXPLAIN", node)


@singledispatch
def hints(node: p.PhysicalNode) -> Attributes:
    """The attributes after the changelog mode. By default none."""
    return []


def describe(node: p.PhysicalNode) -> str:
    """A node in an error message: ``GroupAggregate(groupBy=[g], select=[g, COUNT(*) AS c])``."""
    return f"{node_name(node)}({joined(attributes(node, Form.PREFIX))})"
