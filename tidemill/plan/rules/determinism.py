"""Which expressions a rule may copy, drop or move without changing the answer.

``a + 1`` may be computed any number of times. ``RAND()`` and ``UUID()`` must be computed once per row, at the
node where the query calls them.
"""

from __future__ import annotations

from tidemill.functions import registry
from tidemill.plan.expressions import Call, Expr, UserCall
from tidemill.plan.rewrite import subplan


def is_deterministic(expr: Expr) -> bool:
    """Whether every call in it gives the same result for the same arguments."""
    return all(_is_stable_call(x) for x in expr.walk())


def drawn_by(expr: Expr) -> list[str]:
    """The built-in functions in it that compute a new value for each row, such as RAND."""
    calls = (registry.scalar(x.function) for x in expr.walk() if isinstance(x, Call))
    return sorted({function.name for function in calls if function is not None and function.draws})


def has_user_call(expr: Expr) -> bool:
    return any(isinstance(x, UserCall) for x in expr.walk())


def _is_stable_call(expr: Expr) -> bool:
    if isinstance(expr, UserCall):
        return expr.function.deterministic
    return not isinstance(expr, Call) or _is_stable(expr.function)


def _is_stable(name: str) -> bool:
    function = registry.scalar(name)
    return function is not None and function.deterministic


def has_subquery(expr: Expr) -> bool:
    return any(subplan(x) is not None for x in expr.walk())
