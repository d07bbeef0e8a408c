"""Which expressions may be computed more or less often than written without changing the answer."""

from __future__ import annotations

from tidemill.functions import registry
from tidemill.plan.expressions import Call, Expr
from tidemill.plan.rewrite import subplan


def is_deterministic(expr: Expr) -> bool:
    """Whether every call in it gives the same result for the same arguments."""
    return all(_is_stable(x.function) for x in expr.walk() if isinstance(x, Call))


def _is_stable(name: str) -> bool:
    function = registry.scalar(name)
    return function is not None and function.deterministic


def has_subquery(expr: Expr) -> bool:
    return any(subplan(x) is not None for x in expr.walk())
