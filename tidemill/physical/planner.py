"""Bound logical plan -> the physical tree that runs, with traits.

The steps: (1) ``converted`` builds the tree bottom-up from Flink's operators, with modification kinds and
keys in the traits, as Flink does; (2) ``to_running_plan`` makes of them the operators that run; (3)
``changelog_mode.assign`` settles where -U flows; (4) operators of a job that differ in their columns alone
become one and (5) mini-batch assigners are placed. What Flink shows of the operators is EXPLAIN's
(``explain.view``). Invariant: the root's fields are the logical root's. Cost: a few passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tidemill.changelog.rowkind import UPSERT, RowKind
from tidemill.deep_calls import with_room
from tidemill.errors import NotSupportedError
from tidemill.physical import nodes as p
from tidemill.physical.aggregates.planning import plan_aggregate
from tidemill.physical.aggregates.salted_distinct import spread_windows
from tidemill.physical.conditions import columns, conjunction, conjuncts, substituted
from tidemill.physical.conversion import PlannerContext, convert, convert_node, state_ttl
from tidemill.physical.finish import finish, references
from tidemill.physical.joins.lookup import plan_lookup_join
from tidemill.physical.joins.planning import plan_join
from tidemill.physical.joins.temporal import plan_temporal_join
from tidemill.physical.narrowing import narrow_join, narrow_rank
from tidemill.physical.ranks import TopN, lowered, plan_rank, remaining_condition, top_n
from tidemill.physical.running import to_running_plan
from tidemill.physical.scans import plan_scan
from tidemill.physical.set_operations import plan_set_operation
from tidemill.physical.sharing.operators import share_operators
from tidemill.physical.sinks import check_sink, keep_insert_only_rows, sink_updates
from tidemill.physical.traits.changelog_mode import Updates, assign
from tidemill.physical.traits.mini_batch import add_assigners
from tidemill.physical.windows import (
    plan_window_aggregate,
    plan_window_function,
    windowed_aggregate,
)
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Expr
from tidemill.plan.nodes import Exists, InSubquery, ScalarSubquery
from tidemill.types.logical import Field

_SUBQUERIES = (ScalarSubquery, Exists, InSubquery)


def plan_job(roots: Sequence[n.LogicalNode], context: PlannerContext) -> list[p.PhysicalNode]:
    """The plans of one job: of a SELECT, or of INSERTs (a logical Sink at each root).

    Raises NotSupportedError if there is no streaming plan, and ValidationError if a sink cannot accept the
    changes.
    """
    return with_room(lambda: _planned(roots, context))


def _planned(roots: Sequence[n.LogicalNode], context: PlannerContext) -> list[p.PhysicalNode]:
    settled = [_settled(converted(root, context), context) for root in roots]
    return [
        add_assigners(spread_windows(root, context.config), context.mini_batch)
        for root in share_operators(settled)
    ]


def converted(root: n.LogicalNode, context: PlannerContext) -> p.PhysicalNode:
    """The operators of ``root``, as Flink chooses them; changelog modes are still to be assigned. Raises as
    ``plan_job``."""
    operators = convert(root, context)
    return check_sink(operators, context.config) if isinstance(operators, p.Sink) else operators


def _settled(operators: p.PhysicalNode, context: PlannerContext) -> p.PhysicalNode:
    """``operators`` as they run, with their changelog modes. The rows of a SELECT come with -U."""
    run = to_running_plan(operators)
    if not isinstance(run, p.Sink):
        return assign(run, (Updates.BOTH,))
    sink = keep_insert_only_rows(check_sink(run, context.config), context.config)
    return assign(sink, (Updates.BOTH,) if sink.materialize else sink_updates(sink))


@convert_node.register
def _(node: n.WindowTableFunction, context: PlannerContext) -> p.PhysicalNode:
    return plan_window_function(node, convert(node.input, context), state_ttl(context))


@convert_node.register
def _(node: n.Scan, context: PlannerContext) -> p.PhysicalNode:
    return plan_scan(node, context, state_ttl(context))


@convert_node.register
def _(node: n.FrameScan, context: PlannerContext) -> p.PhysicalNode:
    return finish(p.DataFrameScan(fields=node.fields, key=node.key))


@convert_node.register
def _(node: n.Values, context: PlannerContext) -> p.PhysicalNode:
    return finish(p.Values(fields=node.fields, rows=node.rows))


@convert_node.register
def _(node: n.Filter, context: PlannerContext) -> p.PhysicalNode:
    over_rank = lowered(node)
    if over_rank is not None:
        return convert(over_rank, context)
    top = top_n(node)
    if top is not None:
        every = tuple(references(node.fields))
        return _plan_top_n(top, every, node.fields, context)
    _refuse_subqueries([node.condition])
    child = convert(node.input, context)
    return _normalized(child, node.condition)


def _refuse_subqueries(expressions: Iterable[Expr]) -> None:
    """NotSupportedError for a subquery: the rules should have turned it into a join."""
    for expr in expressions:
        for part in expr.walk():
            if isinstance(part, _SUBQUERIES):
                raise NotSupportedError(f"A subquery of this kind ({type(part).__name__}) is not supported.")


def _filtered(child: p.PhysicalNode, condition: Expr) -> p.PhysicalNode:
    refs = references(child.fields)
    return finish(p.Calc(fields=child.fields, input=child, projections=refs, condition=condition))


def _normalized(child: p.PhysicalNode, condition: Expr) -> p.PhysicalNode:
    """A filter as part of a ChangelogNormalize right below it."""
    if isinstance(child, p.ChangelogNormalize):
        return finish(_normalize(child, condition))
    if isinstance(child, p.Calc) and isinstance(child.input, p.ChangelogNormalize):
        # A Calc that only drops the key's columns.
        normal = finish(_normalize(child.input, substituted(condition, child.projections)))
        return finish(replace(child, input=normal))
    return _filtered(child, condition)


def _normalize(node: p.ChangelogNormalize, condition: Expr) -> p.ChangelogNormalize:
    parts = [] if node.condition is None else conjuncts(node.condition)
    return replace(node, condition=conjunction([*parts, condition]))


def _plan_top_n(
    top: TopN, projections: tuple[Expr, ...], fields: tuple[Field, ...], context: PlannerContext
) -> p.PhysicalNode:
    """A Top-N under ``projections`` (over the Over's fields)."""
    child = convert(top.over.input, context)
    used = frozenset(i for x in projections for i in columns(x))
    narrow = narrow_rank(top, child, used)
    top, child, projections = narrow.top, narrow.child, narrow.moved(projections)
    used = frozenset(narrow.new_index[i] for i in used)
    rank, outputs = plan_rank(
        top,
        child,
        used,
        final=_final_times(context),
        state_ttl=state_ttl(context),
        config=context.config,
    )
    condition = remaining_condition(top, outputs)
    output_expressions = tuple(substituted(x, outputs) for x in projections)
    if condition is None and output_expressions == references(rank.fields) and fields == rank.fields:
        return rank
    return finish(p.Calc(fields=fields, input=rank, projections=output_expressions, condition=condition))


def _final_times(context: PlannerContext) -> frozenset[str]:
    """The time attributes by which the first row stays the first. Without bundles Flink emits it at once."""
    return frozenset({"PROCTIME", "ROWTIME"}) if context.mini_batch is None else frozenset()


@convert_node.register
def _(node: n.Project, context: PlannerContext) -> p.PhysicalNode:
    below = node.input
    expressions = node.expressions
    over_rank = lowered(below) if isinstance(below, n.Filter) else None
    if over_rank is not None:
        expressions = tuple(substituted(x, over_rank.expressions) for x in expressions)
        below = over_rank.input
    top = top_n(below)
    if top is not None:
        return _plan_top_n(top, expressions, node.fields, context)
    _refuse_subqueries(expressions)
    narrow = narrow_join(below, expressions) if isinstance(below, n.Join | n.TemporalJoin) else None
    if narrow is not None:
        below, expressions = narrow.join, narrow.moved(expressions)
    child = convert(below, context)
    condition = None
    if (
        isinstance(below, n.Filter)
        and isinstance(child, p.Calc)
        and child.projections == references(child.fields)
    ):
        condition, child = child.condition, child.input
    if condition is None and expressions == references(child.fields) and node.fields == child.fields:
        return child
    return finish(p.Calc(fields=node.fields, input=child, projections=expressions, condition=condition))


@convert_node.register
def _(node: n.Aggregate, context: PlannerContext) -> p.PhysicalNode:
    windowed = windowed_aggregate(node)
    if windowed is not None:
        ttl = state_ttl(context, dict(node.hints))
        child = convert(windowed.input, context)
        return plan_window_aggregate(node, windowed, child, context.config, ttl)
    child = convert(node.input, context)
    return plan_aggregate(node, child, context.config, state_ttl(context, dict(node.hints)))


@convert_node.register
def _(node: n.Join, context: PlannerContext) -> p.PhysicalNode:
    _refuse_subqueries([node.condition])
    left, right = convert(node.left, context), convert(node.right, context)
    return plan_join(node, left, right, state_ttl=state_ttl(context), config=context.config)


@convert_node.register
def _(node: n.TemporalJoin, context: PlannerContext) -> p.PhysicalNode:
    if node.version is None:
        return plan_lookup_join(node, convert(node.left, context))
    left, right = convert(node.left, context), convert(node.right, context)
    return plan_temporal_join(node, left, right, state_ttl(context))


@convert_node.register
def _(node: n.SetOp, context: PlannerContext) -> p.PhysicalNode:
    branches = tuple(convert(b, context) for b in node.branches)
    return plan_set_operation(node, branches, state_ttl=state_ttl(context))


@convert_node.register
def _(node: n.Sink, context: PlannerContext) -> p.PhysicalNode:
    child = convert(node.input, context)
    offered = child.traits.kinds
    if RowKind.UPDATE_AFTER in offered:
        offered |= {RowKind.UPDATE_BEFORE}
    return finish(
        p.Sink(
            fields=node.fields,
            input=child,
            table=node.table,
            options=node.options,
            consumed=context.sink_kinds(node.table, dict(node.options), offered),
            retract=RowKind.UPDATE_BEFORE in context.sink_kinds(node.table, dict(node.options), UPSERT),
            conflict=node.conflict,
            overwrite=node.overwrite,
            static_partition=node.static_partition,
            target_columns=node.target_columns,
            state_ttl=state_ttl(context),
        )
    )
