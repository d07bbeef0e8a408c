"""Joins of a batch plan: the broadcast side, and the query's hints.

Spark chooses how a join runs, with two exceptions. Spark does not know the sizes of tables that Python
workers read, so the plan names a side with certainly few rows as the broadcast side. And the plan passes the
query's hints to Spark if the kind of join allows them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from tidemill.functions.comparison import SAME
from tidemill.physical.batch.nodes import CountedSets, Join
from tidemill.physical.batch.sizes import with_fields
from tidemill.physical.conditions import loose_pair
from tidemill.physical.joins.planning import split_condition
from tidemill.physical.nodes import PhysicalNode, Union
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
    """A join to plan. ``threshold``: the most bytes of a broadcast side; if negative, nothing is
    broadcast."""

    kind: n.JoinKind
    condition: Expr
    fields: tuple[Field, ...]
    threshold: int
    strategies: tuple[tuple[str, str], ...] = ()

    def planned(self, left: PhysicalNode, right: PhysicalNode) -> Join:
        hint, side = self._hint(bool(key_columns(self.condition, left)[0]))
        return Join(
            fields=self.fields,
            most=left.most if self.kind in _LEFT_ONLY else None,
            left=left,
            right=right,
            kind=self.kind,
            condition=self.condition,
            build=side,
            broadcast="" if hint else self._broadcast(left, right),
            hint=hint,
            null_aware=self._is_null_aware(left),
        )

    def _hint(self, keyed: bool) -> tuple[str, str]:
        """The query's first hint that can be followed, and its side; ('', '') if none can."""
        for strategy, where in self.strategies:
            side = where.lower()
            if strategy != "NEST_LOOP" and not keyed:
                continue
            if strategy == "SHUFFLE_MERGE":
                return strategy, ""
            if self.kind in (_HASHED if strategy == "SHUFFLE_HASH" else _SENT)[side]:
                return strategy, side
        return "", ""

    def _is_null_aware(self, left: PhysicalNode) -> bool:
        """Whether it is the join of NOT IN, or an anti join with the same condition written out."""
        width = len(left.fields)
        return self.kind is n.JoinKind.ANTI and any(
            loose_pair(part, width) is not None for part in conjuncts(self.condition)
        )

    def _broadcast(self, left: PhysicalNode, right: PhysicalNode) -> str:
        """The smaller of the sides that may be broadcast and are small enough; '' if there is none."""
        sides = (("left", left, _BUILDS_LEFT), ("right", right, _BUILDS_RIGHT))
        fitting = [
            (side.most, name)
            for name, side, kinds in sides
            if self.kind in kinds and side.most is not None and side.most <= self.threshold
        ]
        return min(fitting, default=(0, ""))[1]


def key_columns(condition: Expr, left: PhysicalNode) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The pairs of columns that must be equal; computed keys are left out."""
    keys, _ = split_condition(condition, len(left.fields))
    placed = [
        (k.left.index, k.right.index)
        for k in keys
        if isinstance(k.left, InputRef) and isinstance(k.right, InputRef)
    ]
    return tuple(a for a, _ in placed), tuple(c for _, c in placed)


def set_operation(node: n.SetOp, branches: list[PhysicalNode], threshold: int) -> PhysicalNode:
    """The branches combined. Without ALL the duplicates are still in the result."""
    if node.kind is n.SetKind.UNION:
        return reduce(lambda left, right: _union(node, left, right), branches)
    if node.all:
        return reduce(lambda left, right: _counted(node, left, right), branches)
    return reduce(lambda left, right: _set_operation_join(node, left, right, threshold), branches)


def _union(node: n.SetOp, left: PhysicalNode, right: PhysicalNode) -> Union:
    sizes = [with_fields(x, node.fields) for x in (left, right)]
    most = None if None in sizes else sum(x for x in sizes if x is not None)
    return Union(fields=node.fields, most=most, branches=(left, right))


def _counted(node: n.SetOp, left: PhysicalNode, right: PhysicalNode) -> CountedSets:
    return CountedSets(fields=node.fields, most=left.most, kind=node.kind, left=left, right=right)


def _set_operation_join(node: n.SetOp, left: PhysicalNode, right: PhysicalNode, threshold: int) -> Join:
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
