"""Rebuilding physical trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import singledispatch

from tidemill.changelog.rowkind import RowKind
from tidemill.physical import nodes as p
from tidemill.physical.questions import unanswered
from tidemill.plan.expressions import InputRef
from tidemill.plan.once import once_per_node


@singledispatch
def rebuilt(node: p.PhysicalNode, inputs: tuple[p.PhysicalNode, ...]) -> p.PhysicalNode:
    """``node`` over other inputs. Only a node without inputs has a default."""
    if node.inputs:
        raise unanswered("how it stands over other inputs", node)
    return node


@rebuilt.register
def _(node: p.Unary, inputs: tuple[p.PhysicalNode, ...]) -> p.PhysicalNode:
    return replace(node, input=inputs[0])


@rebuilt.register
def _(node: p.Union, inputs: tuple[p.PhysicalNode, ...]) -> p.PhysicalNode:
    return replace(node, branches=inputs)


@rebuilt.register
def _(node: p.Join, inputs: tuple[p.PhysicalNode, ...]) -> p.PhysicalNode:
    return replace(node, left=inputs[0], right=inputs[1])


def with_inputs(node: p.PhysicalNode, inputs: tuple[p.PhysicalNode, ...]) -> p.PhysicalNode:
    """``node`` over other inputs; ``node`` itself if nothing changed."""
    if all(a is b for a, b in zip(node.inputs, inputs, strict=True)):
        return node
    return rebuilt(node, inputs)


def with_kinds(node: p.PhysicalNode, kinds: frozenset[RowKind]) -> p.PhysicalNode:
    if node.traits.kinds == kinds:
        return node
    return replace(node, traits=replace(node.traits, kinds=kinds))


@once_per_node
def map_up(node: p.PhysicalNode, rewrite: Callable[[p.PhysicalNode], p.PhysicalNode]) -> p.PhysicalNode:
    """Bottom-up: inputs first, then ``rewrite`` of the rebuilt node."""
    return rewrite(with_inputs(node, tuple(map_up(i, rewrite) for i in node.inputs)))


def walk(node: p.PhysicalNode) -> Iterator[p.PhysicalNode]:
    """The node and all below it, each once, parents first."""
    waiting: list[p.PhysicalNode] = [node]
    visited: set[int] = set()
    while waiting:
        current = waiting.pop()
        if id(current) not in visited:
            visited.add(id(current))
            yield current
            waiting.extend(reversed(current.inputs))


def visible(node: p.PhysicalNode) -> p.PhysicalNode:
    """``node`` as EXPLAIN shows it: without a Calc that only renames."""
    while isinstance(node, p.Calc) and _only_renames(node):
        node = node.input
    return node


def _only_renames(node: p.Calc) -> bool:
    refs = [x.index for x in node.projections if isinstance(x, InputRef)]
    same = refs == list(range(len(node.input.fields))) == list(range(len(node.projections)))
    return node.condition is None and same
