"""Splits a join's residual condition between Spark and the kernel.

The largest parts that concern one side only become extra columns of that side's
port, computed by Spark; what compares the sides becomes an ``operators.residual`` tree. A condition
that computes on both sides at once in any other way is not supported.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tidemill.errors import NotSupportedError
from tidemill.operators.join.residual import (
    OPERATIONS,
    CastTerm,
    ColumnTerm,
    ComputedTerm,
    ConstantTerm,
    Residual,
    Term,
    UserTerm,
)
from tidemill.plan.expressions import Call, Cast, Expr, InputRef, Literal, UserCall
from tidemill.types import logical as t
from tidemill.types.physical import arrow_type

_ARITHMETIC = ("+", "-", "*")
_CONSTANTS = (t.BooleanType, *t.NUMERIC_TYPES, *t.CHARACTER_TYPES)
"""Types whose literals are plain values in Arrow, too; other constants are columns."""
_WIDTHS = (t.TinyIntType, t.SmallIntType, t.IntType, t.BigIntType)


@dataclass(slots=True, kw_only=True)
class ResidualSplit:
    """``left_width``: number of left fields. ``parts``: per side the expressions (over left fields +
    right fields) its port must carry, by the column name they get; ``fields``: the fields as they are."""

    left_width: int
    parts: tuple[dict[str, Expr], dict[str, Expr]] = field(default_factory=lambda: ({}, {}))
    fields: tuple[set[int], set[int]] = field(default_factory=lambda: (set(), set()))

    def split(self, condition: Expr) -> Residual:
        return Residual(self._term(condition))

    def column(self, expr: Expr, side: int) -> str:
        """The column of ``side``'s port that is ``expr``."""
        return self._carried(expr, side).name

    def _term(self, expr: Expr) -> Term:
        if isinstance(expr, Literal) and isinstance(expr.type, _CONSTANTS) and expr.value is not None:
            return ConstantTerm(expr.value, arrow_type(expr.type))
        sides = {ref.index >= self.left_width for ref in expr.walk() if isinstance(ref, InputRef)}
        if len(sides) < 2:
            return self._carried(expr, int(sides.pop()) if sides else 0)
        if isinstance(expr, Call) and expr.function in OPERATIONS and _computes(expr):
            return ComputedTerm(expr.function, tuple(self._term(a) for a in expr.args))
        if isinstance(expr, Call) and expr.function == "BETWEEN":
            value, low, high = (self._term(a) for a in expr.args)
            return ComputedTerm("AND", (ComputedTerm(">=", (value, low)), ComputedTerm("<=", (value, high))))
        if isinstance(expr, Cast) and _widens(expr.operand.type, expr.type):
            return CastTerm(self._term(expr.operand), arrow_type(expr.type))
        if isinstance(expr, UserCall):
            return UserTerm(expr.function, tuple(self._term(a) for a in expr.args))
        name = expr.function if isinstance(expr, Call) else type(expr).__name__
        raise NotSupportedError(
            f"A join condition that applies {name} to columns of both sides at once is not supported "
            "in an outer, semi or anti join in streaming mode"
        )

    def _carried(self, expr: Expr, side: int) -> ColumnTerm:
        parts = self.parts[side]
        if isinstance(expr, InputRef):
            self.fields[side].add(expr.index - side * self.left_width)
            return ColumnTerm(side_column(side, expr.index - side * self.left_width))
        for name, known in parts.items():
            if known == expr:
                return ColumnTerm(name)
        name = f"$r{side}.{len(parts)}"
        parts[name] = expr
        return ColumnTerm(name)


def side_column(side: int, place: int) -> str:
    """The kernel's name of a field of one side."""
    return f"{'lr'[side]}{place}"


def _computes(expr: Call) -> bool:
    """Whether Arrow's operation is Flink's: sums and products of one integer type or of doubles."""
    if expr.function not in _ARITHMETIC:
        return True
    kinds = {type(a.type) for a in expr.args} | {type(expr.type)}
    return len(expr.args) == 2 and len(kinds) == 1 and kinds <= {*_WIDTHS, t.DoubleType}


def _widens(source: t.LogicalType, target: t.LogicalType) -> bool:
    if type(source) in _WIDTHS and type(target) in _WIDTHS:
        return _WIDTHS.index(type(source)) <= _WIDTHS.index(type(target))
    return type(source) in _WIDTHS and isinstance(target, t.DoubleType)
