"""The event-time columns of a plan. In streaming mode their type tells them. In batch mode they are traced to
the watermark that their table declares."""

from __future__ import annotations

from functools import singledispatch

from tidemill.catalog.table import CatalogTable
from tidemill.operators.aggregates.registry import declared
from tidemill.plan import nodes as n
from tidemill.plan.expressions import AggregateCall, InputRef


def event_times(node: n.LogicalNode) -> frozenset[int]:
    """The indexes of the event-time fields of ``node``."""
    typed = frozenset(i for i, f in enumerate(node.fields) if f.type.time_attribute == "ROWTIME")
    return typed or _traced(node)


def version_times(node: n.LogicalNode) -> frozenset[int]:
    """As ``event_times``, and for a versioned table also the last or first event time of a group."""
    return event_times(node) or _carried(node)


@singledispatch
def _carried(node: n.LogicalNode) -> frozenset[int]:
    return event_times(node)


@_carried.register(n.Filter)
@_carried.register(n.Over)
def _(node: n.Filter | n.Over) -> frozenset[int]:
    return _carried(node.input)


@_carried.register
def _(node: n.Project) -> frozenset[int]:
    below = _carried(node.input)
    places = (i for i, x in enumerate(node.expressions) if isinstance(x, InputRef) and x.index in below)
    return event_times(node) | frozenset(places)


@_carried.register
def _(node: n.Aggregate) -> frozenset[int]:
    below, width = version_times(node.input), len(node.keys)
    keys = {i for i, key in enumerate(node.keys) if key in below}
    calls = {width + i for i, c in enumerate(node.calls) if _gives_row_value(c) and c.args[0] in below}
    return frozenset(keys | calls)


def _gives_row_value(call: AggregateCall) -> bool:
    aggregate = declared(call.function)
    return aggregate is not None and aggregate.gives_row_value


@singledispatch
def _traced(node: n.LogicalNode) -> frozenset[int]:
    return frozenset()


@_traced.register(n.Filter)
@_traced.register(n.Over)
@_traced.register(n.WindowTableFunction)
def _(node: n.Filter | n.Over | n.WindowTableFunction) -> frozenset[int]:
    return _traced(node.input)


@_traced.register
def _(node: n.Scan) -> frozenset[int]:
    return frozenset(i for i, name in enumerate(node.columns) if name == _declared(node.table))


@_traced.register
def _(node: n.Project) -> frozenset[int]:
    below = _traced(node.input)
    found = {i for i, x in enumerate(node.expressions) if isinstance(x, InputRef) and x.index in below}
    if isinstance(node.input, n.Scan):
        # A computed column of the table, as long as its Project stands right above the Scan.
        name = _declared(node.input.table)
        found |= {i for i, f in enumerate(node.fields) if f.name == name}
    return frozenset(found)


@_traced.register(n.Join)
@_traced.register(n.TemporalJoin)
def _(node: n.Join | n.TemporalJoin) -> frozenset[int]:
    width = len(node.left.fields)
    right = {i + width for i in _traced(node.right)}
    return frozenset(i for i in _traced(node.left) | right if i < len(node.fields))


def _declared(table: CatalogTable) -> str:
    return table.watermark.column if table.watermark else ""
