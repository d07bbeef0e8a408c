"""The interface of a family of operators that can be merged."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from tidemill.changelog.rowkind import RowKind
from tidemill.physical import nodes as p
from tidemill.physical.digests import Digests
from tidemill.plan.expressions import AggregateCall, InputRef
from tidemill.types.logical import Field

Part = Callable[[p.PhysicalNode], p.PhysicalNode]
"""Makes the replacement of a node, with its fields and traits, over the merged operator."""


@dataclass(frozen=True, slots=True)
class Family:
    """``accepts``: whether a node belongs to the family. ``signature``: equal for nodes that might be merged;
    cheap. ``merge``: merges nodes with different digests into an operator that emits ``kinds``, and gives
    each node's part; None if they differ in more than columns."""

    accepts: Callable[[p.PhysicalNode], bool]
    signature: Callable[[p.PhysicalNode, Digests], Hashable]
    merge: Callable[[Sequence[p.PhysicalNode], frozenset[RowKind], Digests], list[Part] | None]


def columns_of(whole: p.PhysicalNode, columns: Sequence[int]) -> Part:
    """A reader's ``columns`` of an insert-only operator."""

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
    """The distinct ``calls`` of several aggregations, with their fields. ``own``: the indexes of each
    aggregation's calls."""

    calls: tuple[AggregateCall, ...]
    fields: tuple[Field, ...]
    own: tuple[tuple[int, ...], ...]


def all_calls(
    members: Sequence[tuple[Sequence[AggregateCall], Sequence[Field], Sequence[int]]],
    used_names: Sequence[str],
) -> Calls:
    """``members``: per aggregation its calls, their fields, and the new index of each input column."""
    fields_by_call: dict[AggregateCall, Field] = {}
    own = []
    for calls, fields, positions in members:
        moved = [_moved(call, positions) for call in calls]
        for call, field in zip(moved, fields, strict=True):
            if call not in fields_by_call:
                name = free_name(field.name, [*used_names, *(f.name for f in fields_by_call.values())])
                fields_by_call[call] = Field(name, field.type)
        order = list(fields_by_call)
        own.append(tuple(map(order.index, moved)))
    named = tuple(replace(call, name=field.name) for call, field in fields_by_call.items())
    return Calls(named, tuple(fields_by_call.values()), tuple(own))


def _moved(call: AggregateCall, positions: Sequence[int]) -> AggregateCall:
    condition = None if call.filter is None else positions[call.filter]
    return replace(call, args=tuple(positions[a] for a in call.args), filter=condition, name="")
