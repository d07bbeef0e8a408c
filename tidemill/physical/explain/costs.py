"""EXPLAIN ESTIMATED_COST: rows and costs of a plan's nodes, in Flink's numbers.

The sizes of tables are unknown, so a table has 1.0E8 rows, and a condition has the default selectivity of its
kind. Tidemill does not use these numbers; Flink's optimizer would.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import singledispatch

from tidemill.physical import nodes as p
from tidemill.plan import expressions as e
from tidemill.types import logical as t

TABLE_ROWS = 1e8
"""The only number that is not computed."""
_EQUAL, _COMPARED, _LIKE, _NULL, _ELSE = 0.15, 0.5, 0.05, 0.1, 0.25
_SHARES = {
    "=": _EQUAL,
    "<>": 1 - _EQUAL,
    "LIKE": _LIKE,
    "IS NULL": _NULL,
    "IS NOT NULL": 1 - _NULL,
    **dict.fromkeys(("<", "<=", ">", ">="), _COMPARED),
}
_BYTES: dict[type[t.LogicalType], int] = {
    t.TinyIntType: 1,
    t.SmallIntType: 2,
    t.IntType: 4,
    t.BigIntType: 8,
    t.BooleanType: 1,
    t.FloatType: 4,
    t.DoubleType: 8,
    t.TimeType: 12,
    t.DateType: 12,
}
_USUAL_BYTES = 12


@dataclass(frozen=True, slots=True)
class Cost:
    """``rows``: of the output. The other numbers are the cumulative cost of the node and all nodes below."""

    rows: float
    read: float = 0.0
    cpu: float = 0.0
    io: float = 0.0
    network: float = 0.0

    @property
    def text(self) -> str:
        """``rowcount = 1.0E8, cumulative cost = {...}``; streaming operators have no cost for memory."""
        parts = {"rows": self.read, "cpu": self.cpu, "io": self.io, "network": self.network, "memory": 0.0}
        resources = ", ".join(f"{number(value)} {name}" for name, value in parts.items())
        return f"rowcount = {number(self.rows)}, cumulative cost = {{{resources}}}"


@dataclass(frozen=True, slots=True)
class Costs:
    """``inputs``: the nodes that EXPLAIN shows below a node."""

    inputs: Callable[[p.PhysicalNode], tuple[p.PhysicalNode, ...]]
    _cache: dict[int, tuple[p.PhysicalNode, Cost]] = field(default_factory=dict)

    def of(self, node: p.PhysicalNode) -> Cost:
        cached = self._cache.get(id(node))
        if cached is None:
            below = [self.of(child) for child in self.inputs(node)]
            own = own_cost(node, tuple(c.rows for c in below))
            total = Cost(
                own.rows,
                own.read + sum(c.read for c in below),
                own.cpu + sum(c.cpu for c in below),
                own.io + sum(c.io for c in below),
                own.network + sum(c.network for c in below),
            )
            cached = self._cache[id(node)] = (node, total)
        return cached[1]


def number(value: float) -> str:
    """The number in Java's notation of doubles."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return str(value)
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).rstrip("0") or "0"
    power = len(digits) - 1 + exponent
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{power}"


def row_bytes(node: p.PhysicalNode) -> int:
    return sum(_BYTES.get(type(f.type), _USUAL_BYTES) for f in node.fields)


@singledispatch
def own_cost(node: p.PhysicalNode, rows: tuple[float, ...]) -> Cost:
    """The cost of a node without its inputs, whose ``rows`` are given. By default as many rows as its first
    input has, each processed once."""
    return Cost(rows[0], rows[0], rows[0])


def share(condition: e.Expr) -> float:
    """The share of rows that meet ``condition``."""
    if not isinstance(condition, e.Call):
        return _ELSE
    parts = condition.args
    if condition.function == "AND":
        return math.prod(map(share, parts))
    if condition.function == "OR":
        return _any(parts)
    if condition.function == "NOT":
        return 1 - share(parts[0])
    if condition.function == "IN":
        return min(_EQUAL * (len(parts) - 1), 1.0)
    return _SHARES.get(condition.function, _ELSE)


def _any(parts: tuple[e.Expr, ...]) -> float:
    """The share of rows that meet an alternative. Equalities of one column with constants exclude each
    other."""
    if len(columns := {_compared(x) for x in parts}) == 1 and None not in columns:
        return min(_EQUAL * len(parts), 1.0)
    combined = 0.0
    for part in parts:
        one = share(part)
        combined = combined + one - combined * one
    return combined


def _compared(expr: e.Expr) -> int | None:
    if not isinstance(expr, e.Call) or expr.function != "=":
        return None
    left, right = expr.args
    return left.index if isinstance(left, e.InputRef) and isinstance(right, e.Literal) else None
