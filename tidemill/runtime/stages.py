"""Which operators of an exec graph run in one task, and which stages read their rows.

A stage is one task per partition. It has a keyed operator, and below it the operators whose rows are
already in their partition (see ``placement``), at most ``DEEPEST`` on top of each other. Rows from
elsewhere come in groups: a group has all ports that one node feeds.

A node that feeds a single group makes the group's blocks in its own task. If a node feeds several
stages, or a stage and something else, its rows are spread: it runs once per epoch, and each reader
takes its part.

Stateless nodes run wherever their rows go; only reads and keyed operators run once. The stages are
built once per job, and EXPLAIN EXECUTION_PLAN shows them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tidemill.runtime import graph as g
from tidemill.runtime.placement import origin, stays

DEEPEST = 40
"""A task is pickled, and run, by recursion; operators that stand higher have an exchange below them."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Leaf:
    """The ``number``-th input from outside of the task. ``columns`` are columns of ``below``, the node
    that makes its rows, in the order of the port's columns. ``marked``: which of the rows. ``cut``:
    only the depth limit keeps the rows from being made in this task."""

    node: g.Keyed
    port: g.Port
    number: int
    below: g.ExecNode
    columns: tuple[str, ...]
    marked: g.Marked | None = None
    cut: bool = False


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Task:
    """``inputs``: for each port a leaf, or the task that makes its rows in the same partition."""

    node: g.Keyed
    inputs: tuple[Leaf | Task, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Stage:
    """``number``: its place among the job's stages, inputs first. ``groups``: the leaves by the node that
    feeds them. ``in_place``: no exchange is needed, because the rows of the one group already are in
    their partition."""

    number: int
    task: Task
    groups: tuple[tuple[Leaf, ...], ...]

    @property
    def node(self) -> g.Keyed:
        return self.task.node

    @property
    def in_place(self) -> bool:
        return len(self.groups) == 1 and all(
            stays(leaf.node, leaf.port) and not leaf.cut for leaf in self.groups[0]
        )


@dataclass(slots=True)
class Spread:
    """A node that runs once for several readers: groups by the number of their stage, and in ``rows`` the
    number of readers that take its rows unchanged."""

    node: g.ExecNode
    groups: dict[int, tuple[Leaf, ...]] = field(default_factory=dict)
    rows: int = 0


@dataclass(slots=True)
class Stages:
    """The stages of one job, by their upper operator."""

    _uses: Counter[int] = field(default_factory=Counter)
    _stages: dict[int, Stage] = field(default_factory=dict)
    _spreads: dict[int, Spread] = field(default_factory=dict)

    @classmethod
    def of(cls, outputs: Sequence[g.ExecNode]) -> Stages:
        made = cls()
        for node in outputs:
            made._count(node)
        for node in outputs:
            made._feed(node)
        return made

    def stage(self, node: g.Keyed) -> Stage:
        """The stage whose upper operator is ``node``."""
        return self._stages[id(node)]

    def spread(self, node: g.ExecNode) -> Spread | None:
        """How the rows of ``node`` go to several readers; None if it has one reader."""
        return self._spreads.get(id(node))

    @property
    def all(self) -> tuple[Stage, ...]:
        """In the order of their numbers."""
        return tuple(self._stages.values())

    @property
    def spreads(self) -> tuple[Spread, ...]:
        return tuple(self._spreads.values())

    def _count(self, node: g.ExecNode) -> None:
        """Counts a reader of ``node``. Stateless nodes pass the request on, once per path."""
        if isinstance(node, g.Read | g.Keyed):
            self._uses[id(node)] += 1
            if self._uses[id(node)] > 1:
                return
        below = _feeders(node) if isinstance(node, g.Keyed) else node.inputs
        for child in below:
            self._count(child)

    def _feed(self, node: g.ExecNode) -> None:
        """Registers a reader that takes the rows of ``node`` unchanged."""
        if not isinstance(node, g.Read | g.Keyed):
            for child in node.inputs:
                self._feed(child)
            return
        if self._spreads_out(node, 1):
            self._spreads.setdefault(id(node), Spread(node)).rows += 1
        self._enter(node)

    def _spreads_out(self, node: g.ExecNode, own: int) -> bool:
        """Whether there are readers beside its ``own``. Blocks of a spread carry no event time, so an
        operator with event time runs once per reader."""
        return self._uses[id(node)] > own and not (isinstance(node, g.Keyed) and node.timed)

    def _enter(self, node: g.ExecNode) -> None:
        """Lays out the stage of a keyed operator, after the stages below it."""
        if not isinstance(node, g.Keyed) or id(node) in self._stages:
            return
        leaves: list[Leaf] = []
        task = self._task(node, leaves, DEEPEST)
        by_feeder: dict[int, list[Leaf]] = {}
        for leaf in leaves:
            by_feeder.setdefault(id(leaf.below), []).append(leaf)
        groups = tuple(map(tuple, by_feeder.values()))
        for group in groups:
            below = group[0].below
            if isinstance(below, g.Read | g.Keyed):
                self._enter(below)
            else:
                self._feed(below)
        number = len(self._stages)
        self._stages[id(node)] = Stage(number=number, task=task, groups=groups)
        for group in groups:
            below = group[0].below
            readers = len({id(leaf.node) for leaf in group})
            if isinstance(below, g.Read | g.Keyed) and self._spreads_out(below, readers):
                self._spreads.setdefault(id(below), Spread(below)).groups[number] = group

    def _task(self, node: g.Keyed, leaves: list[Leaf], room: int) -> Task:
        inputs: list[Leaf | Task] = []
        feeders = [origin(port.input, port.references) for port in node.ports]
        for port, found in zip(node.ports, feeders, strict=True):
            below = found.node
            alone = self._uses[id(below)] == 1 and sum(other.node is below for other in feeders) == 1
            within = isinstance(below, g.Keyed) and alone and stays(node, port)
            if isinstance(below, g.Keyed) and within and room > 1:
                inputs.append(self._task(below, leaves, room - 1))
                continue
            leaf = Leaf(
                node=node,
                port=port,
                number=len(leaves),
                below=below,
                columns=found.columns,
                marked=found.marked,
                cut=within,
            )
            leaves.append(leaf)
            inputs.append(leaf)
        return Task(node=node, inputs=tuple(inputs))


def _feeders(node: g.Keyed) -> list[g.ExecNode]:
    """The nodes that make the rows of an operator's ports, each once."""
    found = [origin(port.input, port.references).node for port in node.ports]
    return list({id(below): below for below in found}.values())
