"""Temporal joins: FOR SYSTEM_TIME AS OF.

The right side is a versioned table: a table with a primary key and a watermark, or a view that keeps the last
row per key. Flink's plan has a Rank for the view, and its changes are the versions. But Tidemill's Rank emits
the net change of an epoch, and would miss a version that came and went within the epoch. So every input row
of the view is a version, and the join drops the rows that the Rank would drop. For the same reason filters
over versions become a column: a version that does not pass ends the version before it. Operators of other
views (another order, changing rows, aggregations) emit every change by itself, with the watermark before the
row that caused it (``versions``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidemill.errors import ValidationError
from tidemill.physical import nodes as p
from tidemill.physical.conditions import conjunction, substituted
from tidemill.physical.finish import exchange, finish, references, select
from tidemill.physical.joins.planning import join_fields, keyed_sides, output_columns, split_condition
from tidemill.physical.running import each_change
from tidemill.physical.traits.changelog_mode import insert_only
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Call, Expr, InputRef, UserCall
from tidemill.types.logical import BOOLEAN, Field
from tidemill.types.values import is_identity

_ALIVE = "$alive"


def plan_temporal_join(
    node: n.TemporalJoin, left: p.PhysicalNode, right: p.PhysicalNode, state_ttl: int
) -> p.PhysicalNode:
    """TemporalJoin, by event time."""
    assert node.version is not None
    keys, residual = split_condition(node.condition, len(left.fields))
    if not keys:
        raise without_keys(node)
    sides = keyed_sides(keys, residual, left, right)
    join = finish(
        p.TemporalJoin(
            fields=join_fields(node, sides),
            left=exchange(sides.left, sides.left_keys),
            right=exchange(sides.right, sides.right_keys),
            kind=node.kind,
            left_keys=sides.left_keys,
            right_keys=sides.right_keys,
            null_safe=tuple(k.null_safe for k in keys),
            by_identity=tuple(k.by_identity for k in keys),
            residual=sides.residual,
            left_time=node.time,
            right_time=node.version,
            version_key=_version_key(node, right, sides.right_keys),
            right_ttl=state_ttl,
        )
    )
    return select(join, output_columns(node, sides), node.fields)


def _version_key(node: n.TemporalJoin, right: p.PhysicalNode, joined: tuple[int, ...]) -> tuple[int, ...]:
    """The unique key of the right side that the join's keys contain."""
    unique_keys = sorted(right.traits.unique_keys, key=lambda k: (len(k), sorted(k)))
    fitting = [k for k in unique_keys if k and k <= frozenset(joined)]
    if fitting:
        return tuple(sorted(fitting[0]))
    raise no_version_key(node, [right.fields[i].name for i in sorted(unique_keys[0])] if unique_keys else [])


def without_keys(node: n.TemporalJoin) -> ValidationError:
    return ValidationError(
        "Currently the join key in Temporal Table Join can not be empty.",
        position=node.position,
        hint="Join ON equal keys: o.k = t.k",
    )


def no_version_key(node: n.TemporalJoin, key: list[str]) -> ValidationError:
    """The error if the versioned table has no key, or if the join does not contain ``key``."""
    if not key:
        return ValidationError(
            "Temporal Table Join requires primary key in versioned table, but no primary key can be found.",
            position=node.position,
            hint="Declare PRIMARY KEY (...) NOT ENFORCED, or keep the last row of each key in a view: "
            "ROW_NUMBER() OVER (PARTITION BY key ORDER BY time DESC) = 1.",
        )
    return ValidationError(
        f"Temporal table's primary key [{','.join(key)}] must be included in the equivalence condition of "
        "temporal join.",
        position=node.position,
    )


def over_all_versions(node: p.TemporalJoin) -> p.TemporalJoin:
    """``node`` joined by its version key only, over all versions."""
    keys, residual = _by_version_key(node)
    assert isinstance(node.right, p.Exchange)
    source = _versions(node.right.input)
    right, alive = _calc(source, node.right.input)
    return finish(
        replace(
            node,
            left=exchange(node.left.inputs[0], tuple(node.left_keys[i] for i in keys)),
            right=exchange(right, tuple(node.right_keys[i] for i in keys)),
            left_keys=tuple(node.left_keys[i] for i in keys),
            right_keys=tuple(node.right_keys[i] for i in keys),
            null_safe=tuple(node.null_safe[i] for i in keys),
            by_identity=(True,) * len(keys),
            residual=residual,
            alive=alive,
            latest=source.latest,
            overwrites=False,
        )
    )


def _by_version_key(node: p.TemporalJoin) -> tuple[list[int], Expr | None]:
    """One equality per column of the version key, and the other equalities as a condition on the found
    version. Versions are found by identity, so 0.0 and -0.0 have separate versions. A second equality on a
    key column is also a condition."""
    chosen = [node.right_keys.index(column) for column in node.version_key]
    fields, width = (*node.left.fields, *node.right.fields), len(node.left.fields)
    others: list[Expr] = []
    for i, (a, b) in enumerate(zip(node.left_keys, node.right_keys, strict=True)):
        if i not in chosen or not is_identity(fields[a].type):
            pair = tuple(InputRef(type=fields[c].type, index=c) for c in (a, width + b))
            function = "IS NOT DISTINCT FROM" if node.null_safe[i] else "="
            others.append(Call(type=BOOLEAN, function=function, args=pair))
    return chosen, conjunction([*others, *([] if node.residual is None else [node.residual])])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Versions:
    """``projections`` and ``condition`` are over the fields of ``source``."""

    source: p.PhysicalNode
    projections: tuple[Expr, ...]
    condition: Expr | None = None
    latest: bool = False


def _versions(node: p.PhysicalNode) -> _Versions:
    if isinstance(node, p.Calc) and not any(isinstance(x, UserCall) for x in node.projections):
        below = _versions(node.input)
        own = [] if node.condition is None else [substituted(node.condition, below.projections)]
        conditions = [] if below.condition is None else [below.condition]
        return replace(
            below,
            projections=tuple(substituted(x, below.projections) for x in node.projections),
            condition=conjunction([*conditions, *own]),
        )
    if isinstance(node, p.Rank) and _keeps_last(node):
        source = node.input.inputs[0]
        return _Versions(source=source, projections=references(source.fields), latest=True)
    return _Versions(source=each_change(node), projections=references(node.fields))


def _keeps_last(node: p.Rank) -> bool:
    """Whether only rows that become the last row are versions."""
    return node.is_deduplicate and node.time == "ROWTIME" and not node.keeps_first and insert_only(node.input)


def _calc(versions: _Versions, node: p.PhysicalNode) -> tuple[p.PhysicalNode, int | None]:
    """The versions with the fields of ``node``, and the field that tells whether a version is visible."""
    if versions.condition is None:
        if versions.projections == references(versions.source.fields) and not versions.latest:
            return versions.source, None
        return _projected(versions.source, versions.projections, node.fields), None
    fields = (*node.fields, Field(_ALIVE, BOOLEAN))
    projections = (*versions.projections, versions.condition)
    return _projected(versions.source, projections, fields), len(node.fields)


def _projected(
    source: p.PhysicalNode, projections: tuple[Expr, ...], fields: tuple[Field, ...]
) -> p.PhysicalNode:
    return finish(p.Calc(fields=fields, input=source, projections=projections))
