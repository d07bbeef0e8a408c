"""Remove nodes that cannot give a row: LIMIT 0, and nodes over inputs without rows.

    before: SELECT * FROM t JOIN (SELECT * FROM u WHERE FALSE) AS e ON t.k = e.k
    after:  an empty Values

A global aggregate over no rows is one row. For COUNT, SUM, MIN and MAX the rule writes the row with Flink's
values, because a streaming aggregate without input would give no row at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidemill.operators.aggregates.registry import declarations
from tidemill.plan.expressions import AggregateCall, Literal
from tidemill.plan.nodes import (
    Aggregate,
    Expand,
    Filter,
    Join,
    JoinKind,
    LogicalNode,
    Over,
    Project,
    SetKind,
    SetOp,
    Sort,
    TableFunction,
    Unnest,
    Values,
)

_FOLDED = frozenset(("COUNT", "SUM", "MIN", "MAX"))
"""Aggregates whose value over no rows Flink puts into the plan."""
_BARREN = (Project, Filter, Expand, Over, Sort, Unnest, TableFunction)
_NEEDS_LEFT = (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)
_NEEDS_RIGHT = (JoinKind.INNER, JoinKind.RIGHT, JoinKind.SEMI)


def empty_inputs(node: LogicalNode) -> LogicalNode | None:
    rule = _RULES.get(type(node))
    return None if rule is None else rule(node)


def _is_empty(node: LogicalNode) -> bool:
    return isinstance(node, Values) and not node.rows


def _nothing(node: LogicalNode) -> Values:
    return Values(fields=node.fields, rows=())


def _if_input_empty(node: LogicalNode) -> LogicalNode | None:
    return _nothing(node) if _is_empty(node.inputs[0]) else None


def _sort(node: Sort) -> LogicalNode | None:
    return _nothing(node) if node.fetch == 0 else _if_input_empty(node)


def _aggregate(node: Aggregate) -> LogicalNode | None:
    if node.keys or not _is_empty(node.input):
        return _if_input_empty(node) if node.keys else None
    if not all(call.function in _FOLDED for call in node.calls):
        return None
    return Values(fields=node.fields, rows=(tuple(map(_value_over_no_rows, node.calls)),))


def _value_over_no_rows(call: AggregateCall) -> Literal:
    return Literal(type=call.type, value=declarations()[call.function].over_no_rows)


def _join(node: Join) -> LogicalNode | None:
    left, right = _is_empty(node.left), _is_empty(node.right)
    gone = (left and (right or node.kind in _NEEDS_LEFT)) or (right and node.kind in _NEEDS_RIGHT)
    return _nothing(node) if gone else None


def _set(node: SetOp) -> LogicalNode | None:
    empty = [_is_empty(branch) for branch in node.branches]
    gone = {SetKind.UNION: all(empty), SetKind.INTERSECT: any(empty), SetKind.EXCEPT: empty[0]}
    return _nothing(node) if gone[node.kind] else None


_RULES: dict[type[LogicalNode], Callable[[Any], LogicalNode | None]] = {
    **dict.fromkeys(_BARREN, _if_input_empty),
    Sort: _sort,
    Aggregate: _aggregate,
    Join: _join,
    SetOp: _set,
}
