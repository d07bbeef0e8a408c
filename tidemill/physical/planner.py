"""Bound logical plan -> physical tree with traits, as Flink's streaming planner shapes it.

The steps: (1) ``convert`` builds the tree bottom-up, with modification kinds and keys in the traits;
(2) ``changelog_mode.assign`` settles where -U flows; (3) mini-batch assigners and aggregation phases.
Invariant: the root's fields are the logical root's. Cost: a few passes over the tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import singledispatch

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import RowKind
from tidemill.config.option import Configuration
from tidemill.config.sink_options import STATE_TTL
from tidemill.errors import NotSupportedError
from tidemill.physical import nodes as p
from tidemill.physical.changelog_mode import Updates, assign, modifications
from tidemill.physical.context import PlannerContext, SinkKinds, SourceKinds
from tidemill.physical.keys import unique_keys, upsert_keys
from tidemill.physical.mini_batch import MiniBatchConfig
from tidemill.physical.sinks import check_sink, sink_updates
from tidemill.plan import nodes as n
from tidemill.plan.expressions import InputRef
from tidemill.types.logical import Field

PENDING = p.Traits()


def plan_query(
    root: n.LogicalNode,
    config: Configuration,
    *,
    source_kinds: SourceKinds,
    sink_kinds: SinkKinds,
    mini_batch: MiniBatchConfig | None = None,
    keep_update_before: bool = False,
) -> p.PhysicalNode:
    """The physical plan of a SELECT or an INSERT (a logical Sink at the root).

    ``keep_update_before``: a SELECT's root gives -U too, as its collected rows do; EXPLAIN prints the
    plan without. Raises NotSupportedError for what no streaming plan exists for, ValidationError where
    a sink cannot take the changes.
    """
    context = PlannerContext(
        config=config,
        source_kinds=source_kinds,
        sink_kinds=sink_kinds,
        mini_batch=mini_batch,
        keep_update_before=keep_update_before,
    )
    return assign_root(convert(root, context), context)


def assign_root(root: p.PhysicalNode, context: PlannerContext) -> p.PhysicalNode:
    if isinstance(root, p.Sink):
        checked = check_sink(root, context.config)
        return assign(checked, sink_updates(checked))
    wanted = (Updates.BOTH,) if context.keep_update_before else (Updates.AFTER, Updates.BOTH)
    return assign(root, wanted)


def finish(node: p.PhysicalNode) -> p.PhysicalNode:
    """``node`` with its traits computed from its inputs'."""
    kinds = modifications(node)
    bare = replace(node, traits=replace(node.traits, kinds=kinds))
    return with_keys(bare)


def with_keys(node: p.PhysicalNode) -> p.PhysicalNode:
    unique, upsert = unique_keys(node), upsert_keys(node)
    return replace(node, traits=replace(node.traits, unique_keys=unique, upsert_keys=upsert))


def exchange(node: p.PhysicalNode, keys: tuple[int, ...]) -> p.PhysicalNode:
    return finish(p.Exchange(fields=node.fields, traits=PENDING, input=node, keys=keys))


def references(fields: tuple[Field, ...]) -> tuple[InputRef, ...]:
    return tuple(InputRef(type=f.type, index=i) for i, f in enumerate(fields))


@singledispatch
def convert(node: n.LogicalNode, context: PlannerContext) -> p.PhysicalNode:
    raise NotSupportedError(f"{type(node).__name__} is not supported in a streaming plan.")


@convert.register
def _(node: n.Scan, context: PlannerContext) -> p.PhysicalNode:
    kinds = context.source_kinds(node.table, dict(node.options))
    scan = p.TableSourceScan(
        fields=node.fields,
        traits=p.Traits(kinds=kinds),
        table=node.table,
        columns=node.columns,
        options=node.options,
        filters=node.filters,
        projected=is_projected(node.table, node.columns),
    )
    return with_keys(scan)


def is_projected(table: CatalogTable, columns: tuple[str, ...]) -> bool:
    return columns != tuple(c.name for c in table.physical_columns)


@convert.register
def _(node: n.FrameScan, context: PlannerContext) -> p.PhysicalNode:
    return finish(p.DataFrameScan(fields=node.fields, traits=PENDING, key=node.key))


@convert.register
def _(node: n.Values, context: PlannerContext) -> p.PhysicalNode:
    return finish(p.Values(fields=node.fields, traits=PENDING, rows=node.rows))


@convert.register
def _(node: n.Filter, context: PlannerContext) -> p.PhysicalNode:
    child = convert(node.input, context)
    return finish(
        p.Calc(
            fields=node.fields,
            traits=PENDING,
            input=child,
            projections=references(child.fields),
            condition=node.condition,
        )
    )


@convert.register
def _(node: n.Project, context: PlannerContext) -> p.PhysicalNode:
    child = convert(node.input, context)
    condition = None
    if isinstance(node.input, n.Filter) and isinstance(child, p.Calc):
        condition, child = child.condition, child.input
    return finish(
        p.Calc(
            fields=node.fields,
            traits=PENDING,
            input=child,
            projections=node.expressions,
            condition=condition,
        )
    )


@convert.register
def _(node: n.Watermark, context: PlannerContext) -> p.PhysicalNode:
    child = convert(node.input, context)
    return finish(
        p.WatermarkAssigner(
            fields=node.fields, traits=PENDING, input=child, rowtime=node.rowtime, watermark=node.expression
        )
    )


@convert.register
def _(node: n.Expand, context: PlannerContext) -> p.PhysicalNode:
    child = convert(node.input, context)
    return finish(p.Expand(fields=node.fields, traits=PENDING, input=child, projections=node.projections))


@convert.register
def _(node: n.Aggregate, context: PlannerContext) -> p.PhysicalNode:
    child = convert(node.input, context)
    core = p.AggregateCore(
        input=child, keys=node.keys, calls=node.calls, state_ttl=state_ttl(context, dict(node.hints))
    )
    return finish(
        p.GroupAggregate(
            fields=node.fields,
            traits=PENDING,
            input=exchange(child, node.keys),
            keys=node.keys,
            calls=node.calls,
            core=core,
        )
    )


def state_ttl(context: PlannerContext, hints: Mapping[str, str]) -> int:
    """Milliseconds: a STATE_TTL hint's value, else table.exec.state.ttl."""
    for text in hints.values():
        return STATE_TTL.parse(text).milliseconds
    return context.config.read(STATE_TTL).milliseconds


@convert.register
def _(node: n.SetOp, context: PlannerContext) -> p.PhysicalNode:
    if node.kind is not n.SetKind.UNION:
        raise NotSupportedError(f"{node.kind.value} is not supported in a streaming plan.")
    branches = tuple(convert(b, context) for b in node.branches)
    union = finish(p.Union(fields=node.fields, traits=PENDING, branches=branches))
    if node.all:
        return union
    keys = tuple(range(len(node.fields)))
    core = p.AggregateCore(input=union, keys=keys, calls=(), state_ttl=state_ttl(context, {}))
    return finish(
        p.GroupAggregate(
            fields=node.fields, traits=PENDING, input=exchange(union, keys), keys=keys, calls=(), core=core
        )
    )


@convert.register
def _(node: n.Sink, context: PlannerContext) -> p.PhysicalNode:
    child = convert(node.input, context)
    offered = child.traits.kinds
    if RowKind.UPDATE_AFTER in offered:
        offered |= {RowKind.UPDATE_BEFORE}
    return finish(
        p.Sink(
            fields=node.fields,
            traits=PENDING,
            input=child,
            table=node.table,
            options=node.options,
            consumed=context.sink_kinds(node.table, dict(node.options), offered),
            conflict=node.conflict,
            overwrite=node.overwrite,
            static_partition=node.static_partition,
            target_columns=node.target_columns,
        )
    )
