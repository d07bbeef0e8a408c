"""Merges aggregations by key: one aggregation has all calls, and marks in each update the changed calls.

A reader only takes updates of its own calls (``AggregatePart``). These are the updates of a separate
aggregation, so an answer does not depend on other readers of a view. SELECT DISTINCT is not merged, because
it never retracts a row; nor are aggregations that Flink splits.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from tidemill.changelog.rowkind import RowKind
from tidemill.physical import nodes as p
from tidemill.physical.aggregates.parts import mergeable
from tidemill.physical.digests import Digests
from tidemill.physical.finish import exchange, with_keys
from tidemill.physical.sharing.family import Calls, Family, Part, all_calls
from tidemill.physical.sharing.merge_scans import merge_scans, origin
from tidemill.types.logical import BIGINT, Field

MOST_CALLS = 62
"""Each is a bit of the mark."""
MARK = "$changed"


def _accepts(node: p.PhysicalNode) -> bool:
    if not isinstance(node, p.GroupAggregate):
        return False
    apart = node.split or node.part or node.marked or node.versions
    return not apart and bool(node.calls)


def _signature(node: p.PhysicalNode, digests: Digests) -> Hashable:
    assert isinstance(node, p.GroupAggregate)
    return origin(node.source, digests), len(node.keys), node.state_ttl, mergeable(node.calls)


def _merge(
    members: Sequence[p.PhysicalNode], kinds: frozenset[RowKind], digests: Digests
) -> list[Part] | None:
    aggregates = [member for member in members if isinstance(member, p.GroupAggregate)]
    below = merge_scans([member.source for member in aggregates], digests)
    if below is None:
        return None
    keys = {
        tuple(positions[k] for k in m.keys) for m, positions in zip(aggregates, below.positions, strict=True)
    }
    if len(keys) > 1:
        return None
    width = len(aggregates[0].keys)
    key_fields = aggregates[0].fields[:width]
    renumbered = [(m.calls, m.fields[width:], x) for m, x in zip(aggregates, below.positions, strict=True)]
    calls = all_calls(renumbered, [*(f.name for f in key_fields), MARK])
    if len(calls.calls) > MOST_CALLS:
        return None
    fields = (*key_fields, *calls.fields, Field(MARK, BIGINT.with_nullable(False)))
    whole = _whole(aggregates[0], below.node, next(iter(keys)), calls, fields, kinds)
    return [_part(whole, width, own) for own in calls.own]


def _whole(
    first: p.GroupAggregate,
    below: p.PhysicalNode,
    keys: tuple[int, ...],
    calls: Calls,
    fields: tuple[Field, ...],
    kinds: frozenset[RowKind],
) -> p.PhysicalNode:
    return with_keys(
        replace(
            first,
            fields=fields,
            traits=replace(first.traits, kinds=kinds),
            input=exchange(below, keys),
            keys=keys,
            calls=calls.calls,
            marked=True,
        )
    )


def _part(whole: p.PhysicalNode, width: int, own: tuple[int, ...]) -> Part:
    def part(node: p.PhysicalNode) -> p.PhysicalNode:
        return p.AggregatePart(
            fields=node.fields,
            traits=node.traits,
            input=whole,
            columns=(*range(width), *(width + index for index in own)),
            calls=sum(1 << index for index in set(own)),
        )

    return part


AGGREGATES = Family(_accepts, _signature, _merge)
