"""Temporal joins in batch mode: joins each left row with the last version up to its time, over all rows.

No row is late. Versions are found by identity of their key, as in streaming mode. If the right side is a view
of the first row per key, its versions are the input rows that were the first when they came (see
``physical.joins.temporal``), because the view itself only gives the last of them. Rows of an aggregation come
in the order of their time. Flink has no such plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidemill.errors import NotSupportedError
from tidemill.physical import nodes as p
from tidemill.physical.batch import nodes as b
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
    """``source`` gives a row per version. The versioned table's columns are ``expressions`` over it, and
    ``condition`` says which versions are visible. ``key`` and ``order`` are fields of the source. If there is
    an ``order``, a row is a version only if it sorts before all earlier rows, or with ``later`` equal to the
    first."""

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
        top = top_n(node)
        if top is not None and _is_first_row(top):
            below = Versions(
                source=top.over.input,
                # The rank of a version is 1 while it is valid.
                expressions=(*references(top.over.input.fields), _one(top.over)),
                key=frozenset(top.call.partition),
                order=top.call.order,
                later=keeps_last(top),
            )
            return _filtered(below, conjunction(top.other_conditions))
        return _filtered(versions_of(node.input), node.condition)
    if isinstance(node, n.Aggregate) and min(version_times(node), default=0) >= max(len(node.keys), 1):
        return _cumulated(node)
    return Versions(source=node, expressions=references(node.fields), key=_primary_key(node))


def _cumulated(node: n.Aggregate) -> Versions:
    """Groups versioned by their latest time: every row is a version, with the group's results up to that
    row."""
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
    columns = references(fields)
    expressions = (*(columns[key] for key in node.keys), *columns[len(below.fields) :])
    return Versions(
        source=n.Over(fields=fields, input=below, calls=calls),
        expressions=expressions,
        key=frozenset(node.keys),
    )


def _is_first_row(top: TopN) -> bool:
    return top.start == top.end == 1 and top.call.function == "ROW_NUMBER"


def _one(over: n.Over) -> Expr:
    return Literal(type=over.fields[-1].type, value=1)


def _filtered(versions: Versions, condition: Expr | None) -> Versions:
    if condition is None:
        return versions
    conditions = [] if versions.condition is None else [versions.condition]
    return replace(
        versions, condition=conjunction([*conditions, substituted(condition, versions.expressions)])
    )


def _primary_key(node: n.LogicalNode) -> frozenset[int]:
    """The primary key of a table, or the keys of an aggregation; empty for other nodes."""
    if isinstance(node, n.Aggregate):
        return frozenset(range(len(node.keys)))
    if not isinstance(node, n.Scan) or not node.table.primary_key:
        return frozenset()
    key_columns = [node.columns.index(c) for c in node.table.primary_key if c in node.columns]
    return frozenset(key_columns) if len(key_columns) == len(node.table.primary_key) else frozenset()


def plan_temporal_join(
    node: n.TemporalJoin, left: p.PhysicalNode, versions: Versions, source: p.PhysicalNode
) -> b.TemporalJoin:
    """``source``: the plan of ``versions.source``."""
    assert node.version is not None
    width = len(node.left.fields)
    keys, residual = split_condition(node.condition, width)
    if not keys:
        raise without_keys(node)
    key = _columns(versions, node)
    chosen = [
        next((k for k in keys if isinstance(k.right, InputRef) and k.right.index == i), None)
        for i in sorted(key)
    ]
    if not key or None in chosen:
        raise no_version_key(node, [node.right.fields[i].name for i in sorted(key)])
    version_keys = [k for k in chosen if k is not None]
    equal = zip(keys, _equalities(node, width), strict=True)
    others = [part for k, part in equal if k not in version_keys or not is_identity(k.left.type)]
    order, added = _order(versions)
    alive = [] if versions.condition is None else [versions.condition]
    fields = [Field(f"{_ORDER}{i}", x.type) for i, x in enumerate(added)]
    right = p.Calc(
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
        keys=tuple((k.left, k.right, k.null_safe) for k in version_keys),
        condition=conjunction([*others, *residual]),
        left_time=node.time,
        right_time=node.version,
        alive=versions.condition is not None,
        order=order,
        later=versions.later,
        arrives=_keeps_table_order(versions.source),
    )


def _order(versions: Versions) -> tuple[tuple[SortKey, ...], list[Expr]]:
    """The sort keys as indexes of columns, and the columns with extra ones that only the order needs."""
    expressions: list[Expr] = list(versions.expressions)
    added: list[Expr] = []
    keys = []
    for key in versions.order:
        column = InputRef(type=versions.source.fields[key.index].type, index=key.index)
        if column not in expressions:
            expressions.append(column)
            added.append(column)
        keys.append(replace(key, index=expressions.index(column)))
    return tuple(keys), added


def _keeps_table_order(node: n.LogicalNode) -> bool:
    """Whether its rows come in the order of a table's rows."""
    grouped = isinstance(node, n.Aggregate | n.Join | n.TemporalJoin)
    return not grouped and all(map(_keeps_table_order, node.inputs))


def _columns(versions: Versions, node: n.TemporalJoin) -> frozenset[int]:
    """The fields of the versioned table that are its key; empty if one is missing."""
    positions = {x.index: i for i, x in enumerate(versions.expressions) if isinstance(x, InputRef)}
    key_positions = [positions.get(i) for i in versions.key]
    return frozenset() if None in key_positions else frozenset(i for i in key_positions if i is not None)


def _equalities(node: n.TemporalJoin, width: int) -> list[Expr]:
    """The conjuncts that ``split_condition`` turns into keys, in its order."""
    _, residual = split_condition(node.condition, width)
    return [part for part in conjuncts(node.condition) if part not in residual]
