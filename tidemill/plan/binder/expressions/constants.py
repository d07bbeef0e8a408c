"""The value of a constant expression that the plan needs as a number, such as the bound of a frame.

    ROWS BETWEEN 1 + 1 PRECEDING    -> 2

Only whole numbers and arithmetic between them have a value here, as in Flink's own frames. Texts, fractions
and other functions have none, because Spark would have to compute them.
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
    """The number, or the milliseconds or months of an interval; None for any other expression."""
    if isinstance(expr, Literal):
        plain = isinstance(expr.value, int) and not isinstance(expr.value, bool)
        return expr.value if plain and isinstance(expr.value, int) else None
    if isinstance(expr, Cast):
        return whole_number(expr.operand) if isinstance(expr.type, t.INTEGER_TYPES) else None
    if isinstance(expr, Call) and expr.function in _FUNCTIONS:
        operands = [whole_number(arg) for arg in expr.args]
        return None if None in operands else _FUNCTIONS[expr.function](*operands)
    return None
