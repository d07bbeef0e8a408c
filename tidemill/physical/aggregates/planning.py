"""Group aggregates, and projections for aggregates whose input is already unique."""

from __future__ import annotations

from tidemill.config.option import Configuration
from tidemill.operators.aggregates.registry import declared
from tidemill.physical import nodes as p
from tidemill.physical.aggregates.known_keys import known_keys
from tidemill.physical.aggregates.parts import split_buckets
from tidemill.physical.finish import exchange, finish
from tidemill.plan import nodes as n
from tidemill.plan.expressions import AggregateCall, Cast, Expr, InputRef
from tidemill.types.logical import Field


def plan_aggregate(
    node: n.Aggregate, child: p.PhysicalNode, config: Configuration, state_ttl: int
) -> p.PhysicalNode:
    if _is_needless(node, child):
        return _without_aggregation(node, child)
    return finish(
        p.GroupAggregate(
            fields=node.fields,
            input=exchange(child, node.keys),
            keys=node.keys,
            calls=node.calls,
            ttl_hints=node.hints,
            state_ttl=state_ttl,
            split=split_buckets(node.calls, node.keys, config),
            reuse=known_keys(node, config, state_ttl),
        )
    )


def _is_needless(node: n.Aggregate, child: p.PhysicalNode) -> bool:
    unique = any(k <= frozenset(node.keys) for k in child.traits.unique_keys)
    return bool(node.keys) and unique and all(_gives_its_argument(c) for c in node.calls)


def _gives_its_argument(call: AggregateCall) -> bool:
    function = declared(call.function)
    return function is not None and function.gives_only_argument and call.filter is None


def _without_aggregation(node: n.Aggregate, child: p.PhysicalNode) -> p.PhysicalNode:
    columns = [*node.keys, *(c.args[0] for c in node.calls)]
    pairs = zip(columns, node.fields, strict=True)
    projections = tuple(_cast(child.fields[i], i, f) for i, f in pairs)
    return finish(p.Calc(fields=node.fields, input=child, projections=projections))


def _cast(source: Field, index: int, target: Field) -> Expr:
    ref = InputRef(type=source.type, index=index)
    same = source.type.with_nullable(True) == target.type.with_nullable(True)
    return ref if same else Cast(type=target.type, operand=ref, implicit=True)


def distinct(node: p.PhysicalNode, fields: tuple[Field, ...], state_ttl: int) -> p.PhysicalNode:
    """``node`` without duplicate rows; ``node`` itself if it has a unique key."""
    if node.traits.unique_keys:
        return node
    keys = tuple(range(len(fields)))
    return finish(
        p.GroupAggregate(
            fields=fields,
            input=exchange(node, keys),
            keys=keys,
            calls=(),
            state_ttl=state_ttl,
        )
    )
