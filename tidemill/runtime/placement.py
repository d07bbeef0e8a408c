"""Which rows are already in the partition where a keyed operator needs them.

    GROUP BY k, then a Top-N with PARTITION BY k: one exchange by k serves both operators

The output of a keyed operator is partitioned by the columns that carry its key unchanged; projections
and filters keep this. If the key of the next operator is these columns in the same order, no exchange
is needed. The order counts, because the hash of a key depends on it. The number of partitions is the
same for the whole job.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import singledispatch

from tidemill.runtime import graph as g

Partitioning = tuple[frozenset[str], ...]
"""Per place of the key the columns that have its value in every row."""


@singledispatch
def partitioned_by(node: g.ExecNode) -> Partitioning | None:
    """The columns that the node's rows are partitioned by. () is one partition for all rows, None is
    unknown."""
    return None


@partitioned_by.register
def _(node: g.Keyed) -> Partitioning | None:
    if node.single:
        return ()
    return node.partitioned if node.partitioned and all(node.partitioned) else None


@partitioned_by.register
def _(node: g.Select) -> Partitioning | None:
    below = partitioned_by(node.input)
    if below is None:
        return None
    renamed = tuple(
        frozenset(c for c, old in zip(node.columns, node.references, strict=True) if old in names)
        for names in below
    )
    return renamed if all(renamed) else None


def stays(node: g.Keyed, port: g.Port) -> bool:
    """Whether the port's rows already are in their partition."""
    if port.summary is not None or port.buckets is not None or node.clocked:
        # By processing time it is run where no rows came, which only an exchange can ask for.
        return False
    have = partitioned_by(port.input)
    if have is None or node.single or not have:
        return node.single and have == ()
    references = dict(zip(port.columns, port.references, strict=True))
    keys = [references[k] for k in port.keys]
    return len(keys) == len(have) and all(k in names for k, names in zip(keys, have, strict=True))


@dataclass(frozen=True, slots=True)
class Origin:
    """The ``node`` that makes rows, the names of their columns there, and which of its rows count."""

    node: g.ExecNode
    columns: tuple[str, ...]
    marked: g.Marked | None = None

    @property
    def below(self) -> Origin | None:
        """The origin one projection further down. None if columns are computed or rows are chosen there,
        and where rows become changes or changes become rows."""
        node, marked = self.node, self.marked
        if not isinstance(node, g.Select) or node.has_kind != node.input.has_kind:
            return None
        if node.condition is not None or (node.marked is not None and marked is not None):
            return None
        references = dict(zip(node.columns, node.references, strict=True))
        columns = [references[c] for c in self.columns]
        mark = None if marked is None else references[marked.column]
        if None in columns or (marked is not None and mark is None):
            return None
        if marked is not None:
            marked = replace(marked, column=mark or "")
        return Origin(node.input, tuple(c or "" for c in columns), node.marked or marked)


def origin(node: g.ExecNode, columns: tuple[str, ...]) -> Origin:
    """Follows ``columns`` down through projections that only pass columns on."""
    found = Origin(node, columns)
    while (below := found.below) is not None:
        found = below
    return found


def origins_of(port: g.Port) -> tuple[str, ...]:
    """The sources and operators that a port's event time depends on; empty if it has no time."""
    return tuple(dict.fromkeys(_origins(port.input))) if port.timed else ()


def _origins(node: g.ExecNode) -> Iterator[str]:
    if isinstance(node, g.AssignWatermark):
        yield node.source
    elif isinstance(node, g.Keyed):
        yield node.operator
    else:
        for child in node.inputs:
            yield from _origins(child)
