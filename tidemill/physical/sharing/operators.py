"""Merges operators of a job that compute the same over the same rows into one operator with all columns.

If INSERTs of a STATEMENT SET, or both sides of a join, read different columns of a view, column pruning
leaves an operator per reader. The merged operator has one exchange, one kernel and one state, and each reader
gets its own columns.

Cost: an operator is compared with earlier operators of the same origin; ``MOST`` bounds their number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from tidemill.changelog.rowkind import RowKind
from tidemill.physical import nodes as p
from tidemill.physical.digests import Digests
from tidemill.physical.sharing.aggregates import AGGREGATES
from tidemill.physical.sharing.family import Family, Part
from tidemill.physical.sharing.joins import JOINS
from tidemill.physical.sharing.windows import WINDOWS
from tidemill.physical.tree import map_up, walk
from tidemill.plan.once import once_per_node

FAMILIES = (AGGREGATES, WINDOWS, JOINS)
MOST = 62
"""Operators that are compared with each other."""


def share_operators(roots: Sequence[p.PhysicalNode]) -> list[p.PhysicalNode]:
    """The ``roots`` of one job with merged operators. Lower operators are merged before higher ones."""
    shared = list(roots)
    while parts := _Search(shared).parts():
        shared = [map_up(root, lambda node: parts.get(id(node), node)) for root in shared]
    return shared


@dataclass(frozen=True, slots=True)
class _Group:
    """Operators to merge, one per digest. ``parts``: the part of each."""

    members: tuple[p.PhysicalNode, ...]
    parts: list[Part]


@dataclass(slots=True)
class _Search:
    """One pass over the plans of a job. ``alike``: the nodes of each digest; they may differ in emitting -U.
    ``heights``: by node id, the number of operators stacked below and including the node."""

    roots: list[p.PhysicalNode]
    digests: Digests = field(default_factory=Digests)
    alike: dict[str, list[p.PhysicalNode]] = field(default_factory=lambda: defaultdict(list))
    heights: dict[int, int] = field(default_factory=dict)

    def parts(self) -> dict[int, p.PhysicalNode]:
        """The replacement of each merged operator, by id. Only the lowest operators are merged, because the
        inputs of higher operators change with them."""
        candidates: dict[int, tuple[p.PhysicalNode, Family]] = {}
        for root in self.roots:
            self._measure(root)
            candidates |= {id(node): (node, f) for node in walk(root) for f in FAMILIES if f.accepts(node)}
        senses: dict[str, tuple[Family, Hashable]] = {}
        for node, family in candidates.values():
            digest = self.digests.of(node)
            self.alike[digest].append(node)
            if digest not in senses:
                senses[digest] = (family, (self.heights[id(node)], family.signature(node, self.digests)))
        groups = self._groups(senses)
        lowest = min((self.heights[id(group.members[0])] for group in groups), default=0)
        return {
            id(node): part(node)
            for group in groups
            if self.heights[id(group.members[0])] == lowest
            for member, part in zip(group.members, group.parts, strict=True)
            for node in self.alike[self.digests.of(member)]
        }

    def _measure(self, root: p.PhysicalNode) -> None:
        @once_per_node
        def height(node: p.PhysicalNode) -> int:
            own = any(family.accepts(node) for family in FAMILIES)
            self.heights[id(node)] = own + max(map(height, node.inputs), default=0)
            return self.heights[id(node)]

        height(root)

    def _groups(self, signatures: dict[str, tuple[Family, Hashable]]) -> list[_Group]:
        """The groups in the order of digests, so the order of the script does not matter."""
        candidates: dict[tuple[Family, Hashable], list[p.PhysicalNode]] = defaultdict(list)
        for digest in sorted(signatures):
            candidates[signatures[digest]].append(self.alike[digest][0])
        groups = []
        for (family, _), nodes in candidates.items():
            if 1 < len(nodes) <= MOST:
                groups += self._grouped(nodes, family)
        return [group for group in groups if len(group.members) > 1]

    def _grouped(self, nodes: list[p.PhysicalNode], family: Family) -> list[_Group]:
        groups: list[_Group] = []
        for node in nodes:
            for number, group in enumerate(groups):
                members = (*group.members, node)
                parts = family.merge(members, self._kinds(members), self.digests)
                if parts is not None:
                    groups[number] = _Group(members, parts)
                    break
            else:
                groups.append(_Group((node,), []))
        return groups

    def _kinds(self, members: Sequence[p.PhysicalNode]) -> frozenset[RowKind]:
        kinds = (node.traits.kinds for member in members for node in self.alike[self.digests.of(member)])
        return frozenset().union(*kinds)
