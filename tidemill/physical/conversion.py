"""The question how a logical node becomes physical nodes.

``operators`` has the answers for logical nodes that one operator runs, ``planner`` all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch

from tidemill.config.sink_options import STATE_TTL
from tidemill.errors import NotSupportedError
from tidemill.physical import nodes as p
from tidemill.physical.context import PlannerContext
from tidemill.plan import nodes as n
from tidemill.plan.once import once_per_node


@once_per_node
def convert(node: n.LogicalNode, context: PlannerContext) -> p.PhysicalNode:
    """The physical nodes of ``node`` and all below it; a shared sub-plan is converted once."""
    return convert_node(node, context)


@singledispatch
def convert_node(node: n.LogicalNode, context: PlannerContext) -> p.PhysicalNode:
    """As ``convert``, asked once per node."""
    raise NotSupportedError(f"{type(node).__name__} is not supported in a streaming plan.")


def state_ttl(context: PlannerContext, hints: Mapping[str, str] | None = None) -> int:
    """Milliseconds: a STATE_TTL hint's value, else table.exec.state.ttl."""
    for text in (hints or {}).values():
        return STATE_TTL.parse(text).milliseconds
    return context.config.read(STATE_TTL).milliseconds
