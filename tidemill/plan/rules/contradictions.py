"""Replace a condition that no row can meet by FALSE.

    before: WHERE n > 5 AND n < 3
    before: WHERE n IN (1, 2) AND n = 3
    before: WHERE n = NULL
    after:  WHERE FALSE

The rule applies to the conditions of filters and joins only: there NULL and FALSE both reject the row. In
``SELECT n > 5 AND n < 3`` the value must stay NULL if n is NULL.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from functools import reduce
from typing import Any

from tidemill.plan.expressions import Call, Expr, Literal
from tidemill.plan.nodes import Filter, Join, LogicalNode
from tidemill.plan.predicates import conjunction, conjuncts, disjuncts
from tidemill.plan.rules.construct import boolean, predicate
from tidemill.plan.rules.determinism import is_deterministic
from tidemill.types import logical as t

_PYTHON: tuple[tuple[tuple[type[t.LogicalType], ...], tuple[type, ...]], ...] = (
    ((*t.INTEGER_TYPES, t.DecimalType), (int, Decimal)),
    (t.CHARACTER_TYPES, (str,)),
    ((t.BooleanType,), (bool,)),
    ((t.DateType,), (date,)),
    ((t.TimestampType,), (datetime,)),
)
"""For column types the Python types of constants that Python compares as SQL does."""
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def contradictions(node: LogicalNode) -> LogicalNode | None:
    if not isinstance(node, Filter) and not (isinstance(node, Join) and not node.null_aware):
        return None
    possible = _possible(node.condition)
    return None if possible == node.condition else replace(node, condition=possible)


def _possible(condition: Expr) -> Expr:
    """The condition without the alternatives that no row can meet."""
    branches = disjuncts(condition)
    if len(branches) > 1:
        left = [branch for branch in map(_possible, branches) if branch != boolean(False)]
        if len(left) == len(branches) and all(a is b for a, b in zip(left, branches, strict=True)):
            return condition
        return reduce(lambda a, b: predicate("OR", a, b), left) if left else boolean(False)
    parts = conjuncts(condition)
    if _contradict(parts):
        return boolean(False)
    if len(parts) < 2:
        return condition
    possible_parts = [_possible(part) for part in parts]
    if all(a is b for a, b in zip(possible_parts, parts, strict=True)):
        return condition
    return boolean(False) if boolean(False) in possible_parts else conjunction(possible_parts)


@dataclass(slots=True)
class _Facts:
    """The conditions on one value. ``among``: the constants that it may have, None for any. ``bounds``: its
    comparisons with constants."""

    among: list[Any] | None = None
    bounds: list[tuple[str, Any]] = field(default_factory=list)
    is_null: bool = False
    is_there: bool = False

    def can_be(self) -> bool:
        if self.is_null and self.is_there:
            return False
        if self.among is None:
            return self._has_room()
        return any(all(_HOLDS[op](value, bound) for op, bound in self.bounds) for value in self.among)

    def _has_room(self) -> bool:
        """Whether the lowest bound is below the highest."""
        above = [(value, op) for op, value in self.bounds if op in (">", ">=")]
        below = [(value, op) for op, value in self.bounds if op in ("<", "<=")]
        return all(
            low < high or (low == high and (lower, upper) == (">=", "<="))
            for low, lower in above
            for high, upper in below
        )

    def add(self, name: str, values: tuple[Any, ...]) -> None:
        if name == "IS NULL":
            self.is_null = True
            return
        self.is_there = True
        if name == "=" and values:
            self.among = [v for v in values if self.among is None or v in self.among]
        else:
            self.bounds += [(name, value) for value in values]


def _contradict(parts: Iterable[Expr]) -> bool:
    facts: dict[Expr, _Facts] = {}
    for part in parts:
        for operand, name, values in _facts(part):
            if None in values:
                return True  # a comparison with NULL is never TRUE
            if is_deterministic(operand):
                facts.setdefault(operand, _Facts()).add(name, _as_compared(operand.type, values))
    return not all(values_left.can_be() for values_left in facts.values())


def _as_compared(kind: t.LogicalType, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The constants in a form that Python compares as SQL does; none if a constant has no such form."""
    if isinstance(kind, t.DoubleType):
        numbers = all(type(v) in (int, float, Decimal) for v in values)
        return tuple(map(float, values)) if numbers else ()
    expected = next((python_types for kinds, python_types in _PYTHON if isinstance(kind, kinds)), ())
    return values if all(type(v) in expected for v in values) else ()


def _facts(part: Expr) -> list[tuple[Expr, str, tuple[Any, ...]]]:
    """The facts of a condition: (value, comparison, constants). BETWEEN gives two facts."""
    if not isinstance(part, Call):
        return []
    if part.function in ("IS NULL", "IS NOT NULL"):
        return [(part.args[0], part.function, ())]
    if part.function in _MIRRORED:
        return _comparison(part.function, *part.args)
    if part.function == "BETWEEN" and not part.options:
        value, low, high = part.args
        return [*_comparison(">=", value, low), *_comparison("<=", value, high)]
    if part.function == "IN":
        return _membership(part.args, "=")
    return _negated(part.args[0]) if part.function == "NOT" else []


def _negated(inner: Expr) -> list[tuple[Expr, str, tuple[Any, ...]]]:
    """The fact of a negated equality: ``NOT a = 1`` is ``a <> 1``."""
    if not isinstance(inner, Call):
        return []
    if inner.function == "=":
        return _comparison("<>", *inner.args)
    return _membership(inner.args, "<>") if inner.function == "IN" else []


def _comparison(name: str, left: Expr, right: Expr) -> list[tuple[Expr, str, tuple[Any, ...]]]:
    if isinstance(left, Literal):
        left, right, name = right, left, _MIRRORED[name]
    constant = isinstance(right, Literal) and not isinstance(left, Literal)
    return [(left, name, (right.value,))] if constant and isinstance(right, Literal) else []


def _membership(args: tuple[Expr, ...], name: str) -> list[tuple[Expr, str, tuple[Any, ...]]]:
    """The fact of IN or NOT IN. With a NULL in its list NOT IN is never TRUE."""
    value, *listed = args
    if isinstance(value, Literal) or not all(isinstance(x, Literal) for x in listed):
        return []
    values = tuple(x.value for x in listed if isinstance(x, Literal))
    return [(value, name, tuple(v for v in values if v is not None) if name == "=" else values)]
