"""Flink's view of a batch plan: operators by Flink's names, and the Steps between them.

HashAggregate(isMerge=[true], groupBy=[k], select=[k, Final_COUNT(count1$0) AS n])
+- Exchange(distribution=[hash[k]])                        -- a Step
   +- LocalHashAggregate(groupBy=[k], select=[k, Partial_COUNT(*) AS count1$0])  -- a Step
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch

from tidemill.config.option import Configuration
from tidemill.physical.batch import nodes as b
from tidemill.physical.batch.view.aggregates import aggregate_view
from tidemill.physical.batch.view.attributes import limit_attributes, rank_attributes
from tidemill.physical.batch.view.joins import join_view
from tidemill.physical.batch.view.nodes import Seen, Traits
from tidemill.physical.batch.view.steps import WITHIN, ascending, exchange, sort, step
from tidemill.physical.finish import references
from tidemill.plan.once import once_per_node


def flink_view(plan: b.BatchNode, config: Configuration) -> b.BatchNode:
    @once_per_node
    def view(node: b.BatchNode) -> Seen:
        inputs = tuple(map(view, node.inputs))
        if isinstance(node, b.Aggregate):
            return aggregate_view(node, inputs[0], config)
        return _seen(node, *inputs)

    return view(plan).node


@singledispatch
def _seen(node: b.BatchNode, *inputs: Seen) -> Seen:
    """``node`` over the view of its inputs."""
    raise NotImplementedError(type(node).__name__)


@_seen.register
def _(node: b.TableSourceScan) -> Seen:
    sized = dict(node.options).get("connector") == "filesystem"
    return Seen(node, Traits(sized=sized, reduced=bool(node.filters)))


@_seen.register
def _(node: b.DataFrameScan) -> Seen:
    return Seen(node, Traits())


@_seen.register
def _(node: b.Values) -> Seen:
    return Seen(node, Traits(sized=True))


@_seen.register
def _(node: b.Calc, below: Seen) -> Seen:
    refs = references(node.input.fields)
    places = {x.index: i for i, x in enumerate(node.projections) if x in refs}
    kept = all(k in places for k in below.traits.partitioned)
    traits = replace(
        below.traits,
        partitioned=tuple(places[k] for k in below.traits.partitioned) if kept else (),
        reduced=below.traits.reduced or node.condition is not None,
    )
    return Seen(replace(node, input=below.node), traits)


@_seen.register(b.Expand)
@_seen.register(b.Unnest)
@_seen.register(b.TableFunction)
@_seen.register(b.LookupJoin)
def _(node: b.Expand | b.Unnest | b.TableFunction | b.LookupJoin, below: Seen) -> Seen:
    return Seen(replace(node, input=below.node), replace(below.traits, partitioned=()))


@_seen.register
def _(node: b.WindowTableFunction, below: Seen) -> Seen:
    return Seen(replace(node, input=below.node), Traits())


@_seen.register
def _(node: b.Match, below: Seen) -> Seen:
    return Seen(replace(node, input=below.node), Traits(reduced=True))


@_seen.register
def _(node: b.Sink, below: Seen) -> Seen:
    return Seen(replace(node, input=below.node), below.traits)


@_seen.register
def _(node: b.Sort, below: Seen) -> Seen:
    return Seen(replace(node, input=exchange(below, ()).node), below.traits)


@_seen.register
def _(node: b.Limit, below: Seen) -> Seen:
    """The local phase takes the skipped rows along."""
    taken = None if node.fetch is None else node.fetch + node.offset
    shown = limit_attributes(node.order, below.fields, 0, taken, first=True)
    moved = exchange(step(below, node.name, WITHIN, shown), ())
    return Seen(replace(node, input=moved.node), moved.traits)


@_seen.register
def _(node: b.Rank, below: Seen) -> Seen:
    """Cut before the exchange, too."""
    order = (*ascending(node.call.partition), *node.call.order)
    shown = rank_attributes(node.call, 1, node.end, below.fields, below.fields, first=True)
    local = step(sort(below, order), "Rank", WITHIN, shown)
    ready = sort(exchange(local, node.call.partition), order)
    return Seen(replace(node, input=ready.node), ready.traits)


@_seen.register
def _(node: b.OverAggregate, below: Seen) -> Seen:
    first = node.calls[0]
    order = (*ascending(first.partition), *first.order)
    moved = exchange(below, first.partition)
    ready = sort(moved, order) if order else moved
    return Seen(replace(node, input=ready.node), ready.traits)


@_seen.register
def _(node: b.Join, left: Seen, right: Seen) -> Seen:
    return join_view(node, left, right)


@_seen.register
def _(node: b.TemporalJoin, left: Seen, right: Seen) -> Seen:
    return Seen(replace(node, left=left.node, right=right.node), Traits())


@_seen.register
def _(node: b.CountedSets, left: Seen, right: Seen) -> Seen:
    return Seen(replace(node, left=left.node, right=right.node), Traits(reduced=True))


@_seen.register
def _(node: b.Union, *branches: Seen) -> Seen:
    sized = all(branch.traits.sized for branch in branches)
    traits = Traits(sized=sized, reduced=branches[0].traits.reduced)
    return Seen(replace(node, branches=tuple(branch.node for branch in branches)), traits)
