"""Aggregations by window that show each window once: one with the calls and the properties of all."""

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


def _sense(node: p.PhysicalNode, digests: Digests) -> Hashable:
    assert isinstance(node, p.WindowAggregate)
    return origin(node.input.inputs[0], digests), len(node.keys), node.window, node.attached


def _together(
    members: Sequence[p.PhysicalNode], kinds: frozenset[RowKind], digests: Digests
) -> list[Part] | None:
    found = [member for member in members if isinstance(member, p.WindowAggregate)]
    below = merge_scans([member.input.inputs[0] for member in found], digests)
    if below is None:
        return None
    pairs = list(zip(found, below.places, strict=True))
    senses = {(tuple(places[k] for k in m.keys), places[m.time]) for m, places in pairs}
    if len(senses) > 1:
        return None
    ((keys, time),) = senses
    first, width = found[0], len(keys)
    properties = tuple(sorted({x for m in found for x in m.properties}))
    types = {x: f for m in found for x, f in zip(m.properties, _tail(m), strict=True)}
    taken = [f.name for f in first.fields[:width]]
    given = [(m.calls, m.fields[width : width + len(m.calls)], places) for m, places in pairs]
    calls = all_calls(given, taken)
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
        for m, own in zip(found, calls.own, strict=True)
    ]


def _tail(node: p.WindowAggregate) -> tuple[Field, ...]:
    """The fields of the window's properties."""
    return node.fields[len(node.keys) + len(node.calls) :]


WINDOWS = Family(_accepts, _sense, _together)
