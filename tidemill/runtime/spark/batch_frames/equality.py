"""Equalities between the two sides of a join, and which of them Spark's own operators compare as ours do."""

from __future__ import annotations

from tidemill.plan.expressions import Call, Expr
from tidemill.plan.rewrite import input_indexes
from tidemill.types.logical import APPROXIMATE_TYPES, COLLECTION_TYPES, INTEGER_TYPES
from tidemill.types.physical import spark_type


def equal_sides(part: Expr, width: int) -> tuple[Expr, Expr] | None:
    """What ``part`` says to be equal, of the left (the first ``width`` columns) and of the right side."""
    if not isinstance(part, Call) or part.function != "=":
        return None
    for left, right in (part.args, part.args[::-1]):
        own, other = input_indexes(left), input_indexes(right)
        if own and other and max(own) < width <= min(other):
            return left, right
    return None


def compares_alike(own: Expr, other: Expr) -> bool:
    """Whether Spark's IN and EXISTS compare values of these types as ours do."""
    kinds = own.type, other.type
    whole = all(isinstance(kind, INTEGER_TYPES) for kind in kinds)
    alike = spark_type(own.type) == spark_type(other.type)
    return whole or (alike and not isinstance(own.type, (*APPROXIMATE_TYPES, *COLLECTION_TYPES)))
