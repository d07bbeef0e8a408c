"""JSON_OBJECT and JSON_ARRAY take columns that a query below made with them as JSON, not as text to quote.

    before: SELECT JSON_OBJECT('a' VALUE y) FROM (SELECT JSON_ARRAY(x) AS y FROM t)     {"a":"[1]"}
    after:  SELECT JSON_OBJECT('a' VALUE RAW y) FROM (...)                              {"a":[1]}

As in Flink, which has merged the queries by then: only through projections and filters, also below
JSON_OBJECTAGG and JSON_ARRAYAGG. Above a join or an aggregation such a column is text.
"""

from __future__ import annotations

from dataclasses import replace

from tidemill.plan.expressions import AggregateCall, Call, Expr, InputRef
from tidemill.plan.nodes import Aggregate, Filter, LogicalNode, Project
from tidemill.plan.rewrite import map_expr, map_node_expressions

MAKERS = ("JSON_OBJECT", "JSON_ARRAY", "JSON")
"""The functions whose text the functions around them take as JSON."""
_AGGREGATES = ("JSON_OBJECTAGG", "JSON_ARRAYAGG")


def makes_json(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.function in MAKERS


def nest_json(node: LogicalNode) -> LogicalNode | None:
    if isinstance(node, Aggregate):
        calls = tuple(_aggregate(call, node.input) for call in node.calls)
        return None if calls == node.calls else replace(node, calls=calls)
    if not isinstance(node, Project | Filter):
        return None
    below = node.input
    nested = map_node_expressions(node, lambda x: map_expr(x, lambda part: _call(part, below)))
    return None if nested is node else nested


def raw(args: tuple[Expr, ...]) -> tuple[tuple[str, str], ...]:
    """The option RAW of a call with ``args``; none if no argument is JSON."""
    indexes = ",".join(str(i) for i, x in enumerate(args) if makes_json(x))
    return (("RAW", indexes),) if indexes else ()


def _call(expr: Expr, below: LogicalNode) -> Expr:
    if not isinstance(expr, Call) or expr.function not in MAKERS:
        return expr
    others = tuple(option for option in expr.options if option[0] != "RAW")
    options = (*others, *raw(tuple(_origin(x, below) for x in expr.args)))
    return expr if options == expr.options else replace(expr, options=options)


def _aggregate(call: AggregateCall, below: LogicalNode) -> AggregateCall:
    if call.function not in _AGGREGATES or ("RAW", "TRUE") in call.options:
        return call
    index = call.args[-1]
    value = _origin(InputRef(type=below.fields[index].type, index=index), below)
    return replace(call, options=(*call.options, ("RAW", "TRUE"))) if makes_json(value) else call


def _origin(expr: Expr, below: LogicalNode) -> Expr:
    """The expression that made a column, through projections and filters."""
    while isinstance(expr, InputRef) and isinstance(below, Project | Filter):
        expr = below.expressions[expr.index] if isinstance(below, Project) else expr
        below = below.input
    return expr
