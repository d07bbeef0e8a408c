"""Completes physical nodes: computes their traits from their inputs' traits."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from tidemill.physical import nodes as p
from tidemill.physical.traits.changelog_mode import modifications
from tidemill.physical.traits.keys import unique_keys, upsert_keys
from tidemill.plan.expressions import InputRef
from tidemill.types.logical import Field

Node = TypeVar("Node", bound=p.PhysicalNode)


def finish(node: Node) -> Node:
    """``node`` with traits computed from its inputs' traits. Updates have no -U yet."""
    return with_keys(replace(node, traits=replace(node.traits, kinds=modifications(node))))


def with_keys(node: Node) -> Node:
    unique, upsert = unique_keys(node), upsert_keys(node)
    return replace(node, traits=replace(node.traits, unique_keys=unique, upsert_keys=upsert))


def exchange(node: p.PhysicalNode, keys: tuple[int, ...]) -> p.Exchange:
    return finish(p.Exchange(fields=node.fields, input=node, keys=keys))


def references(fields: tuple[Field, ...]) -> tuple[InputRef, ...]:
    return tuple(InputRef(type=f.type, index=i) for i, f in enumerate(fields))


def select(node: p.PhysicalNode, columns: tuple[int, ...], fields: tuple[Field, ...]) -> p.PhysicalNode:
    """A Calc that gives the input's ``columns`` as ``fields``; ``node`` itself if nothing changes."""
    if columns == tuple(range(len(node.fields))) and fields == node.fields:
        return node
    refs = references(node.fields)
    chosen = tuple(refs[c] for c in columns)
    return finish(p.Calc(fields=fields, input=node, projections=chosen))
