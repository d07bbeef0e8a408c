"""Translates the conditions over a scan into ``connectors.filters``, so that a source can skip data.

Only types that Python compares as SQL does are translated: whole numbers, text, dates, booleans. Other
conditions are left out of an AND, and make a whole OR untranslatable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tidemill.connectors.filters import COMPARED, AllOf, AnyOf, ColumnFilter, Comparison, Nullness
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Call, Expr, InputRef, Literal
from tidemill.plan.predicates import conjuncts
from tidemill.types import logical as t

_SWAPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_FAMILIES: tuple[tuple[type[t.LogicalType], ...], ...] = (
    (t.TinyIntType, t.SmallIntType, t.IntType, t.BigIntType),
    (t.VarCharType, t.CharType),
    (t.DateType,),
    (t.BooleanType,),
)


def column_filters(conditions: Sequence[Expr], columns: Sequence[str]) -> tuple[ColumnFilter, ...]:
    """The filters for those of ``conditions`` that can be translated; ``columns``: names by field index."""
    filters = (_filter(condition, columns) for condition in conditions)
    return tuple(f for f in filters if f is not None)


def whole_filters(conditions: Sequence[Expr], columns: Sequence[str]) -> tuple[ColumnFilter, ...] | None:
    """The filters that are equivalent to ``conditions``; None if a condition cannot be translated."""
    complete = all(_is_complete(condition, columns) for condition in conditions)
    return column_filters(conditions, columns) if complete else None


def scan_filters(plan: n.LogicalNode) -> tuple[ColumnFilter, ...] | None:
    """The filters by which an optimized plan chooses among the rows of the one table that it reads; None if
    they cannot be translated, or it does anything else."""
    conditions: list[Expr] = []
    while isinstance(plan, n.Project):
        plan = plan.input
    while isinstance(plan, n.Filter):
        conditions += conjuncts(plan.condition)
        plan = plan.input
    return whole_filters(conditions, plan.columns) if isinstance(plan, n.Scan) else None


def _is_complete(condition: Expr, columns: Sequence[str]) -> bool:
    if isinstance(condition, Call) and condition.function in ("AND", "OR"):
        return all(_is_complete(part, columns) for part in condition.args)
    column_filter = _filter(condition, columns)
    between = isinstance(condition, Call) and condition.function == "BETWEEN"
    return column_filter is not None and (not between or len(getattr(column_filter, "parts", ())) == 2)


def _filter(condition: Expr, columns: Sequence[str]) -> ColumnFilter | None:
    if not isinstance(condition, Call):
        return None
    if condition.function in COMPARED:
        left, right = condition.args
        return _comparison(condition.function, left, right, columns)
    convert = _OF_CALLS.get(condition.function)
    return None if convert is None else convert(condition, columns)


def _comparison(name: str, left: Expr, right: Expr, columns: Sequence[str]) -> Comparison | None:
    if isinstance(left, Literal):
        name, left, right = _SWAPPED[name], right, left
    if not isinstance(left, InputRef) or not isinstance(right, Literal) or right.value is None:
        return None
    if isinstance(left.type, t.CharType) or not _are_alike(left.type, right.type):
        return None
    return Comparison(columns[left.index], name, right.value)


def _are_alike(a: t.LogicalType, b: t.LogicalType) -> bool:
    return any(isinstance(a, family) and isinstance(b, family) for family in _FAMILIES)


def _all_of(call: Call, columns: Sequence[str]) -> ColumnFilter | None:
    parts = column_filters(call.args, columns)
    return AllOf(parts) if parts else None


def _any_of(call: Call, columns: Sequence[str]) -> ColumnFilter | None:
    parts = column_filters(call.args, columns)
    return AnyOf(parts) if len(parts) == len(call.args) else None


def _one_of(call: Call, columns: Sequence[str]) -> ColumnFilter | None:
    value, *listed = call.args
    parts = [_comparison("=", value, x, columns) for x in listed]
    comparisons = tuple(p for p in parts if p is not None)
    return AnyOf(comparisons) if len(comparisons) == len(parts) else None


def _between(call: Call, columns: Sequence[str]) -> ColumnFilter | None:
    if dict(call.options).get("symmetric", "").upper() in ("TRUE", "SYMMETRIC"):
        return None
    value, low, high = call.args
    parts = (_comparison(">=", value, low, columns), _comparison("<=", value, high, columns))
    comparisons = tuple(p for p in parts if p is not None)
    return AllOf(comparisons) if comparisons else None


def _nullness(call: Call, columns: Sequence[str]) -> ColumnFilter | None:
    (value,) = call.args
    if not isinstance(value, InputRef):
        return None
    return Nullness(columns[value.index], call.function == "IS NULL")


_OF_CALLS: dict[str, Callable[[Call, Sequence[str]], ColumnFilter | None]] = {
    "AND": _all_of,
    "OR": _any_of,
    "IN": _one_of,
    "BETWEEN": _between,
    "IS NULL": _nullness,
    "IS NOT NULL": _nullness,
}
