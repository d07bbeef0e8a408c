"""Splits a join's residual condition between Spark and the kernel.

The largest parts that concern one side only become extra columns of that side's port, computed by Spark; what
compares the sides becomes an ``operators.residual`` tree, as far as kernels know the operation
(``physical.joins.pairwise``).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tidemill.errors import InternalError
from tidemill.operators.join.residual import (
    CastTerm,
    ColumnTerm,
    ComputedTerm,
    ConstantTerm,
    ElapsedTerm,
    Residual,
    Term,
    UserTerm,
)
from tidemill.physical.joins.pairwise import elapsed_unit, known_to_kernels, sides_of
from tidemill.plan.expressions import Call, Cast, Expr, InputRef, Literal, UserCall
from tidemill.runtime.compile.row_names import NamedRows
from tidemill.types import logical as t
from tidemill.types.physical import arrow_type

CONSTANTS = (t.BooleanType, *t.NUMERIC_TYPES, *t.CHARACTER_TYPES)
"""Types whose literals are plain values in Arrow, too; other constants are columns."""


@dataclass(slots=True, kw_only=True)
class ResidualSplit:
    """``left_width``: the number of left fields. ``names``: the names of the columns of both sides.
    ``parts``: per side the expressions (over left fields + right fields) that its port must carry, by column
    name. ``fields``: the fields without computed parts."""

    left_width: int
    names: NamedRows
    parts: tuple[dict[str, Expr], dict[str, Expr]] = field(default_factory=lambda: ({}, {}))
    fields: tuple[set[int], set[int]] = field(default_factory=lambda: (set(), set()))

    def split(self, condition: Expr) -> Residual:
        return Residual(self._term(condition))

    def column(self, expr: Expr, side: int) -> str:
        """The column of ``side``'s port that is ``expr``."""
        return self._carried(expr, side).name

    def _term(self, expr: Expr) -> Term:
        if isinstance(expr, Literal) and isinstance(expr.type, CONSTANTS) and expr.value is not None:
            return ConstantTerm(expr.value, arrow_type(expr.type))
        sides = sides_of(expr, self.left_width)
        if len(sides) < 2:
            return self._carried(expr, int(True in sides))
        if not known_to_kernels(expr):
            raise _unknown(expr)
        return computed(expr, tuple(map(self._term, expr.children)))

    def _carried(self, expr: Expr, side: int) -> ColumnTerm:
        parts = self.parts[side]
        if isinstance(expr, InputRef):
            place = expr.index - side * self.left_width
            self.fields[side].add(place)
            return ColumnTerm(self.names.fields[side][place].name)
        for name, known in parts.items():
            if known == expr:
                return ColumnTerm(name)
        name = self.names.computed(expr, f"$r{side}.", len(parts))
        parts[name] = expr
        return ColumnTerm(name)


def computed(expr: Expr, operands: tuple[Term, ...]) -> Term:
    """The topmost operation of ``expr``, one that kernels know, over ``operands``."""
    if isinstance(expr, Cast):
        return CastTerm(operands[0], arrow_type(expr.type))
    if isinstance(expr, UserCall):
        return UserTerm(expr.function, operands)
    assert isinstance(expr, Call)
    if expr.function == "BETWEEN":
        value, low, high = operands
        return ComputedTerm("AND", (ComputedTerm(">=", (value, low)), ComputedTerm("<=", (value, high))))
    if expr.function == "TIMESTAMPDIFF":
        first, second = operands
        return ElapsedTerm((first, second), elapsed_unit(expr) or 1)
    return ComputedTerm(expr.function, operands)


def _unknown(expr: Expr) -> InternalError:
    name = expr.function if isinstance(expr, Call) else f"a {type(expr).__name__} to {expr.type}"
    return InternalError(f"{name} over both sides of a join is for Spark to compute, not for its kernel")
