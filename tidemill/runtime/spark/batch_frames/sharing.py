"""Decides which nodes of a batch plan are one frame, and which frames are kept for their readers.

Nodes with equal digests give the same rows, so they are one frame: Spark then sees that the exchanges are the
same, and runs them once. A node that is not deterministic is computed separately for each reader.

Spark's planner knows no shared parts. It copies a frame with two readers into both, so n levels of frames
that are read twice become 2^n copies. If a node has several readers and its tree is large, the node is kept:
it runs at once as a job of its own, which gives its memory back, and the plan above begins with its rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass

from tidemill.catalog.table import CatalogTable
from tidemill.physical.batch.nodes import TableFunction
from tidemill.physical.digests import Digests
from tidemill.physical.nodes import PhysicalNode
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Expr
from tidemill.plan.rules.determinism import is_deterministic
from tidemill.types.logical import LogicalType

LARGE = 100
"""Operators, counted once for each way to them, of a part that is rather kept than copied."""


@dataclass(slots=True)
class Sharing:
    """Over the nodes of one plan."""

    _digests: Digests = field(default_factory=Digests)
    _stable: dict[int, bool] = field(default_factory=dict)
    _readers: Counter[str] = field(default_factory=Counter)
    _sizes: dict[str, int] = field(default_factory=dict)
    _kept: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, root: PhysicalNode) -> Sharing:
        made = cls()
        nodes = dict(made._walk(root, set()))
        for node in nodes.values():
            made._readers.update(made.key(i) for i in node.inputs)
        for key, node in nodes.items():
            below = [made.key(i) for i in node.inputs]
            size = 1 + sum(1 if k in made._kept else made._sizes[k] for k in below)
            made._sizes[key] = size
            if made._readers[key] > 1 and size > LARGE:
                made._kept.add(key)
        return made

    def key(self, node: PhysicalNode) -> str:
        """Equal where nodes are one frame."""
        return self._digests.of(node) if self.is_stable(node) else f"{id(node)}"

    def readers(self, node: PhysicalNode) -> int:
        """How many operators read ``node``."""
        return self._readers[self.key(node)]

    def keeps(self, node: PhysicalNode) -> bool:
        """Whether the rows of ``node`` are kept."""
        return self.key(node) in self._kept

    def _walk(self, node: PhysicalNode, seen: set[str]) -> Iterator[tuple[str, PhysicalNode]]:
        """The operators by key, inputs first, each once."""
        key = self.key(node)
        if key in seen:
            return
        seen.add(key)
        for child in node.inputs:
            yield from self._walk(child, seen)
        yield key, node

    def is_stable(self, node: PhysicalNode) -> bool:
        """Whether ``node`` gives the same rows each time, of tables that are the same."""
        known = self._stable.get(id(node))
        if known is None:
            own = all(map(is_deterministic, _expressions(node)))
            own &= not isinstance(node, TableFunction) or node.function.deterministic
            known = self._stable[id(node)] = own and all(map(self.is_stable, node.inputs))
        return known


def _expressions(value: object) -> Iterator[Expr]:
    """What a node computes, wherever in its fields it stands."""
    if isinstance(value, Expr):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _expressions(part)
    elif is_dataclass(value) and not isinstance(value, (CatalogTable, LogicalType, n.LogicalNode)):
        for f in fields(value):
            below = getattr(value, f.name)
            if not isinstance(below, PhysicalNode):
                yield from _expressions(below)
