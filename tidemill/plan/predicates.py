"""Conditions as lists of conjuncts, and properties of conditions known from their form."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from tidemill.plan.expressions import Call, Cast, Expr, FieldAccess, InputRef, Literal
from tidemill.types.logical import BooleanType, LogicalType

TRUE = Literal(type=BooleanType(nullable=False), value=True)

COMPARISONS = frozenset(("=", "<>", "<", "<=", ">", ">="))
STRICT = COMPARISONS | frozenset(("+", "-", "*", "/", "%", "UNARY -", "LIKE", "||", "UPPER", "LOWER", "ABS"))
"""Functions that give NULL for any NULL argument."""


def conjuncts(condition: Expr) -> tuple[Expr, ...]:
    """The operands of nested ANDs, in order; none for TRUE."""
    if isinstance(condition, Call) and condition.function == "AND":
        return tuple(x for arg in condition.args for x in conjuncts(arg))
    return () if condition == TRUE else (condition,)


def disjuncts(condition: Expr) -> tuple[Expr, ...]:
    """The operands of nested ORs, in order; the condition itself if it is no OR."""
    if isinstance(condition, Call) and condition.function == "OR":
        return tuple(x for arg in condition.args for x in disjuncts(arg))
    return (condition,)


def conjunction(parts: Iterable[Expr]) -> Expr:
    """The AND of ``parts``, each once; TRUE for none."""
    unique = list(dict.fromkeys(parts))
    return _all_of(unique) if unique else TRUE


DEEP = 32
"""A longer list is halved instead of nested to the left, as every pass over it recurses."""


def _all_of(parts: list[Expr]) -> Expr:
    if len(parts) <= DEEP:
        return reduce(both, parts)
    middle = len(parts) // 2
    return both(_all_of(parts[:middle]), _all_of(parts[middle:]))


def both(left: Expr, right: Expr) -> Expr:
    nullable = left.type.nullable or right.type.nullable
    return Call(type=BooleanType(nullable=nullable), function="AND", args=(left, right))


def rejects_nulls(condition: Expr, columns: frozenset[int]) -> bool:
    """Whether ``condition`` is not TRUE for any row in which all of ``columns`` are NULL."""
    if isinstance(condition, Call):
        if condition.function == "AND":
            return any(rejects_nulls(a, columns) for a in condition.args)
        if condition.function == "OR":
            return all(rejects_nulls(a, columns) for a in condition.args)
        if condition.function in ("IS NOT NULL", "IS TRUE", "IS FALSE"):
            return null_if_null(condition.args[0], columns)
    return null_if_null(condition, columns)


def null_if_null(expr: Expr, columns: frozenset[int]) -> bool:
    """Whether ``expr`` is NULL for every row in which all of ``columns`` are NULL."""
    if isinstance(expr, InputRef):
        return expr.index in columns
    if isinstance(expr, Literal):
        return expr.value is None
    if isinstance(expr, Cast):
        return null_if_null(expr.operand, columns)
    if isinstance(expr, FieldAccess):
        return null_if_null(expr.operand, columns)
    if isinstance(expr, Call) and (expr.function in STRICT or expr.function == "NOT"):
        return any(null_if_null(a, columns) for a in expr.args)
    return False


def null_aware_condition(condition: Expr) -> Expr:
    """The condition of a NOT IN's anti join: ``a = b`` becomes ``a = b OR a IS NULL OR b IS NULL``."""
    return conjunction(_or_null(part) for part in conjuncts(condition))


def _or_null(part: Expr) -> Expr:
    if not isinstance(part, Call) or part.function != "=":
        return part
    return or_null(*part.args, kind=part.type)


def or_null(a: Expr, b: Expr, *, kind: LogicalType | None = None) -> Expr:
    """``a = b OR a IS NULL OR b IS NULL``, without tests of operands that are NOT NULL."""
    nullable = [x for x in (a, b) if x.type.nullable]
    kind = BooleanType(nullable=bool(nullable)) if kind is None else kind
    plain = BooleanType(nullable=False)
    nulls = [Call(type=plain, function="IS NULL", args=(x,)) for x in nullable]
    equality: Expr = Call(type=kind, function="=", args=(a, b))
    for null in nulls:
        equality = Call(type=kind, function="OR", args=(null, equality))
    return equality


def operands_of_or_null(condition: Expr) -> tuple[Expr, Expr] | None:
    """The operands of a condition that ``or_null`` built; None for other conditions."""
    parts = disjuncts(condition)
    equal = [x for x in parts if isinstance(x, Call) and x.function == "="]
    if len(equal) != 1:
        return None
    a, b = equal[0].args
    nullable = [x for x in (a, b) if x.type.nullable]
    nulls = [x.args[0] for x in parts if isinstance(x, Call) and x.function == "IS NULL"]
    if len(parts) != 1 + len(nulls) or len(nulls) != len(nullable) or any(x not in nullable for x in nulls):
        return None
    return (a, b) if nulls else None


def equal_columns(part: Expr, width: int) -> tuple[int, int] | None:
    """The left and the right field that ``part`` compares with ``=``; None for other conditions."""
    if not isinstance(part, Call) or part.function != "=":
        return None
    a, b = part.args
    if not isinstance(a, InputRef) or not isinstance(b, InputRef):
        return None
    low, high = sorted((a.index, b.index))
    return (low, high - width) if low < width <= high else None
