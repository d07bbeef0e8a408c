"""The expressions that the kernels of streaming joins can compute over a pair of rows.

Spark computes the parts of a condition that read one side as columns of that side. The kernel computes the
parts that read both sides over pairs, if its operations have Flink's results. An inner join's other
conditions become a filter above the join. Other joins need the answer while they match.
"""

from __future__ import annotations

from tidemill.functions.datetime_shift import elapsed_micros
from tidemill.operators.join.residual import OPERATIONS
from tidemill.plan.expressions import Call, Cast, Expr, InputRef, UserCall
from tidemill.types import logical as t

_ARITHMETIC = {"+": 2, "-": 2, "*": 2, "/": 2, "ABS": 1, "UNARY -": 1}
"""With the number of operands."""
_CHOOSING = frozenset({"CASE", "IF", "COALESCE", "IFNULL"})
_DIGITS: dict[type[t.LogicalType], int] = {
    t.TinyIntType: 3,
    t.SmallIntType: 5,
    t.IntType: 10,
    t.BigIntType: 19,
}


def sides_of(expr: Expr, left_width: int) -> frozenset[bool]:
    """The sides whose columns ``expr`` reads: False is left, True is right."""
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
        if expr.function == "TIMESTAMPDIFF":
            return elapsed_unit(expr) is not None
        return expr.function == "BETWEEN" or (expr.function in OPERATIONS and _as_in_flink(expr))
    if isinstance(expr, Cast):
        return _widens(expr.operand.type, expr.type)
    return isinstance(expr, UserCall)


def elapsed_unit(expr: Call) -> int | None:
    """The microseconds of TIMESTAMPDIFF's unit; None for months and for times of day."""
    if any(isinstance(a.type, t.TimeType) for a in expr.args):
        return None
    return elapsed_micros(dict(expr.options))


def _as_in_flink(expr: Call) -> bool:
    """Whether Arrow's operation has Flink's result: arithmetic of one integer type, of doubles, and of
    decimals that lose no digit; a choice among values of one type."""
    if expr.function in _CHOOSING:
        values = [a.type for a in _values(expr)]
        return all(_arrow_alike(kind, expr.type) for kind in values)
    if expr.function not in _ARITHMETIC:
        return True
    kinds = {type(a.type) for a in expr.args} | {type(expr.type)}
    if len(expr.args) != _ARITHMETIC[expr.function] or len(kinds) != 1:
        return False
    if isinstance(expr.type, t.DecimalType):
        return expr.function != "/" and expr.type.precision < t.MAX_DECIMAL_PRECISION
    return kinds <= {t.DoubleType} if expr.function == "/" else kinds <= {*_DIGITS, t.DoubleType}


def _values(expr: Call) -> tuple[Expr, ...]:
    """The values that CASE, COALESCE or a similar call chooses from."""
    if expr.function == "CASE":
        return (*expr.args[1:-1:2], expr.args[-1])
    return expr.args[1:] if expr.function == "IF" else expr.args


def _arrow_alike(a: t.LogicalType, b: t.LogicalType) -> bool:
    return a.with_nullable(True) == b.with_nullable(True) or (
        isinstance(a, t.CHARACTER_TYPES) and isinstance(b, t.VarCharType)
    )


def _widens(source: t.LogicalType, target: t.LogicalType) -> bool:
    if isinstance(source, t.DecimalType) and isinstance(target, t.DecimalType):
        room = target.precision - target.scale >= source.precision - source.scale
        return room and target.scale >= source.scale
    if type(source) not in _DIGITS:
        return False
    if isinstance(target, t.DecimalType):
        return target.precision - target.scale >= _DIGITS[type(source)]
    return isinstance(target, t.DoubleType) or _DIGITS[type(source)] <= _DIGITS.get(type(target), 0)
