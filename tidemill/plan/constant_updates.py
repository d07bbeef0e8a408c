"""Translates an UPDATE that sets columns to constants, so that a table's own system can run it."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.catalog.table import Column
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Cast, Expr, InputRef, Literal
from tidemill.types import logical as t

_BITS: dict[type[t.LogicalType], int] = {
    t.TinyIntType: 8,
    t.SmallIntType: 16,
    t.IntType: 32,
    t.BigIntType: 64,
}
_NONE = object()


def assigned_constants(plan: n.LogicalNode, columns: Sequence[Column]) -> dict[str, object] | None:
    """By column, from an optimized plan of the new rows of a table with ``columns``: of (a, b) ``SELECT 5, b
    FROM t WHERE ...`` is {"a": 5}. None if a column gets anything but a whole number, text, date, boolean or
    NULL that its type holds as it is."""
    scan = plan.input if isinstance(plan, n.Project) else plan
    while isinstance(scan, n.Filter):
        scan = scan.input
    if not isinstance(scan, n.Scan):
        return None
    if not isinstance(plan, n.Project):
        return {}  # each column is set to itself
    found: dict[str, object] = {}
    for column, value in zip(columns, plan.expressions, strict=True):
        if isinstance(value, InputRef) and scan.columns[value.index] == column.name:
            continue
        constant = _constant(value, column.type)
        if constant is _NONE:
            return None
        found[column.name] = constant
    return found


def _constant(value: Expr, kind: t.LogicalType) -> object:
    """``_NONE`` for another expression."""
    literal = value.operand if isinstance(value, Cast) and value.implicit else value
    if not isinstance(literal, Literal):
        return _NONE
    given = literal.value
    return given if given is None or _holds(kind, literal.type, given) else _NONE


def _holds(kind: t.LogicalType, given: t.LogicalType, value: object) -> bool:
    if isinstance(value, int) and type(kind) in _BITS and type(given) in _BITS:
        half = 2 ** (_BITS[type(kind)] - 1)
        return value in range(-half, half)
    if isinstance(value, str) and isinstance(kind, t.VarCharType):
        return isinstance(given, t.CharType | t.VarCharType) and len(value) <= kind.length
    return type(given) is type(kind) and isinstance(kind, t.DateType | t.BooleanType)
