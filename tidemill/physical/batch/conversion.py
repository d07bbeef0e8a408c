"""The question how a logical node becomes nodes of a batch plan.

``planner`` has the answers. An operator that only streams refuses in ``physical.operators``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

from tidemill.config.batch_options import ADAPTIVE_BROADCAST
from tidemill.config.optimizer_options import BROADCAST_THRESHOLD
from tidemill.config.option import Configuration
from tidemill.errors import NotSupportedError
from tidemill.physical.batch.sizes import SizeOf
from tidemill.physical.nodes import PhysicalNode
from tidemill.plan import nodes as n
from tidemill.plan.once import once_per_node


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchContext:
    """``size_of`` gives the current size of a table in bytes."""

    config: Configuration
    size_of: SizeOf

    @property
    def threshold(self) -> int:
        """The most bytes of a broadcast side; if negative, nothing is broadcast."""
        late = self.config.read(ADAPTIVE_BROADCAST).upper() == "RUNTIME_ONLY"
        return -1 if late else self.config.read(BROADCAST_THRESHOLD)


@once_per_node
def convert(node: n.LogicalNode, context: BatchContext) -> PhysicalNode:
    """The plan of ``node``; a shared sub-plan becomes a shared object."""
    return convert_node(node, context)


@singledispatch
def convert_node(node: n.LogicalNode, context: BatchContext) -> PhysicalNode:
    """``convert`` by kind of node; implementations convert their inputs with ``convert``."""
    raise NotSupportedError(f"{type(node).__name__} in batch mode is not supported yet")
