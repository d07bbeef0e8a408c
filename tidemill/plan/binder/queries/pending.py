"""Expressions that stand in for a computed column until the select is lowered.

An aggregate, OVER or GROUPING call is bound like any other expression, then ``aggregates`` and
``over_windows`` put it into its node and a column reference in its place. None survives binding.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tidemill.errors import Position
from tidemill.plan.expressions import Expr, FrameBound
from tidemill.plan.rewrite import with_children
from tidemill.user_functions.aggregates import BoundAggregate


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateExpr(Expr):
    function: str
    args: tuple[Expr, ...]
    distinct: bool = False
    filter: Expr | None = None
    options: tuple[tuple[str, str], ...] = ()
    user: BoundAggregate | None = None

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args if self.filter is None else (*self.args, self.filter)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupingExpr(Expr):
    """GROUPING(a) or GROUPING_ID(a, b): a bit per key, set if the grouping set leaves the key out.

    ``repeat``: GROUP_ID(), the number of equal sets before this set.
    """

    args: tuple[Expr, ...]
    repeat: bool = False
    position: Position | None = field(default=None, compare=False)

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args


@dataclass(frozen=True, slots=True, kw_only=True)
class OverOrder:
    """One ORDER BY item of a window; the expression is ``OverExpr.order[i]``."""

    ascending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OverExpr(Expr):
    """``children``: arguments, partition, order, in this order."""

    function: str
    args: tuple[Expr, ...]
    partition: tuple[Expr, ...]
    order: tuple[Expr, ...]
    directions: tuple[OverOrder, ...]
    rows: bool
    lower: FrameBound
    upper: FrameBound
    distinct: bool = False
    options: tuple[tuple[str, str], ...] = ()

    @property
    def children(self) -> tuple[Expr, ...]:
        return (*self.args, *self.partition, *self.order)


@with_children.register
def _(expr: AggregateExpr, children: tuple[Expr, ...]) -> Expr:
    count = len(expr.args)
    return replace(expr, args=children[:count], filter=children[count] if expr.filter else None)


@with_children.register
def _(expr: GroupingExpr, children: tuple[Expr, ...]) -> Expr:
    return replace(expr, args=children)


@with_children.register
def _(expr: OverExpr, children: tuple[Expr, ...]) -> Expr:
    first, second = len(expr.args), len(expr.args) + len(expr.partition)
    return replace(expr, args=children[:first], partition=children[first:second], order=children[second:])


def contains(expr: Expr, *kinds: type[Expr]) -> bool:
    return any(isinstance(x, kinds) for x in expr.walk())
