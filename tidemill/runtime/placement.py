"""Which rows lie where a keyed operator needs them already.

The output of a keyed operator is partitioned by the columns that carry its partition key unchanged; so is
what projections and filters make of it. Where the next operator's key is these columns, in this order (the
hash of a key depends on the order), no exchange is needed: the same rows have the same hash, and the number
of partitions is the same for the whole job.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import singledispatch

from tidemill.runtime import graph as g

Partitioning = tuple[frozenset[str], ...]
"""Per place of the key the columns that have its value in every row."""


@singledispatch
def partitioned_by(node: g.ExecNode) -> Partitioning | None:
    """What the node's rows are partitioned by; () is one partition for all, None is unknown."""
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
    """Whether the port's rows are in their partition as they come."""
    if port.summary is not None or node.clocked:
        # By processing time it is run where no rows came, which only an exchange can ask for.
        return False
    have = partitioned_by(port.input)
    if have is None or node.single or not have:
        return node.single and have == ()
    references = dict(zip(port.columns, port.references, strict=True))
    keys = [references[k] for k in port.keys]
    return len(keys) == len(have) and all(k in names for k, names in zip(keys, have, strict=True))


def origin(node: g.ExecNode, columns: tuple[str, ...]) -> tuple[g.ExecNode, tuple[str, ...]]:
    """Follows ``columns`` down through projections that only refer; where a computation is, it stops, and
    where rows become changes or changes rows."""
    while isinstance(node, g.Select) and node.condition is None and node.has_kind == node.input.has_kind:
        references = dict(zip(node.columns, node.references, strict=True))
        if any(references[c] is None for c in columns):
            break
        columns = tuple(references[c] or "" for c in columns)
        node = node.input
    return node, columns


def origins_of(port: g.Port) -> tuple[str, ...]:
    """What a port's event time depends on: sources and operators, none where it has no time."""
    return tuple(dict.fromkeys(_origins(port.input))) if port.timed else ()


def _origins(node: g.ExecNode) -> Iterator[str]:
    if isinstance(node, g.AssignWatermark):
        yield node.source
    elif isinstance(node, g.Keyed):
        yield node.operator
    else:
        for child in node.inputs:
            yield from _origins(child)
