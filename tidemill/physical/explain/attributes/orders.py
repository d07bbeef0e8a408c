"""Attributes of nodes with an order: Top-N, deduplication, sorts, OVER, patterns."""

from __future__ import annotations

from tidemill.physical import nodes as p
from tidemill.physical.explain.attributes.dispatch import attributes
from tidemill.physical.explain.attributes.names import Attributes, bracket, names
from tidemill.physical.explain.attributes.windows import attached, emit_attributes
from tidemill.physical.explain.patterns import pattern_attributes
from tidemill.physical.explain.printer import Form, Printer, order_text
from tidemill.physical.traits.changelog_mode import insert_only
from tidemill.plan.expressions import OverCall, SortKey


@attributes.register
def _(node: p.Rank, form: Form) -> Attributes:
    printer = Printer.over(node.input.fields)
    if form is Form.INFIX and node.is_deduplicate:
        return [
            ("keep", "[FirstRow]" if node.keeps_first else "[LastRow]"),
            ("key", f"[{printer.columns(node.partition)}]"),
            ("order", f"[{node.time}]"),
            ("outputInsertOnly", f"[{str(node.insert_only).lower()}]"),
        ]
    order = [order_text(k, printer) for k in node.order]
    if node.time == "ROWTIME":
        order[0] = f"ROWTIME {order[0]}"
    return [
        ("strategy", f"[{strategy(node)}]"),
        ("rankType", f"[{node.function}]"),
        ("rankRange", f"[rankStart={node.start}, rankEnd={node.end}]"),
        ("partitionBy", f"[{printer.columns(node.partition)}]"),
        ("orderBy", bracket(order)),
        ("select", f"[{names(node)}]"),
    ]


@attributes.register
def _(node: p.WindowRank, form: Form) -> Attributes:
    printer = Printer.over(node.input.fields)
    window = ("window", f"[{attached(node.attached, node.input)}]")
    if node.is_deduplicate:
        return [
            window,
            ("keep", "[FirstRow]" if node.keeps_first else "[LastRow]"),
            ("partitionKeys", f"[{printer.columns(node.keys)}]"),
            ("orderKey", f"[{printer.column(node.order[0].index)}]"),
            ("order", f"[{node.time}]"),
            *emit_attributes(node.emit),
        ]
    return [
        window,
        *emit_attributes(node.emit),
        ("rankType", f"[{node.function}]"),
        ("rankRange", f"[rankStart={node.start}, rankEnd={node.end}]"),
        ("partitionBy", f"[{printer.columns(node.keys)}]"),
        ("orderBy", _order(node.order, node.input)),
        ("select", f"[{names(node)}]"),
    ]


@attributes.register
def _(node: p.SortLimit, form: Form) -> Attributes:
    fetch = "unlimited" if node.fetch is None else str(node.fetch)
    limits: Attributes = [("offset", f"[{node.offset}]"), ("fetch", f"[{fetch}]")]
    if not node.order:
        return limits
    return [("orderBy", _order(node.order, node)), *limits, ("strategy", f"[{strategy(node)}]")]


def strategy(node: p.Rank | p.SortLimit) -> str:
    if node.upsert_key is not None:
        return f"UpdateFastStrategy[{','.join(map(str, node.upsert_key))}]"
    return "AppendFastStrategy" if insert_only(node.input) else "RetractStrategy"


def _order(order: tuple[SortKey, ...], node: p.PhysicalNode) -> str:
    printer = Printer.over(node.fields)
    return bracket([order_text(k, printer) for k in order])


@attributes.register
def _(node: p.Sort, form: Form) -> Attributes:
    return [("orderBy", _order(node.order, node))]


@attributes.register
def _(node: p.OverAggregate, form: Form) -> Attributes:
    printer = Printer.over(node.input.fields)
    first = node.calls[0]
    order = [order_text(k, printer) for k in first.order]
    selected = [f.name for f in node.input.fields] + [_over_text(c, printer) for c in node.calls]
    partition = [("partitionBy", f"[{printer.columns(first.partition)}]")] if first.partition else []
    ordering = [("orderBy", bracket(order))] if order else []
    return [*partition, *ordering, ("window", f"[ {_frame(first)}]"), ("select", bracket(selected))]


@attributes.register
def _(node: p.Match, form: Form) -> Attributes:
    inputs = node.input.fields
    printer = Printer.over(inputs)
    partition = [("partitionBy", f"[{printer.columns(node.partition)}]")] if node.partition else []
    order = [("orderBy", bracket([order_text(k, printer) for k in node.order]))]
    return [
        *partition,
        *order,
        *pattern_attributes(node.pattern, node.definitions, node.measures, node.fields, inputs),
    ]


def _over_text(call: OverCall, printer: Printer) -> str:
    distinct = "DISTINCT " if call.distinct else ""
    return f"{call.function}({distinct}{printer.columns(call.args) or '*'}) AS {call.name}"


def _frame(call: OverCall) -> str:
    bounds = []
    for bound in (call.lower, call.upper):
        side = "PRECEDING" if bound.preceding else "FOLLOWING"
        if bound.offset == 0:
            bounds.append("CURRENT ROW")
        else:
            bounds.append(f"{'UNBOUNDED' if bound.offset is None else abs(bound.offset)} {side}")
    return f"{'ROWS' if call.rows else 'RANGE'} BETWEEN {bounds[0]} AND {bounds[1]}"
