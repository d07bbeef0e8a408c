"""What the kernels of streaming joins can compute over a pair of rows.

A part of a condition that looks at one side only is a column of that side, made by Spark. What looks at both
sides is computed over pairs in the kernel, by operations that mean there what they mean in Flink. An inner
join's other conditions are a filter above it; the other joins must know the answer while they match.
"""

from __future__ import annotations

from tidemill.operators.join.residual import OPERATIONS
from tidemill.plan.expressions import Call, Cast, Expr, InputRef, UserCall
from tidemill.types import logical as t

_ARITHMETIC = {"+": 2, "-": 2, "*": 2, "ABS": 1, "UNARY -": 1}
"""With the number of operands."""
_WIDTHS = (t.TinyIntType, t.SmallIntType, t.IntType, t.BigIntType)


def sides_of(expr: Expr, left_width: int) -> frozenset[bool]:
    """Which sides' columns ``expr`` looks at: True is the right one."""
    return frozenset(ref.index >= left_width for ref in expr.walk() if isinstance(ref, InputRef))


def unknown_to_kernels(expr: Expr, left_width: int) -> Expr | None:
    """The first part of ``expr`` over both sides that the kernel has no operation for."""
    if len(sides_of(expr, left_width)) < 2:
        return None
    if not known_to_kernels(expr):
        return expr
    return next(filter(None, (unknown_to_kernels(c, left_width) for c in expr.children)), None)


def known_to_kernels(expr: Expr) -> bool:
    """Whether the kernel can compute the topmost operation of ``expr`` from what is below it."""
    if isinstance(expr, Call):
        return expr.function == "BETWEEN" or (expr.function in OPERATIONS and _as_in_flink(expr))
    if isinstance(expr, Cast):
        return _widens(expr.operand.type, expr.type)
    return isinstance(expr, UserCall)


def _as_in_flink(expr: Call) -> bool:
    """Whether Arrow's operation is Flink's: arithmetic of one integer type or of doubles."""
    if expr.function not in _ARITHMETIC:
        return True
    kinds = {type(a.type) for a in expr.args} | {type(expr.type)}
    operands = _ARITHMETIC[expr.function]
    return len(expr.args) == operands and len(kinds) == 1 and kinds <= {*_WIDTHS, t.DoubleType}


def _widens(source: t.LogicalType, target: t.LogicalType) -> bool:
    if type(source) in _WIDTHS and type(target) in _WIDTHS:
        return _WIDTHS.index(type(source)) <= _WIDTHS.index(type(target))
    return type(source) in _WIDTHS and isinstance(target, t.DoubleType)
