"""Temporal joins in batch: each left row with the last version up to its time, over all rows at once.

Nothing is late. What a versioned view reads are its versions, as in a stream (see
``physical.joins.temporal``): the view itself gives only the last one here. Flink has no such plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidemill.physical.batch import nodes as b
from tidemill.physical.batch.nodes import BatchNode
from tidemill.physical.batch.steps import derived
from tidemill.physical.batch.ties import keeps_last
from tidemill.physical.conditions import conjunction, conjuncts, substituted
from tidemill.physical.finish import references
from tidemill.physical.joins.planning import split_condition
from tidemill.physical.joins.temporal import no_version_key, without_keys
from tidemill.physical.ranks import lowered, top_n
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Expr, InputRef, Literal
from tidemill.types.logical import BOOLEAN, Field

ALIVE = "$alive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """``source`` gives a row for each version; the versioned table's columns are ``expressions`` over it, and
    ``condition`` says which can be seen. ``key``: of the source's fields. ``latest``: a version older than
    one that came before is none."""

    source: n.LogicalNode
    expressions: tuple[Expr, ...]
    key: frozenset[int]
    condition: Expr | None = None
    latest: bool = False


def versions_of(node: n.LogicalNode) -> Versions:
    if isinstance(node, n.Project):
        below = versions_of(node.input)
        return replace(below, expressions=tuple(substituted(x, below.expressions) for x in node.expressions))
    if isinstance(node, n.Filter):
        over_rank = lowered(node)
        if over_rank is not None:
            return versions_of(over_rank)
        found = top_n(node)
        if found is not None and keeps_last(found):
            below = Versions(
                source=found.over.input,
                # The rank is 1 of every version as long as it holds.
                expressions=(*references(found.over.input.fields), _one(found.over)),
                key=frozenset(found.call.partition),
                latest=True,
            )
            return _filtered(below, conjunction(found.rest))
        return _filtered(versions_of(node.input), node.condition)
    return Versions(source=node, expressions=references(node.fields), key=_primary_key(node))


def _one(over: n.Over) -> Expr:
    return Literal(type=over.fields[-1].type, value=1)


def _filtered(versions: Versions, condition: Expr | None) -> Versions:
    if condition is None:
        return versions
    known = [] if versions.condition is None else [versions.condition]
    return replace(versions, condition=conjunction([*known, substituted(condition, versions.expressions)]))


def _primary_key(node: n.LogicalNode) -> frozenset[int]:
    """Of a table; none of anything else."""
    if not isinstance(node, n.Scan) or not node.table.primary_key:
        return frozenset()
    places = [node.columns.index(c) for c in node.table.primary_key if c in node.columns]
    return frozenset(places) if len(places) == len(node.table.primary_key) else frozenset()


def plan_temporal_join(
    node: n.TemporalJoin, left: BatchNode, versions: Versions, source: BatchNode
) -> b.TemporalJoin:
    """``source``: the plan of ``versions.source``."""
    assert node.version is not None
    width = len(node.left.fields)
    keys, rest = split_condition(node.condition, width)
    if not keys:
        raise without_keys(node)
    key = _columns(versions, node)
    chosen = [
        next((k for k in keys if isinstance(k.right, InputRef) and k.right.index == i), None)
        for i in sorted(key)
    ]
    if not key or None in chosen:
        raise no_version_key(node, [node.right.fields[i].name for i in sorted(key)])
    taken = [k for k in chosen if k is not None]
    others = [part for k, part in zip(keys, _equalities(node, width), strict=True) if k not in taken]
    right = b.Calc(
        fields=(*node.right.fields, *([Field(ALIVE, BOOLEAN)] if versions.condition is not None else [])),
        traits=derived(source, node.right.fields),
        input=source,
        projections=(*versions.expressions, *([] if versions.condition is None else [versions.condition])),
    )
    return b.TemporalJoin(
        fields=node.fields,
        left=left,
        right=right,
        kind=node.kind,
        keys=tuple((k.left, k.right, k.null_safe) for k in taken),
        condition=conjunction([*others, *rest]),
        left_time=node.time,
        right_time=node.version,
        alive=versions.condition is not None,
        latest=versions.latest,
    )


def _columns(versions: Versions, node: n.TemporalJoin) -> frozenset[int]:
    """The fields of the versioned table that are its key; none where one is missing."""
    places = {x.index: i for i, x in enumerate(versions.expressions) if isinstance(x, InputRef)}
    found = [places.get(i) for i in versions.key]
    return frozenset() if None in found else frozenset(i for i in found if i is not None)


def _equalities(node: n.TemporalJoin, width: int) -> list[Expr]:
    """The conjuncts that ``split_condition`` makes keys of, in its order."""
    _, rest = split_condition(node.condition, width)
    return [part for part in conjuncts(node.condition) if part not in rest]
