"""JSON_OBJECT and JSON_ARRAY take columns that a query below made with them as JSON, not as text to quote.

    before: SELECT JSON_OBJECT('a' VALUE y) FROM (SELECT JSON_ARRAY(x) AS y FROM t)     {"a":"[1]"}
    after:  SELECT JSON_OBJECT('a' VALUE RAW y) FROM (...)                              {"a":[1]}

As in Flink, which has merged the queries by then: through projections, filters, ORDER BY and UNION ALL, also
below JSON_OBJECTAGG and JSON_ARRAYAGG. Above a join or an aggregation such a column is text.
"""

from __future__ import annotations

from dataclasses import replace

from tidemill.plan.expressions import AggregateCall, Call, Expr, InputRef
from tidemill.plan.nodes import Aggregate, Filter, LogicalNode, Project, SetKind, SetOp, Sort
from tidemill.plan.rewrite import map_expr, map_node_expressions

_MAKERS = ("JSON_OBJECT", "JSON_ARRAY", "JSON")
"""The functions whose text the functions around them take as JSON."""
_AGGREGATES = ("JSON_OBJECTAGG", "JSON_ARRAYAGG")


def nest_json(node: LogicalNode) -> LogicalNode | None:
    if isinstance(node, Aggregate):
        calls = tuple(_aggregate(call, node.input) for call in node.calls)
        return None if calls == node.calls else replace(node, calls=calls)
    if not isinstance(node, Project | Filter):
        return None
    below = node.input
    nested = map_node_expressions(node, lambda x: map_expr(x, lambda part: _call(part, below)))
    return None if nested is node else nested


def raw(args: tuple[Expr, ...], below: LogicalNode | None = None) -> tuple[tuple[str, str], ...]:
    """The option RAW of a call with ``args``; none if no argument is JSON. ``below``: has their columns."""
    indexes = ",".join(str(i) for i, x in enumerate(args) if _makes_json(x, below))
    return (("RAW", indexes),) if indexes else ()


def _call(expr: Expr, below: LogicalNode) -> Expr:
    if not isinstance(expr, Call) or expr.function not in _MAKERS:
        return expr
    others = tuple(option for option in expr.options if option[0] != "RAW")
    options = (*others, *raw(expr.args, below))
    return expr if options == expr.options else replace(expr, options=options)


def _aggregate(call: AggregateCall, below: LogicalNode) -> AggregateCall:
    if call.function not in _AGGREGATES or ("RAW", "TRUE") in call.options:
        return call
    index = call.args[-1]
    if not _makes_json(InputRef(type=below.fields[index].type, index=index), below):
        return call
    return replace(call, options=(*call.options, ("RAW", "TRUE")))


def _makes_json(expr: Expr, below: LogicalNode | None) -> bool:
    """Whether ``expr`` is JSON, or a column that was made as JSON."""
    while isinstance(expr, InputRef) and isinstance(below, Project | Filter | Sort):
        expr = below.expressions[expr.index] if isinstance(below, Project) else expr
        below = below.input
    if isinstance(expr, InputRef) and isinstance(below, SetOp) and below.kind is SetKind.UNION and below.all:
        return all(_makes_json(expr, branch) for branch in below.branches)
    return isinstance(expr, Call) and expr.function in _MAKERS
