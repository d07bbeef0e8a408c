"""What EXPLAIN asks of an operator that may run otherwise than Flink's of that name (see ``differences``).

``shown`` is the node of Flink's view, ``runs`` the node that runs for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import singledispatch

from tidemill.physical import nodes as p
from tidemill.physical.digests import PASSING

Notes = Iterator[tuple[p.PhysicalNode, str]]
"""Shown nodes, each with a text."""
Pairs = list[tuple[p.PhysicalNode, p.PhysicalNode]]
BY_WRITER = "by the writer of the exchange, while it makes rows fewer"
BY_AGGREGATION = "by the aggregation above"
CORRECTED = "corrected by later rows"


@singledispatch
def runs_otherwise(shown: p.PhysicalNode, runs: p.PhysicalNode) -> list[str]:
    """How the operator runs otherwise. By default it does not."""
    return []


@singledispatch
def notes_beside(shown: p.PhysicalNode, runs: p.PhysicalNode, is_combined: bool) -> Notes:
    """Notes of the nodes around ``shown`` for which no operator runs. ``is_combined``: the rows of
    ``combined_node`` are combined. By default none."""
    return iter(())


@singledispatch
def combined_node(runs: p.PhysicalNode) -> p.PhysicalNode | None:
    """The operator whose rows the writer of its exchange may combine. By default none."""
    return None


@singledispatch
def paired_inputs(shown: p.PhysicalNode, runs: p.PhysicalNode) -> Pairs:
    """The inputs, each with the node that runs for it. By default they are in the same order."""
    return list(zip(shown.inputs, runs.inputs, strict=True))


@singledispatch
def stands_above(runs: p.PhysicalNode, shown: p.PhysicalNode) -> bool:
    """Whether ``runs`` is not shown, because the node that runs for ``shown`` is below it. By default it is
    shown."""
    return False


@singledispatch
def note_of_above(runs: p.PhysicalNode) -> str:
    """The note of a node if ``runs`` stands above it."""
    return f"{type(runs).__name__} above it"


def passed(node: p.PhysicalNode) -> tuple[tuple[p.PhysicalNode, ...], p.PhysicalNode]:
    """The nodes from ``node`` downwards that only pass on rows, and the node below them."""
    passing: list[p.PhysicalNode] = []
    while isinstance(node, PASSING):
        passing.append(node)
        node = node.input
    return tuple(passing), node


def counted_once(reuse: p.DistinctReuse) -> str:
    """The note of an aggregation whose keys share distinct values."""
    mark = "a bit" if reuse.width else "a count"
    return f"each value once, with {mark} for each of {len(reuse.combinations)} keys"
