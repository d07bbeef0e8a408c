"""Filters on a table's columns that a source may push down.

It is a small language of its own, so that connectors do not depend on plans. A filter may be weaker than the
query's condition, never stronger: a source may skip rows that fail the filter, and the query filters the
others again. Values are Python's: int, str, bool, datetime.date, None for NULL. A comparison with NULL fails.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """``column`` compared with a value that is not NULL by one of ``COMPARED``."""

    column: str
    operator: str
    value: object


@dataclass(frozen=True, slots=True)
class Nullness:
    """IS NULL, or IS NOT NULL."""

    column: str
    is_null: bool


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple[ColumnFilter, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple[ColumnFilter, ...]


ColumnFilter = Comparison | Nullness | AllOf | AnyOf


def may_hold(condition: ColumnFilter, values: Mapping[str, object]) -> bool:
    """False if no row with these values of some columns passes ``condition``."""
    match condition:
        case AllOf(parts):
            return all(may_hold(part, values) for part in parts)
        case AnyOf(parts):
            return any(may_hold(part, values) for part in parts)
        case Comparison(column, _, _) | Nullness(column, _) if column not in values:
            return True
        case Nullness(column, is_null):
            return (values[column] is None) == is_null
        case Comparison(column, name, value):
            own = values[column]
            return own is not None and COMPARED[name](own, value)


def columns_of(condition: ColumnFilter) -> frozenset[str]:
    if isinstance(condition, Comparison | Nullness):
        return frozenset((condition.column,))
    return frozenset().union(*map(columns_of, condition.parts))
