"""Merges aggregations by window without early and late results: one has all calls and properties."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from tidemill.changelog.rowkind import RowKind
from tidemill.physical import nodes as p
from tidemill.physical.digests import Digests
from tidemill.physical.finish import exchange, finish
from tidemill.physical.sharing.family import Family, Part, all_calls, columns_of, free_name
from tidemill.physical.sharing.merge_scans import merge_scans, origin
from tidemill.types.logical import Field


def _accepts(node: p.PhysicalNode) -> bool:
    return isinstance(node, p.WindowAggregate) and node.emit is None and isinstance(node.input, p.Exchange)


def _signature(node: p.PhysicalNode, digests: Digests) -> Hashable:
    assert isinstance(node, p.WindowAggregate)
    return origin(node.input.inputs[0], digests), len(node.keys), node.window, node.attached


def _merge(
    members: Sequence[p.PhysicalNode], kinds: frozenset[RowKind], digests: Digests
) -> list[Part] | None:
    aggregates = [member for member in members if isinstance(member, p.WindowAggregate)]
    below = merge_scans([member.input.inputs[0] for member in aggregates], digests)
    if below is None:
        return None
    pairs = list(zip(aggregates, below.positions, strict=True))
    senses = {(tuple(positions[k] for k in m.keys), positions[m.time]) for m, positions in pairs}
    if len(senses) > 1:
        return None
    ((keys, time),) = senses
    first, width = aggregates[0], len(keys)
    properties = tuple(sorted({x for m in aggregates for x in m.properties}))
    types = {x: f for m in aggregates for x, f in zip(m.properties, _tail(m), strict=True)}
    used_names = [f.name for f in first.fields[:width]]
    renumbered = [(m.calls, m.fields[width : width + len(m.calls)], positions) for m, positions in pairs]
    calls = all_calls(renumbered, used_names)
    fields = [*first.fields[:width], *calls.fields]
    for name in properties:
        fields.append(Field(free_name(types[name].name, (f.name for f in fields)), types[name].type))
    whole = finish(
        replace(
            first,
            fields=tuple(fields),
            input=exchange(below.node, keys),
            keys=keys,
            calls=calls.calls,
            time=time,
            properties=properties,
        )
    )
    after = width + len(calls.calls)
    return [
        columns_of(
            whole,
            [*range(width), *(width + x for x in own), *(after + properties.index(x) for x in m.properties)],
        )
        for m, own in zip(aggregates, calls.own, strict=True)
    ]


def _tail(node: p.WindowAggregate) -> tuple[Field, ...]:
    """The fields of the window's properties."""
    return node.fields[len(node.keys) + len(node.calls) :]


WINDOWS = Family(_accepts, _signature, _merge)
