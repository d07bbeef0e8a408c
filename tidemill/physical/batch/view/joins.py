"""Flink's names of joins, and the Steps below them.

Flink plans a nested loop for small inputs and for conditions without keys, a merge join if the inputs are
already partitioned by the keys, and otherwise a hash join.
"""

from __future__ import annotations

import dataclasses

from tidemill.physical.batch import nodes as b
from tidemill.physical.batch.joins import key_columns
from tidemill.physical.batch.view.nodes import Join, Traits, ViewNode
from tidemill.physical.batch.view.steps import broadcast, exchange
from tidemill.plan import nodes as n

Inputs = tuple[ViewNode, ViewNode]


def join_view(node: b.Join, left: ViewNode, right: ViewNode) -> ViewNode:
    keys = key_columns(node.condition, node.left)
    sized = left.traits.sized and right.traits.sized
    title, build, inputs = _shape(node, keys, (left, right))
    parts = {f.name: getattr(node, f.name) for f in dataclasses.fields(b.Join)}
    parts |= {"left": inputs[0].node, "right": inputs[1].node, "build": build}
    traits = Traits(sized=sized, reduced=True, partitioned=keys[0] if title == "HashJoin" else ())
    return ViewNode(Join(**parts, title=title), traits)


def _shape(node: b.Join, keys: tuple[tuple[int, ...], ...], sides: Inputs) -> tuple[str, str, Inputs]:
    """Flink's name, the build side, and the Steps below."""
    if node.hint:
        return _hinted(node.hint, node.build, keys, sides)
    build = _build_side(node)
    if keys[0] and tuple(side.traits.partitioned for side in sides) == keys:
        return "SortMergeJoin", "", sides
    if keys[0] and not all(side.traits.sized for side in sides):
        return "HashJoin", build, _exchanged(sides, keys)
    if node.kind is n.JoinKind.FULL:
        return "NestedLoopJoin", build, _exchanged(sides, ((), ()))
    return "NestedLoopJoin", build, _sent(sides, build)


def _hinted(
    hint: str, build: str, keys: tuple[tuple[int, ...], ...], sides: Inputs
) -> tuple[str, str, Inputs]:
    if hint in ("SHUFFLE_HASH", "SHUFFLE_MERGE"):
        return "HashJoin" if hint == "SHUFFLE_HASH" else "SortMergeJoin", build, _exchanged(sides, keys)
    return "HashJoin" if hint == "BROADCAST" else "NestedLoopJoin", build, _sent(sides, build)


def _exchanged(sides: Inputs, keys: tuple[tuple[int, ...], ...]) -> Inputs:
    return exchange(sides[0], keys[0]), exchange(sides[1], keys[1])


def _sent(sides: Inputs, build: str) -> Inputs:
    left, right = sides
    return (broadcast(left), right) if build == "left" else (left, broadcast(right))


def _build_side(node: b.Join) -> str:
    if node.kind in (n.JoinKind.LEFT, n.JoinKind.SEMI, n.JoinKind.ANTI):
        return "right"
    if node.kind is n.JoinKind.RIGHT or len(node.left.fields) <= len(node.right.fields):
        return "left"
    return "right"
