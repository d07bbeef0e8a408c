"""Bound logical plan -> batch plan. Each node of the batch plan becomes one piece of a Spark frame.

Invariant: the root's fields are the logical root's. Cost: one pass.
"""

from __future__ import annotations

from dataclasses import replace

from tidemill.changelog.rowkind import KIND_COLUMN
from tidemill.config.option import Configuration
from tidemill.physical import nodes as p
from tidemill.physical.batch import nodes as b
from tidemill.physical.batch.conversion import BatchContext, convert, convert_node
from tidemill.physical.batch.joins import JoinRequest, set_operation
from tidemill.physical.batch.ranks import plan_over, plan_rank, plan_sort
from tidemill.physical.batch.sizes import SizeOf, width, with_fields
from tidemill.physical.batch.temporal import plan_temporal_join, versions_of
from tidemill.physical.batch.ties import keeps_last
from tidemill.physical.finish import references
from tidemill.physical.joins.lookup import lookup_of
from tidemill.physical.ranks import lowered, top_n
from tidemill.plan import nodes as n
from tidemill.plan.expressions import AggregateCall
from tidemill.plan.predicates import null_aware_condition
from tidemill.types.logical import Field


def plan_batch(root: n.LogicalNode, config: Configuration, size_of: SizeOf) -> p.PhysicalNode:
    """The plan of a SELECT or an INSERT (a logical Sink at the root)."""
    return convert(root, BatchContext(config=config, size_of=size_of))


@convert_node.register
def _(node: n.WindowTableFunction, context: BatchContext) -> p.PhysicalNode:
    child = convert(node.input, context)
    return b.WindowTableFunction(fields=node.fields, input=child, window=node)


@convert_node.register
def _(node: n.Scan, context: BatchContext) -> p.PhysicalNode:
    top = context.size_of(node)
    whole = width([Field(c.name, c.type) for c in node.table.physical_columns])
    return b.TableSourceScan(
        fields=node.fields,
        most=None if top is None else top * width(node.fields) // whole,
        table=node.table,
        columns=node.columns,
        options=node.options,
        filters=node.filters,
    )


@convert_node.register
def _(node: n.FrameScan, context: BatchContext) -> p.PhysicalNode:
    return p.DataFrameScan(fields=node.fields, most=context.size_of(node), key=node.key)


@convert_node.register
def _(node: n.Values, context: BatchContext) -> p.PhysicalNode:
    return p.Values(fields=node.fields, most=width(node.fields) * len(node.rows), rows=node.rows)


@convert_node.register
def _(node: n.Watermark, context: BatchContext) -> p.PhysicalNode:
    """Time attributes mean nothing in batch mode: only their types are applied to the input."""
    return replace(convert(node.input, context), fields=node.fields)


@convert_node.register
def _(node: n.Filter, context: BatchContext) -> p.PhysicalNode:
    over_rank = lowered(node)
    if over_rank is not None:
        return convert(over_rank, context)
    top = top_n(node)
    if top is None:
        return _filtered(node, convert(node.input, context))
    child = convert(top.over.input, context)
    if top.call.function == "RANK" and not top.other_conditions:
        return plan_rank(top, child, node.fields)
    return _filtered(node, plan_over(top.over, child, last_first=keeps_last(top)))


def _filtered(node: n.Filter, child: p.PhysicalNode) -> p.PhysicalNode:
    return p.Calc(
        fields=node.fields,
        most=child.most,
        input=child,
        projections=references(child.fields),
        condition=node.condition,
    )


@convert_node.register
def _(node: n.Project, context: BatchContext) -> p.PhysicalNode:
    child = convert(node.input, context)
    condition = None
    if isinstance(node.input, n.Filter) and isinstance(child, p.Calc) and _only_filters(child):
        condition, child = child.condition, child.input
    if condition is None and node.fields == child.fields and node.expressions == references(child.fields):
        return child
    most = with_fields(child, node.fields)
    return p.Calc(
        fields=node.fields, most=most, input=child, projections=node.expressions, condition=condition
    )


def _only_filters(calc: p.Calc) -> bool:
    return calc.projections == references(calc.input.fields)


@convert_node.register
def _(node: n.Expand, context: BatchContext) -> p.PhysicalNode:
    child = convert(node.input, context)
    most = with_fields(child, node.fields, len(node.projections))
    return p.Expand(fields=node.fields, most=most, input=child, projections=node.projections)


@convert_node.register
def _(node: n.Aggregate, context: BatchContext) -> p.PhysicalNode:
    child = convert(node.input, context)
    return _aggregate(child, node.keys, node.calls, node.fields)


def _aggregate(
    child: p.PhysicalNode, keys: tuple[int, ...], calls: tuple[AggregateCall, ...], fields: tuple[Field, ...]
) -> b.Aggregate:
    most = with_fields(child, fields) if keys else width(fields)
    return b.Aggregate(fields=fields, most=most, input=child, keys=keys, calls=calls)


@convert_node.register
def _(node: n.MatchRecognize, context: BatchContext) -> p.PhysicalNode:
    child = convert(node.input, context)
    return p.Match(
        fields=node.fields,
        input=child,
        partition=node.partition,
        order=node.order,
        pattern=node.pattern,
        definitions=node.definitions,
        measures=node.measures,
    )


@convert_node.register
def _(node: n.Sort, context: BatchContext) -> p.PhysicalNode:
    return plan_sort(node, convert(node.input, context))


@convert_node.register
def _(node: n.Over, context: BatchContext) -> p.PhysicalNode:
    return plan_over(node, convert(node.input, context))


@convert_node.register
def _(node: n.Unnest, context: BatchContext) -> p.PhysicalNode:
    child = convert(node.input, context)
    return b.Unnest(
        fields=node.fields,
        input=child,
        collection=node.collection,
        outer=node.outer,
        ordinality=node.ordinality,
        condition=node.condition,
    )


@convert_node.register
def _(node: n.TableFunction, context: BatchContext) -> p.PhysicalNode:
    child = convert(node.input, context)
    return b.TableFunction(
        fields=node.fields,
        input=child,
        function=node.function,
        args=node.args,
        outer=node.outer,
    )


@convert_node.register
def _(node: n.Join, context: BatchContext) -> p.PhysicalNode:
    request = JoinRequest(
        kind=node.kind,
        condition=null_aware_condition(node.condition) if node.null_aware else node.condition,
        fields=node.fields,
        threshold=context.threshold,
        strategies=node.strategies,
    )
    return request.planned(convert(node.left, context), convert(node.right, context))


@convert_node.register
def _(node: n.TemporalJoin, context: BatchContext) -> p.PhysicalNode:
    if node.version is None:
        left = convert(node.left, context)
        return b.LookupJoin(fields=node.fields, input=left, kind=node.kind, lookup=lookup_of(node))
    versions = versions_of(node.right)
    source = convert(versions.source, context)
    return plan_temporal_join(node, convert(node.left, context), versions, source)


@convert_node.register
def _(node: n.SetOp, context: BatchContext) -> p.PhysicalNode:
    combined = set_operation(node, [convert(x, context) for x in node.branches], context.threshold)
    if node.all:
        return combined
    return _aggregate(combined, tuple(range(len(node.fields))), (), node.fields)


@convert_node.register
def _(node: n.Sink, context: BatchContext) -> p.PhysicalNode:
    child = convert(node.input, context)
    kind = (Field(KIND_COLUMN, child.fields[-1].type),) if node.merges else ()
    return b.Sink(fields=(*node.fields, *kind), most=child.most, input=child, target=node)
