"""Flink's view of a streaming plan: its aggregations in the phases that Flink gives them."""

from __future__ import annotations

from tidemill.config.optimizer_options import AGG_PHASE_STRATEGY, INCREMENTAL_AGG_ENABLED
from tidemill.config.option import Configuration
from tidemill.physical import nodes as p
from tidemill.physical.aggregates.parts import is_averaged
from tidemill.physical.explain.view.distinct_split import halves, window_halves
from tidemill.physical.explain.view.two_phase import two_phases
from tidemill.physical.explain.view.window_phases import local_phases
from tidemill.physical.traits.mini_batch import mini_batch_config
from tidemill.physical.tree import with_inputs
from tidemill.plan.once import once_per_node


def flink_view(plan: p.PhysicalNode, config: Configuration) -> p.PhysicalNode:
    """``plan`` as Flink shows it: ``Exchange, GroupAggregate`` under mini-batch as ``LocalGroupAggregate,
    Exchange, GlobalGroupAggregate``."""
    one_phase = config.read(AGG_PHASE_STRATEGY).upper() == "ONE_PHASE"
    bundles = mini_batch_config(config, explicit=True) is not None
    incremental = config.read(INCREMENTAL_AGG_ENABLED)

    @once_per_node
    def view(planned: p.PhysicalNode) -> p.PhysicalNode:
        node = with_inputs(planned, tuple(map(view, planned.inputs)))
        if isinstance(node, p.GroupAggregate):
            whole = halves(node) if node.split else node
            return two_phases(whole, incremental=incremental) if bundles and not one_phase else whole
        if isinstance(node, p.WindowAggregate):
            cut = window_halves(node) if node.split else node
            return cut if one_phase else local_phases(cut, node)
        if isinstance(planned, p.Calc) and is_averaged(planned.input):
            return view(planned.input)
        return node

    return view(plan)
