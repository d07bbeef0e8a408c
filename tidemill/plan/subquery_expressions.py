"""Expressions that hold a plan. They are above both plans and expressions, and gone once the rules have run:
each has become a join."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.plan.expressions import Expr
from tidemill.plan.nodes import LogicalNode


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarSubquery(Expr):
    plan: LogicalNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Exists(Expr):
    plan: LogicalNode


@dataclass(frozen=True, slots=True, kw_only=True)
class InSubquery(Expr):
    """(operands) IN (plan), three-valued; NOT IN is a Call("NOT") around it."""

    operands: tuple[Expr, ...]
    plan: LogicalNode

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.operands
