"""Taking conditions apart and moving them between nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from tidemill.plan.expressions import Call, Cast, Expr, InputRef, Literal
from tidemill.plan.predicates import operands_of_or_null
from tidemill.plan.rewrite import map_expr
from tidemill.types.logical import BOOLEAN


def conjuncts(condition: Expr) -> list[Expr]:
    """The parts that AND joins; none for TRUE."""
    if isinstance(condition, Call) and condition.function == "AND":
        return [part for arg in condition.args for part in conjuncts(arg)]
    if isinstance(condition, Literal) and condition.value is True:
        return []
    return [condition]


def conjunction(parts: Iterable[Expr]) -> Expr | None:
    """The AND of ``parts``; None if there are none."""
    operands = list(parts)
    if not operands:
        return None
    return reduce(lambda a, b: Call(type=BOOLEAN, function="AND", args=(a, b)), operands)


def columns(expr: Expr) -> set[int]:
    return {x.index for x in expr.walk() if isinstance(x, InputRef)}


def shifted(expr: Expr, by: int) -> Expr:
    """``expr`` with every column index moved."""

    def move(x: Expr) -> Expr:
        return InputRef(type=x.type, index=x.index + by) if isinstance(x, InputRef) else x

    return map_expr(expr, move)


def substituted(expr: Expr, replacements: Sequence[Expr]) -> Expr:
    """``expr`` with column i replaced by ``replacements[i]``."""

    def put(x: Expr) -> Expr:
        return replacements[x.index] if isinstance(x, InputRef) else x

    return map_expr(expr, put)


def loose_pair(part: Expr, width: int) -> tuple[Expr, Expr] | None:
    """The left and right expression of ``a = b OR a IS NULL OR b IS NULL``, the comparison of NOT IN; None
    for other conditions. ``width``: the number of left fields."""
    pair = operands_of_or_null(part)
    if pair is None:
        return None
    a, b = pair
    for left, right in ((a, b), (b, a)):
        own, others = columns(left), columns(right)
        if own and others and max(own) < width <= min(others):
            return left, right
    return None


def constant(expr: Expr) -> object:
    """The value of a literal, or of a cast literal; None for other expressions."""
    while isinstance(expr, Cast):
        expr = expr.operand
    return expr.value if isinstance(expr, Literal) else None
