"""Temporal joins in batch: each left row with the last version up to its time, over all rows at once.

Nothing is late. A version is found by identity of its key, as in a stream. What a view of the first row of
each key reads are its versions, too (see ``physical.joins.temporal``), those that were the first when they
came: the view itself gives only the last one here. What comes out of an aggregation comes in the order of
its time. Flink has no such plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidemill.errors import NotSupportedError
from tidemill.physical.batch import nodes as b
from tidemill.physical.batch.nodes import BatchNode
from tidemill.physical.batch.sizes import with_fields
from tidemill.physical.batch.ties import keeps_last
from tidemill.physical.conditions import conjunction, conjuncts, substituted
from tidemill.physical.finish import references
from tidemill.physical.joins.planning import split_condition
from tidemill.physical.joins.temporal import no_version_key, without_keys
from tidemill.physical.ranks import TopN, lowered, top_n
from tidemill.plan import nodes as n
from tidemill.plan.event_time import event_times, version_times
from tidemill.plan.expressions import Expr, InputRef, Literal, OverCall, SortKey
from tidemill.types.logical import BOOLEAN, Field
from tidemill.types.values import is_identity

ALIVE, _ORDER = "$alive", "$order"


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """``source`` gives a row for each version; the versioned table's columns are ``expressions`` over it, and
    ``condition`` says which can be seen. ``key`` and ``order`` are of the source's fields; by ``order``,
    where there is one, a row is a version that comes before all that had come, with ``later`` also beside the
    first of them."""

    source: n.LogicalNode
    expressions: tuple[Expr, ...]
    key: frozenset[int]
    condition: Expr | None = None
    order: tuple[SortKey, ...] = ()
    later: bool = False


def versions_of(node: n.LogicalNode) -> Versions:
    if isinstance(node, n.Project):
        below = versions_of(node.input)
        return replace(below, expressions=tuple(substituted(x, below.expressions) for x in node.expressions))
    if isinstance(node, n.Filter):
        over_rank = lowered(node)
        if over_rank is not None:
            return versions_of(over_rank)
        found = top_n(node)
        if found is not None and _first_alone(found):
            below = Versions(
                source=found.over.input,
                # The rank is 1 of every version as long as it holds.
                expressions=(*references(found.over.input.fields), _one(found.over)),
                key=frozenset(found.call.partition),
                order=found.call.order,
                later=keeps_last(found),
            )
            return _filtered(below, conjunction(found.rest))
        return _filtered(versions_of(node.input), node.condition)
    if isinstance(node, n.Aggregate) and min(version_times(node), default=0) >= max(len(node.keys), 1):
        return _so_far(node)
    return Versions(source=node, expressions=references(node.fields), key=_primary_key(node))


def _so_far(node: n.Aggregate) -> Versions:
    """Of groups that hold as of their latest time every row is a version: what the group has had by then."""
    below = node.input
    times = sorted(event_times(below))
    if len(times) != 1 or any(c.distinct or c.filter is not None or c.user for c in node.calls):
        raise NotSupportedError(
            "FOR SYSTEM_TIME AS OF of an aggregation with DISTINCT, FILTER, user functions or several event "
            "times is not supported in batch mode"
        )
    order = (SortKey(index=times[0], nulls_first=True),)
    calls = tuple(
        OverCall(
            function=c.function,
            args=c.args,
            type=c.type,
            name=f"{_ORDER}{i}",
            partition=node.keys,
            order=order,
            options=c.options,
        )
        for i, c in enumerate(node.calls)
    )
    fields = (*below.fields, *(Field(c.name, c.type) for c in calls))
    found = references(fields)
    shown = (*(found[key] for key in node.keys), *found[len(below.fields) :])
    return Versions(
        source=n.Over(fields=fields, input=below, calls=calls), expressions=shown, key=frozenset(node.keys)
    )


def _first_alone(found: TopN) -> bool:
    return found.start == found.end == 1 and found.call.function == "ROW_NUMBER"


def _one(over: n.Over) -> Expr:
    return Literal(type=over.fields[-1].type, value=1)


def _filtered(versions: Versions, condition: Expr | None) -> Versions:
    if condition is None:
        return versions
    known = [] if versions.condition is None else [versions.condition]
    return replace(versions, condition=conjunction([*known, substituted(condition, versions.expressions)]))


def _primary_key(node: n.LogicalNode) -> frozenset[int]:
    """Of a table, or of an aggregation; none of anything else."""
    if isinstance(node, n.Aggregate):
        return frozenset(range(len(node.keys)))
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
    equal = zip(keys, _equalities(node, width), strict=True)
    others = [part for k, part in equal if k not in taken or not is_identity(k.left.type)]
    order, added = _order(versions)
    alive = [] if versions.condition is None else [versions.condition]
    fields = [Field(f"{_ORDER}{i}", x.type) for i, x in enumerate(added)]
    right = b.Calc(
        fields=(*node.right.fields, *fields, *[Field(ALIVE, BOOLEAN)] * len(alive)),
        most=with_fields(source, node.right.fields),
        input=source,
        projections=(*versions.expressions, *added, *alive),
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
        order=order,
        later=versions.later,
        arrives=_arrives(versions.source),
    )


def _order(versions: Versions) -> tuple[tuple[SortKey, ...], list[Expr]]:
    """The order over the columns of the versions, and those that are needed for it alone."""
    shown: list[Expr] = list(versions.expressions)
    added: list[Expr] = []
    keys = []
    for key in versions.order:
        column = InputRef(type=versions.source.fields[key.index].type, index=key.index)
        if column not in shown:
            shown.append(column)
            added.append(column)
        keys.append(replace(key, index=shown.index(column)))
    return tuple(keys), added


def _arrives(node: n.LogicalNode) -> bool:
    """Whether its rows come in the order in which those of a table do."""
    grouped = isinstance(node, n.Aggregate | n.Join | n.TemporalJoin)
    return not grouped and all(map(_arrives, node.inputs))


def _columns(versions: Versions, node: n.TemporalJoin) -> frozenset[int]:
    """The fields of the versioned table that are its key; none where one is missing."""
    places = {x.index: i for i, x in enumerate(versions.expressions) if isinstance(x, InputRef)}
    found = [places.get(i) for i in versions.key]
    return frozenset() if None in found else frozenset(i for i in found if i is not None)


def _equalities(node: n.TemporalJoin, width: int) -> list[Expr]:
    """The conjuncts that ``split_condition`` makes keys of, in its order."""
    _, rest = split_condition(node.condition, width)
    return [part for part in conjuncts(node.condition) if part not in rest]
