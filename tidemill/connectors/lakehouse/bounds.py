"""Which files may hold rows for which a condition holds, by the smallest and largest values in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidemill.connectors.filters import AllOf, AnyOf, ColumnFilter, Comparison, Nullness


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of a column's values in a file: none lies outside ``low`` and ``high``, which are None where nothing is
    known. ``nulls``: how many are NULL, None where that is not known."""

    low: Any
    high: Any
    nulls: int | None

    @classmethod
    def constant(cls, value: Any, rows: int) -> Bounds:
        return cls(value, value, rows if value is None else 0)


def may_be_in(condition: ColumnFilter, bounds: Mapping[str, Bounds], rows: int) -> bool:
    """False where ``condition`` holds for none of the ``rows`` of a file with these bounds."""
    match condition:
        case AllOf(parts):
            return all(may_be_in(part, bounds, rows) for part in parts)
        case AnyOf(parts):
            return any(may_be_in(part, bounds, rows) for part in parts)
        case Comparison(column, _, _) | Nullness(column, _) if column not in bounds:
            return True
        case Nullness(column, is_null):
            nulls = bounds[column].nulls
            return nulls is None or (nulls > 0 if is_null else nulls < rows)
        case Comparison(column, name, value):
            return _may_compare(bounds[column], name, value, rows)


def _may_compare(known: Bounds, name: str, value: Any, rows: int) -> bool:
    if known.nulls == rows and rows:
        return False
    low, high = known.low, known.high
    if name == "<>":
        return low is None or high is None or not low == high == value
    over = low is not None and (low > value or (low == value and name == "<"))
    under = high is not None and (high < value or (high == value and name == ">"))
    return not (over and name in ("=", "<", "<=")) and not (under and name in ("=", ">", ">="))
