"""Which nodes of an exec graph work on Arrow batches in Python workers, without the JVM in between.

Some sources and all keyed operators make Arrow batches. Watermarks, windows that are attached to rows,
computed projections, unions and lookup joins go on with them in the same worker.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.runtime import graph as g
from tidemill.runtime.placement import Origin, origin


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """``in_java``: names of projections that the JVM computes."""

    in_java: frozenset[str] = frozenset()

    def made(self, node: g.ExecNode) -> bool:
        """Whether the node makes Arrow batches."""
        return isinstance(node, g.Keyed) or (isinstance(node, g.Read) and node.arrow)

    def go_on(self, node: g.ExecNode) -> bool:
        """Whether the node's rows are made of Arrow batches in the workers that have them."""
        if isinstance(node, g.AssignWatermark):
            found = origin(node.input, (*node.columns, node.mark))
            return found.marked is None and self._of_a_source(found.node)
        if isinstance(node, g.Generate) and node.attached is not None:
            found = origin(node.input, node.input.columns)
            return found.marked is None and self.follows(found.node)
        if isinstance(node, g.Select):
            return self._computed(node)
        if isinstance(node, g.Merge | g.Lookup):
            return all(self.follows(origin(below, below.columns).node) for below in node.inputs)
        return isinstance(node, g.Keyed) and node.timed

    def follows(self, node: g.ExecNode) -> bool:
        """Whether a worker has the node's rows as Arrow batches."""
        return self.made(node) or self.go_on(node)

    def _of_a_source(self, node: g.ExecNode) -> bool:
        if isinstance(node, g.Select):
            return self._computed(node) and self._of_a_source(computed_over(node).node)
        return isinstance(node, g.Read) and self.made(node)

    def _computed(self, node: g.Select) -> bool:
        if node.arrays is None or node.arrays.name in self.in_java:
            return False
        return self.follows(computed_over(node).node)


def computed_over(node: g.Select) -> Origin:
    """What makes the rows of a computed projection; the columns are those that its expressions need."""
    return origin(node.input, () if node.arrays is None else node.arrays.projection.names)
