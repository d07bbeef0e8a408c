"""The value of a constant expression that the plan needs as a number, such as the bound of a frame.

Whole numbers and the arithmetic between them; what Spark would have to compute (a text, a fraction, any
other function) has no value here, as in Flink's own frames.
"""

from __future__ import annotations

from collections.abc import Callable

from tidemill.plan.expressions import Call, Cast, Expr, Literal
from tidemill.types import logical as t

_FUNCTIONS: dict[str, Callable[..., int]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "UNARY -": lambda operand: -operand,
    "ABS": abs,
}


def whole_number(expr: Expr) -> int | None:
    """The number, or an interval's milliseconds or months; None for anything else."""
    if isinstance(expr, Literal):
        plain = isinstance(expr.value, int) and not isinstance(expr.value, bool)
        return expr.value if plain and isinstance(expr.value, int) else None
    if isinstance(expr, Cast):
        return whole_number(expr.operand) if isinstance(expr.type, t.INTEGER_TYPES) else None
    if isinstance(expr, Call) and expr.function in _FUNCTIONS:
        found = [whole_number(arg) for arg in expr.args]
        return None if None in found else _FUNCTIONS[expr.function](*found)
    return None
