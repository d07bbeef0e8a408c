"""What each family of operators answers when its likes are to be one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from tidemill.changelog.rowkind import RowKind
from tidemill.physical import nodes as p
from tidemill.physical.digests import Digests
from tidemill.plan.expressions import AggregateCall, InputRef
from tidemill.types.logical import Field

Part = Callable[[p.PhysicalNode], p.PhysicalNode]
"""Gives what stands in the place of a node: its fields and traits, over the one operator."""


@dataclass(frozen=True, slots=True)
class Family:
    """``accepts``: whether a node is of the family. ``sense``: equal for nodes that might be one; cheap.
    ``together``: per node, all of different digests, its part of the one operator, None where they differ in
    more than columns; that operator gives ``kinds``."""

    accepts: Callable[[p.PhysicalNode], bool]
    sense: Callable[[p.PhysicalNode, Digests], Hashable]
    together: Callable[[Sequence[p.PhysicalNode], frozenset[RowKind], Digests], list[Part] | None]


def columns_of(whole: p.PhysicalNode, columns: Sequence[int]) -> Part:
    """Of rows that are never taken back a reader takes its ``columns``."""

    def part(node: p.PhysicalNode) -> p.PhysicalNode:
        chosen = tuple(InputRef(type=whole.fields[c].type, index=c) for c in columns)
        return p.Calc(fields=node.fields, traits=node.traits, input=whole, projections=chosen)

    return part


def free_name(name: str, taken: Iterable[str]) -> str:
    """``name``, or one like it that is not ``taken``."""
    others, number, found = set(taken), 0, name
    while found in others:
        found, number = f"{name}{number}", number + 1
    return found


@dataclass(frozen=True, slots=True)
class Calls:
    """The ``calls`` of several aggregations, each once, with their fields; ``own`` are the places of each
    aggregation's among them."""

    calls: tuple[AggregateCall, ...]
    fields: tuple[Field, ...]
    own: tuple[tuple[int, ...], ...]


def all_calls(
    given: Sequence[tuple[Sequence[AggregateCall], Sequence[Field], Sequence[int]]], taken: Sequence[str]
) -> Calls:
    """``given``: per aggregation its calls, their fields, and where the columns of its input stand now."""
    found: dict[AggregateCall, Field] = {}
    own = []
    for calls, fields, places in given:
        moved = [_moved(call, places) for call in calls]
        for call, field in zip(moved, fields, strict=True):
            if call not in found:
                name = free_name(field.name, [*taken, *(f.name for f in found.values())])
                found[call] = Field(name, field.type)
        order = list(found)
        own.append(tuple(map(order.index, moved)))
    named = tuple(replace(call, name=field.name) for call, field in found.items())
    return Calls(named, tuple(found.values()), tuple(own))


def _moved(call: AggregateCall, places: Sequence[int]) -> AggregateCall:
    condition = None if call.filter is None else places[call.filter]
    return replace(call, args=tuple(places[a] for a in call.args), filter=condition, name="")
