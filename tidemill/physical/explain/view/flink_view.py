"""Flink's view of a streaming plan.

The view has the planner's operators (``planner.converted``) with Flink's changelog modes, split into Flink's
phases. ``differences`` adds to each node how it runs.
"""

from __future__ import annotations

from tidemill.config.optimizer_options import AGG_PHASE_STRATEGY, INCREMENTAL_AGG_ENABLED
from tidemill.physical import nodes as p
from tidemill.physical.aggregates.parts import is_averaged
from tidemill.physical.conversion import PlannerContext
from tidemill.physical.explain.view.distinct_split import halves, window_halves
from tidemill.physical.explain.view.nodes import bundled_join
from tidemill.physical.explain.view.two_phase import two_phases
from tidemill.physical.explain.view.update_fast import update_fast
from tidemill.physical.explain.view.window_phases import local_phases
from tidemill.physical.planner import converted
from tidemill.physical.sinks import sink_updates
from tidemill.physical.traits.changelog_mode import Updates, assign
from tidemill.physical.traits.mini_batch import add_assigners
from tidemill.physical.tree import with_inputs
from tidemill.plan import nodes as n
from tidemill.plan.once import once_per_node


def flink_view(root: n.LogicalNode, context: PlannerContext) -> p.PhysicalNode:
    """Flink's plan of ``root``. Under mini-batch ``Exchange, GroupAggregate`` becomes ``LocalGroupAggregate,
    Exchange, GlobalGroupAggregate``."""
    planned = _with_modes(update_fast(converted(root, context)))
    return _in_flinks_nodes(add_assigners(planned, context.mini_batch), context)


def _with_modes(operators: p.PhysicalNode) -> p.PhysicalNode:
    if isinstance(operators, p.Sink):
        return assign(operators, sink_updates(operators))
    # Flink's EXPLAIN knows no reader of a SELECT, so it does without -U.
    return assign(operators, (Updates.AFTER, Updates.BOTH))


def _in_flinks_nodes(plan: p.PhysicalNode, context: PlannerContext) -> p.PhysicalNode:
    one_phase = context.config.read(AGG_PHASE_STRATEGY).upper() == "ONE_PHASE"
    incremental = context.config.read(INCREMENTAL_AGG_ENABLED)
    bundles = context.mini_batch is not None

    @once_per_node
    def view(planned: p.PhysicalNode) -> p.PhysicalNode:
        node = with_inputs(planned, tuple(map(view, planned.inputs)))
        if isinstance(node, p.GroupAggregate):
            whole = halves(node) if node.split else node
            return two_phases(whole, incremental=incremental) if bundles and not one_phase else whole
        if isinstance(node, p.WindowAggregate):
            cut = window_halves(node) if node.split else node
            return cut if one_phase else local_phases(cut, node)
        if type(node) is p.Join and bundles:
            return bundled_join(node)
        if isinstance(planned, p.Calc) and is_averaged(planned.input):
            return view(planned.input)
        return node

    return view(plan)
