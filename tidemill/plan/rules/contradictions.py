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
"""By types of columns what constants are, with which such columns are compared as Python compares."""
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
    found = [_possible(part) for part in parts]
    if all(a is b for a, b in zip(found, parts, strict=True)):
        return condition
    return boolean(False) if boolean(False) in found else conjunction(found)


@dataclass(slots=True)
class _Known:
    """What conditions say of one value: ``among``: the constants that it is one of, None for any;
    ``bounds``: comparisons with constants that hold."""

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

    def told(self, name: str, values: tuple[Any, ...]) -> None:
        if name == "IS NULL":
            self.is_null = True
            return
        self.is_there = True
        if name == "=" and values:
            self.among = [v for v in values if self.among is None or v in self.among]
        else:
            self.bounds += [(name, value) for value in values]


def _contradict(parts: Iterable[Expr]) -> bool:
    known: dict[Expr, _Known] = {}
    for part in parts:
        for operand, name, values in _facts(part):
            if None in values:
                return True  # what is compared with NULL is never TRUE
            if is_deterministic(operand):
                known.setdefault(operand, _Known()).told(name, _as_compared(operand.type, values))
    return not all(one.can_be() for one in known.values())


def _as_compared(kind: t.LogicalType, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Constants as Python compares them alike; none where one cannot be."""
    if isinstance(kind, t.DoubleType):
        numbers = all(type(v) in (int, float, Decimal) for v in values)
        return tuple(map(float, values)) if numbers else ()
    expected = next((found for kinds, found in _PYTHON if isinstance(kind, kinds)), ())
    return values if all(type(v) in expected for v in values) else ()


def _facts(part: Expr) -> list[tuple[Expr, str, tuple[Any, ...]]]:
    """What a condition says of values: the value, the comparison, constants. Of BETWEEN two."""
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
    return _denied(part.args[0]) if part.function == "NOT" else []


def _denied(inner: Expr) -> list[tuple[Expr, str, tuple[Any, ...]]]:
    """What NOT says of an equality."""
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
    """Of IN, and of NOT IN, of which a NULL in the list makes nothing TRUE."""
    value, *listed = args
    if isinstance(value, Literal) or not all(isinstance(x, Literal) for x in listed):
        return []
    values = tuple(x.value for x in listed if isinstance(x, Literal))
    return [(value, name, tuple(v for v in values if v is not None) if name == "=" else values)]
