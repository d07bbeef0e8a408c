"""Evaluate constant conditions and remove casts that change nothing.

    x AND TRUE -> x        x OR TRUE -> TRUE        NOT NOT x -> x        1 = 0 -> FALSE
    COALESCE(NULL, x) -> x

Values stay the same; a type may become NOT NULL. The rule may drop an operand that would fail at run time,
which SQL allows.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from tidemill.plan.expressions import Call, Cast, Expr, Literal
from tidemill.plan.nodes import LogicalNode
from tidemill.plan.rewrite import map_expr, map_node_expressions
from tidemill.types.logical import BooleanType


def simplify_conditions(node: LogicalNode) -> LogicalNode | None:
    simplified = map_node_expressions(node, lambda expr: map_expr(expr, _one))
    return None if simplified is node else simplified


def _one(expr: Expr) -> Expr:
    if isinstance(expr, Cast):
        return expr.operand if expr.operand.type == expr.type else expr
    rule = _RULES.get(expr.function) if isinstance(expr, Call) else None
    simpler = rule(expr) if rule is not None and isinstance(expr, Call) else None
    return simpler if simpler is not None and _fits(simpler, expr) else expr


def _fits(simpler: Expr, expr: Expr) -> bool:
    """Whether ``simpler`` may replace ``expr``: it has the same type, and is NOT NULL if ``expr`` is."""
    return simpler.type in (expr.type, expr.type.with_nullable(False))


def _value(expr: Expr) -> object:
    return expr.value if isinstance(expr, Literal) else expr


def _absorb(neutral: bool) -> Callable[[Call], Expr | None]:
    """AND (neutral TRUE) and OR (neutral FALSE)."""

    def simplify(call: Call) -> Expr | None:
        for arg in call.args:
            if _value(arg) is (not neutral):
                return arg
        operands = [a for a in call.args if _value(a) is not neutral]
        if len(operands) == len(call.args):
            return None
        return operands[0] if len(operands) == 1 else call.args[0]

    return simplify


def _not(call: Call) -> Expr | None:
    inner = call.args[0]
    if isinstance(inner, Call) and inner.function == "NOT":
        return inner.args[0]
    if isinstance(inner, Literal) and isinstance(inner.value, bool):
        return Literal(type=inner.type, value=not inner.value)
    return None


def _compare(holds: Callable[[Any, Any], bool]) -> Callable[[Call], Expr | None]:
    """Compares two constants of one type. Exact numbers may differ in width."""

    def simplify(call: Call) -> Expr | None:
        left, right = call.args
        if not (isinstance(left, Literal) and isinstance(right, Literal)):
            return None
        kinds = {type(left.value), type(right.value)}
        if kinds == {int} or (kinds == {str} and left.type == right.type):
            return Literal(type=BooleanType(nullable=False), value=holds(left.value, right.value))
        return None

    return simplify


def _coalesce(call: Call) -> Expr | None:
    """COALESCE becomes its first argument if that is never NULL."""
    first = call.args[0]
    return None if first.type.nullable else first


_RULES: dict[str, Callable[[Call], Expr | None]] = {
    "AND": _absorb(True),
    "OR": _absorb(False),
    "NOT": _not,
    "COALESCE": _coalesce,
    "=": _compare(operator.eq),
    "<>": _compare(operator.ne),
    "<": _compare(operator.lt),
    "<=": _compare(operator.le),
    ">": _compare(operator.gt),
    ">=": _compare(operator.ge),
}
