"""Operators of a job over the same rows, in the same sense, are one with the columns of all.

A view that is read for different columns (by the INSERTs of a STATEMENT SET, by both sides of a join) leaves
an operator for each reader, as column pruning takes from each what it does not need. One for all has one
exchange, one kernel and one state; a reader gets its own columns of it.

Cost: an operator is held against those found of the same origin; ``MOST`` bounds how many these are.
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
    """The ``roots`` of one job, lower operators shared before those above them."""
    shared = list(roots)
    while parts := _Search(shared).parts():
        shared = [map_up(root, lambda node: parts.get(id(node), node)) for root in shared]
    return shared


@dataclass(frozen=True, slots=True)
class _Group:
    """Operators that are one, of each digest the first; ``parts`` of it, one each."""

    members: tuple[p.PhysicalNode, ...]
    parts: list[Part]


@dataclass(slots=True)
class _Search:
    """One pass over the plans of a job. ``alike``: the nodes of each digest, which may differ in whether they
    give -U; ``heights``: how many operators stand on each other, by the id of the uppermost."""

    roots: list[p.PhysicalNode]
    digests: Digests = field(default_factory=Digests)
    alike: dict[str, list[p.PhysicalNode]] = field(default_factory=lambda: defaultdict(list))
    heights: dict[int, int] = field(default_factory=dict)

    def parts(self) -> dict[int, p.PhysicalNode]:
        """What stands in the place of each operator that is shared, by its id; of the lowest ones alone, as
        those above are not yet what they will be."""
        found: dict[int, tuple[p.PhysicalNode, Family]] = {}
        for root in self.roots:
            self._measure(root)
            found |= {id(node): (node, f) for node in walk(root) for f in FAMILIES if f.accepts(node)}
        senses: dict[str, tuple[Family, Hashable]] = {}
        for node, family in found.values():
            digest = self.digests.of(node)
            self.alike[digest].append(node)
            if digest not in senses:
                senses[digest] = (family, (self.heights[id(node)], family.sense(node, self.digests)))
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

    def _groups(self, senses: dict[str, tuple[Family, Hashable]]) -> list[_Group]:
        """In the order of digests, which is not that of the script."""
        candidates: dict[tuple[Family, Hashable], list[p.PhysicalNode]] = defaultdict(list)
        for digest in sorted(senses):
            candidates[senses[digest]].append(self.alike[digest][0])
        found = []
        for (family, _), nodes in candidates.items():
            if 1 < len(nodes) <= MOST:
                found += self._grouped(nodes, family)
        return [group for group in found if len(group.members) > 1]

    def _grouped(self, nodes: list[p.PhysicalNode], family: Family) -> list[_Group]:
        groups: list[_Group] = []
        for node in nodes:
            for number, group in enumerate(groups):
                members = (*group.members, node)
                parts = family.together(members, self._kinds(members), self.digests)
                if parts is not None:
                    groups[number] = _Group(members, parts)
                    break
            else:
                groups.append(_Group((node,), []))
        return groups

    def _kinds(self, members: Sequence[p.PhysicalNode]) -> frozenset[RowKind]:
        kinds = (node.traits.kinds for member in members for node in self.alike[self.digests.of(member)])
        return frozenset().union(*kinds)
