"""The direction of updates: whether they only raise or only lower a column's value.

A Top-N over such updates never loses a row that it shows to a row that it has dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import singledispatch

from tidemill.physical import nodes as p
from tidemill.plan.expressions import SortKey


class Moves(Enum):
    NOT = "constant"
    UP = "increasing"
    DOWN = "decreasing"
    ANYHOW = "not monotonic"


@dataclass(frozen=True, slots=True)
class FirstRows:
    """An operator that emits the first rows of each ``partition`` in this ``order``. ``keyed``: the operator
    if its updates only improve rows and are known by an upsert key."""

    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    keyed: Callable[[tuple[int, ...]], p.PhysicalNode]


@singledispatch
def first_rows(node: p.PhysicalNode) -> FirstRows | None:
    """The first rows that ``node`` emits. By default it emits others."""
    return None


@singledispatch
def directions(node: p.PhysicalNode) -> tuple[Moves, ...]:
    """One entry per field. By default nothing is known."""
    return (Moves.ANYHOW,) * len(node.fields)


def directions_below(node: p.Unary) -> tuple[Moves, ...]:
    """The answer of a node that passes on its input's columns."""
    return directions(node.input)


@singledispatch
def never_negative(node: p.PhysicalNode, column: int) -> bool:
    """Whether a filter below rejects negative values of ``column``. By default none does."""
    return False
