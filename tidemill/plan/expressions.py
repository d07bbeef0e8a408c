"""Bound expressions: every node has a Flink type, every column is an index into the input's fields.

Functions and operators are one node, ``Call``, whose ``function`` is a canonical name of
``functions.registry`` ("+", "AND", "CASE", "UPPER"). A NOT NULL type is a promise the binder proved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tidemill.types.logical import LogicalType
from tidemill.user_functions.aggregates import BoundAggregate
from tidemill.user_functions.calls import BoundScalar


@dataclass(frozen=True, slots=True, kw_only=True)
class Expr:
    type: LogicalType

    @property
    def children(self) -> tuple[Expr, ...]:
        return ()

    def walk(self) -> Iterator[Expr]:
        """This expression and all below it, parents first, but not the plans of subqueries."""
        stack: list[Expr] = [self]
        while stack:
            expr = stack.pop()
            yield expr
            stack.extend(reversed(expr.children))


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRef(Expr):
    """Column ``index`` of the node's input (for a join condition: of left fields + right fields)."""

    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OuterRef(Expr):
    """Column ``index`` of the query ``level`` levels out (1 = the directly enclosing one)."""

    level: int
    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal(Expr):
    """A constant. ``value`` by type: bool, int, float, Decimal, str, bytes, datetime.date,
    int milliseconds (TIME, day-time interval), int months (year-month interval), naive
    datetime.datetime (TIMESTAMP), aware datetime.datetime in UTC (TIMESTAMP_LTZ), None."""

    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Expr):
    """A function or operator. ``options`` are its keyword-like parts in a fixed order, as strings:
    the unit of EXTRACT/FLOOR/TIMESTAMPDIFF, JSON ON EMPTY/ON ERROR behaviours, TRIM's mode."""

    function: str
    args: tuple[Expr, ...]
    options: tuple[tuple[str, str], ...] = ()

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args


@dataclass(frozen=True, slots=True, kw_only=True)
class UserCall(Expr):
    """A user's scalar function. Once a plan is optimised it stands alone as a column of a Project, over
    arguments without user functions (see ``rules.isolate_user_calls``), or in a join's condition."""

    function: BoundScalar
    args: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast(Expr):
    """CAST(operand AS type). ``safe``: TRY_CAST. ``implicit``: added by the binder."""

    operand: Expr
    safe: bool = False
    implicit: bool = False

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.operand,)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldAccess(Expr):
    """Field ``index`` of a ROW value."""

    operand: Expr
    index: int

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.operand,)


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateCall:
    """One aggregate of an Aggregate node: arguments and filter are field indexes of its input.

    ``options`` as in Call (JSON ON NULL, LISTAGG separator as text). ``type`` is Flink's result type.
    """

    function: str
    args: tuple[int, ...]
    type: LogicalType
    name: str
    distinct: bool = False
    filter: int | None = None
    options: tuple[tuple[str, str], ...] = ()
    user: BoundAggregate | None = None
    """A user's function; ``function`` is then its name, which no built-in has."""
    item: str = field(default="", compare=False)
    """The name of the SELECT item that the call is a part of; '' for none, as in HAVING."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SortKey:
    """Field ``index`` of the input; ``nulls_first`` is resolved (Flink: NULL is lowest)."""

    index: int
    ascending: bool = True
    nulls_first: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameBound:
    """A bound of an OVER frame: ``offset`` None is UNBOUNDED, 0 CURRENT ROW, negative PRECEDING."""

    offset: int | None
    preceding: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OverCall:
    """One function over a window: arguments, partition and order are field indexes of the input."""

    function: str
    args: tuple[int, ...]
    type: LogicalType
    name: str
    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    rows: bool = False
    lower: FrameBound = FrameBound(offset=None, preceding=True)
    upper: FrameBound = FrameBound(offset=0, preceding=False)
    distinct: bool = False
    options: tuple[tuple[str, str], ...] = ()
