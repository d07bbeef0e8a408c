"""Flink's view of a batch plan: operators with Flink's names, and the Steps between them.

HashAggregate(isMerge=[true], groupBy=[k], select=[k, Final_COUNT(count1$0) AS n])
+- Exchange(distribution=[hash[k]])                        -- a Step
   +- LocalHashAggregate(groupBy=[k], select=[k, Partial_COUNT(*) AS count1$0])  -- a Step
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch

from tidemill.config.option import Configuration
from tidemill.physical import nodes as p
from tidemill.physical.batch import nodes as b
from tidemill.physical.batch.view.aggregates import aggregate_view
from tidemill.physical.batch.view.attributes import limit_attributes, rank_attributes
from tidemill.physical.batch.view.joins import join_view
from tidemill.physical.batch.view.nodes import Traits, ViewNode
from tidemill.physical.batch.view.steps import WITHIN, ascending, exchange, sort, step
from tidemill.physical.explain.attributes import node_name
from tidemill.physical.finish import references
from tidemill.plan.once import once_per_node


def flink_view(plan: p.PhysicalNode, config: Configuration) -> p.PhysicalNode:
    @once_per_node
    def view(node: p.PhysicalNode) -> ViewNode:
        inputs = tuple(map(view, node.inputs))
        if isinstance(node, b.Aggregate):
            return aggregate_view(node, inputs[0], config)
        return _viewed(node, *inputs)

    return view(plan).node


@singledispatch
def _viewed(node: p.PhysicalNode, *inputs: ViewNode) -> ViewNode:
    """``node`` over the view of its inputs."""
    raise NotImplementedError(type(node).__name__)


@_viewed.register
def _(node: b.TableSourceScan) -> ViewNode:
    sized = dict(node.options).get("connector") == "filesystem"
    return ViewNode(node, Traits(sized=sized, reduced=bool(node.filters)))


@_viewed.register
def _(node: p.DataFrameScan) -> ViewNode:
    return ViewNode(node, Traits())


@_viewed.register
def _(node: p.Values) -> ViewNode:
    return ViewNode(node, Traits(sized=True))


@_viewed.register
def _(node: p.Calc, below: ViewNode) -> ViewNode:
    refs = references(node.input.fields)
    projected_index = {x.index: i for i, x in enumerate(node.projections) if x in refs}
    keeps_partitioning = all(k in projected_index for k in below.traits.partitioned)
    traits = replace(
        below.traits,
        partitioned=tuple(projected_index[k] for k in below.traits.partitioned) if keeps_partitioning else (),
        reduced=below.traits.reduced or node.condition is not None,
    )
    return ViewNode(replace(node, input=below.node), traits)


@_viewed.register(p.Expand)
@_viewed.register(b.Unnest)
@_viewed.register(b.TableFunction)
@_viewed.register(b.LookupJoin)
def _(node: p.Expand | b.Unnest | b.TableFunction | b.LookupJoin, below: ViewNode) -> ViewNode:
    return ViewNode(replace(node, input=below.node), replace(below.traits, partitioned=()))


@_viewed.register
def _(node: b.WindowTableFunction, below: ViewNode) -> ViewNode:
    return ViewNode(replace(node, input=below.node), Traits())


@_viewed.register
def _(node: p.Match, below: ViewNode) -> ViewNode:
    return ViewNode(replace(node, input=below.node), Traits(reduced=True))


@_viewed.register
def _(node: b.Sink, below: ViewNode) -> ViewNode:
    return ViewNode(replace(node, input=below.node), below.traits)


@_viewed.register
def _(node: p.Sort, below: ViewNode) -> ViewNode:
    return ViewNode(replace(node, input=exchange(below, ()).node), below.traits)


@_viewed.register
def _(node: p.SortLimit, below: ViewNode) -> ViewNode:
    """The local phase also passes on the rows that OFFSET skips."""
    limit = None if node.fetch is None else node.fetch + node.offset
    local_attributes = limit_attributes(node.order, below.fields, 0, limit, first=True)
    moved = exchange(step(below, node_name(node), WITHIN, local_attributes), ())
    return ViewNode(replace(node, input=moved.node), moved.traits)


@_viewed.register
def _(node: b.Rank, below: ViewNode) -> ViewNode:
    """A local Rank also limits the rows before the exchange."""
    order = (*ascending(node.call.partition), *node.call.order)
    local_attributes = rank_attributes(node.call, 1, node.end, below.fields, below.fields, first=True)
    local = step(sort(below, order), "Rank", WITHIN, local_attributes)
    ready = sort(exchange(local, node.call.partition), order)
    return ViewNode(replace(node, input=ready.node), ready.traits)


@_viewed.register
def _(node: b.OverAggregate, below: ViewNode) -> ViewNode:
    first = node.calls[0]
    order = (*ascending(first.partition), *first.order)
    moved = exchange(below, first.partition)
    ready = sort(moved, order) if order else moved
    return ViewNode(replace(node, input=ready.node), ready.traits)


@_viewed.register
def _(node: b.Join, left: ViewNode, right: ViewNode) -> ViewNode:
    return join_view(node, left, right)


@_viewed.register
def _(node: b.TemporalJoin, left: ViewNode, right: ViewNode) -> ViewNode:
    return ViewNode(replace(node, left=left.node, right=right.node), Traits())


@_viewed.register
def _(node: b.CountedSets, left: ViewNode, right: ViewNode) -> ViewNode:
    return ViewNode(replace(node, left=left.node, right=right.node), Traits(reduced=True))


@_viewed.register
def _(node: p.Union, *branches: ViewNode) -> ViewNode:
    sized = all(branch.traits.sized for branch in branches)
    traits = Traits(sized=sized, reduced=branches[0].traits.reduced)
    return ViewNode(replace(node, branches=tuple(branch.node for branch in branches)), traits)
