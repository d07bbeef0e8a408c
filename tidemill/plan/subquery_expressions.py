"""Expressions that contain a plan. This module imports both plans and expressions. The rules replace every
subquery by a join."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidemill.errors import Position
from tidemill.plan.expressions import Expr
from tidemill.plan.nodes import LogicalNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Subquery(Expr):
    """``position`` is its position in the SQL text."""

    plan: LogicalNode
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarSubquery(Subquery):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Exists(Subquery):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class InSubquery(Subquery):
    """(operands) IN (plan), three-valued; NOT IN is a Call("NOT") around it."""

    operands: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.operands
