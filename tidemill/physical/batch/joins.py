"""Joins of a batch plan: Flink's name by what is known of the inputs, and which side is sent to every task.

Small inputs and conditions without keys are nested loops in Flink's plans, inputs that are partitioned by
the keys already a merge join, others a hash join. What runs is Spark's choice, but for two things: it knows
no sizes of tables that are read in Python workers, so a side whose rows are surely few is said to be; and a
hint of the query's is Spark's own of that meaning, if the kind of join allows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from tidemill.functions.comparison import SAME
from tidemill.physical.batch.nodes import BatchNode, CountedSets, Join, Traits, Union
from tidemill.physical.batch.sizes import width
from tidemill.physical.batch.steps import broadcast, exchange
from tidemill.physical.conditions import loose_pair
from tidemill.physical.joins.planning import split_condition
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Call, Expr, InputRef
from tidemill.plan.predicates import conjunction, conjuncts
from tidemill.types.logical import BOOLEAN, Field
from tidemill.types.values import is_identity

_BUILDS_RIGHT = frozenset((n.JoinKind.INNER, n.JoinKind.LEFT, n.JoinKind.SEMI, n.JoinKind.ANTI))
_BUILDS_LEFT = frozenset((n.JoinKind.INNER, n.JoinKind.RIGHT))
_LEFT_ONLY = frozenset((n.JoinKind.SEMI, n.JoinKind.ANTI))
_SENT = {"left": _BUILDS_LEFT, "right": _BUILDS_RIGHT}
_HASHED = {"left": frozenset(n.JoinKind) - _LEFT_ONLY, "right": frozenset(n.JoinKind)}
"""The kinds of join that can send a side to every task, or hash it where both are partitioned by the keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequest:
    """A join to be planned; ``threshold``: the most bytes that are sent to every task, none if negative."""

    kind: n.JoinKind
    condition: Expr
    fields: tuple[Field, ...]
    threshold: int
    strategies: tuple[tuple[str, str], ...] = ()

    def planned(self, left: BatchNode, right: BatchNode) -> Join:
        keys = key_columns(self.condition, left)
        build = _build_side(self.kind, left, right)
        both_sized = left.traits.sized and right.traits.sized
        inputs = (left, right)
        hint, side = self._hint(bool(keys[0]))
        if hint:
            build = side
            title, inputs = _hinted_inputs(hint, left, right, keys, side)
        elif keys[0] and left.traits.partitioned == keys[0] and right.traits.partitioned == keys[1]:
            title, build = "SortMergeJoin", ""
        elif not keys[0] or both_sized:
            title, inputs = "NestedLoopJoin", _nested_inputs(self.kind, left, right, build)
        else:
            title, inputs = "HashJoin", (exchange(left, keys[0]), exchange(right, keys[1]))
        return Join(
            fields=self.fields,
            traits=Traits(
                sized=both_sized,
                reduced=True,
                partitioned=keys[0] if title == "HashJoin" else (),
                most=left.traits.most if self.kind in _LEFT_ONLY else None,
            ),
            left=inputs[0],
            right=inputs[1],
            kind=self.kind,
            condition=self.condition,
            title=title,
            build=build,
            broadcast="" if hint else self._broadcast(left, right),
            hint=hint,
            null_aware=self._is_null_aware(left),
        )

    def _hint(self, keyed: bool) -> tuple[str, str]:
        """The first of the query's that can be followed, and its side; '' twice where none can."""
        for strategy, where in self.strategies:
            side = where.lower()
            if strategy != "NEST_LOOP" and not keyed:
                continue
            if strategy == "SHUFFLE_MERGE":
                return strategy, ""
            if self.kind in (_HASHED if strategy == "SHUFFLE_HASH" else _SENT)[side]:
                return strategy, side
        return "", ""

    def _is_null_aware(self, left: BatchNode) -> bool:
        """Whether it is NOT IN's join, or one that is spelled out."""
        width = len(left.fields)
        return self.kind is n.JoinKind.ANTI and any(
            loose_pair(part, width) is not None for part in conjuncts(self.condition)
        )

    def _broadcast(self, left: BatchNode, right: BatchNode) -> str:
        """The smaller of the sides that may be and are small enough."""
        sides = (("left", left, _BUILDS_LEFT), ("right", right, _BUILDS_RIGHT))
        fitting = [
            (side.traits.most, name)
            for name, side, kinds in sides
            if self.kind in kinds and side.traits.most is not None and side.traits.most <= self.threshold
        ]
        return min(fitting, default=(0, ""))[1]


def key_columns(condition: Expr, left: BatchNode) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The columns of either side that must be equal; keys that are computed do not show."""
    keys, _ = split_condition(condition, len(left.fields))
    placed = [
        (k.left.index, k.right.index)
        for k in keys
        if isinstance(k.left, InputRef) and isinstance(k.right, InputRef)
    ]
    return tuple(a for a, _ in placed), tuple(c for _, c in placed)


def _build_side(kind: n.JoinKind, left: BatchNode, right: BatchNode) -> str:
    if kind in (n.JoinKind.LEFT, n.JoinKind.SEMI, n.JoinKind.ANTI):
        return "right"
    if kind is n.JoinKind.RIGHT or len(left.fields) <= len(right.fields):
        return "left"
    return "right"


def _nested_inputs(
    kind: n.JoinKind, left: BatchNode, right: BatchNode, build: str
) -> tuple[BatchNode, BatchNode]:
    if kind is n.JoinKind.FULL:
        return (exchange(left, ()), exchange(right, ()))
    return (broadcast(left), right) if build == "left" else (left, broadcast(right))


def _hinted_inputs(
    hint: str, left: BatchNode, right: BatchNode, keys: tuple[tuple[int, ...], ...], side: str
) -> tuple[str, tuple[BatchNode, BatchNode]]:
    """Flink's name for a join by ``hint``, and what it shows below."""
    if hint in ("SHUFFLE_HASH", "SHUFFLE_MERGE"):
        title = "HashJoin" if hint == "SHUFFLE_HASH" else "SortMergeJoin"
        return title, (exchange(left, keys[0]), exchange(right, keys[1]))
    sent = (broadcast(left), right) if side == "left" else (left, broadcast(right))
    return "HashJoin" if hint == "BROADCAST" else "NestedLoopJoin", sent


def set_operation(node: n.SetOp, branches: list[BatchNode], threshold: int) -> BatchNode:
    """The branches combined; of INTERSECT and EXCEPT (and UNION) the duplicates are still there."""
    if node.kind is n.SetKind.UNION:
        return reduce(lambda left, right: _union(node, left, right), branches)
    if node.all:
        return reduce(lambda left, right: _counted(node, left, right), branches)
    return reduce(lambda left, right: _matching(node, left, right, threshold), branches)


def _union(node: n.SetOp, left: BatchNode, right: BatchNode) -> Union:
    most = [_of_fields(x, node.fields) for x in (left, right)]
    traits = Traits(
        sized=left.traits.sized and right.traits.sized,
        reduced=left.traits.reduced,
        most=None if None in most else sum(x for x in most if x is not None),
    )
    return Union(fields=node.fields, traits=traits, branches=(left, right))


def _of_fields(node: BatchNode, fields: tuple[Field, ...]) -> int | None:
    return None if node.traits.most is None else node.traits.most * width(fields) // width(node.fields)


def _counted(node: n.SetOp, left: BatchNode, right: BatchNode) -> CountedSets:
    traits = Traits(reduced=True, most=left.traits.most)
    return CountedSets(fields=node.fields, traits=traits, kind=node.kind, left=left, right=right)


def _matching(node: n.SetOp, left: BatchNode, right: BatchNode, threshold: int) -> Join:
    kind = n.JoinKind.SEMI if node.kind is n.SetKind.INTERSECT else n.JoinKind.ANTI
    width_left = len(left.fields)
    equal = [
        Call(
            type=BOOLEAN.with_nullable(False),
            function="IS NOT DISTINCT FROM" if is_identity(a.type) else SAME,
            args=(InputRef(type=a.type, index=i), InputRef(type=b.type, index=width_left + i)),
        )
        for i, (a, b) in enumerate(zip(left.fields, right.fields, strict=True))
    ]
    request = JoinRequest(kind=kind, condition=conjunction(equal), fields=node.fields, threshold=threshold)
    return request.planned(left, right)
