"""The local phase of aggregation by window, as Flink shows it: always, unless its options say ONE_PHASE.

Flink shows none for sessions, as only their rows together say where they end, nor for windows by processing
time, those that show more than their end, and functions whose accumulators cannot be merged. What is shown
below the exchange its writer does (see ``operators.window.local``); that of sessions, which is not shown, too
(``operators.window.local_sessions``).
"""

from __future__ import annotations

from dataclasses import replace

from tidemill.changelog.rowkind import INSERT_ONLY
from tidemill.config.optimizer_options import AGG_PHASE_STRATEGY
from tidemill.config.option import Configuration
from tidemill.physical import nodes as p
from tidemill.physical.aggregates.accumulators import accumulators
from tidemill.physical.aggregates.two_phase import mergeable
from tidemill.physical.explain.printer import Printer
from tidemill.physical.tree import map_up


def split_windows(root: p.PhysicalNode, config: Configuration) -> p.PhysicalNode:
    """The plan with both phases of the aggregations by window that Flink cuts in two."""
    if config.read(AGG_PHASE_STRATEGY).upper() == "ONE_PHASE":
        return root
    return map_up(root, _split)


def _split(node: p.PhysicalNode) -> p.PhysicalNode:
    if not isinstance(node, p.WindowAggregate) or not isinstance(node.input, p.Exchange):
        return node
    window = node.window
    if window.proctime or node.emit is not None:
        return node
    if window.group or window.kind.made_by_rows or not mergeable(node.calls):
        return node
    below = node.input.input
    retract = below.traits.kinds != INSERT_ONLY
    found = accumulators(node.calls, Printer.over(below.fields), retract=retract)
    local = p.LocalWindowAggregate(
        fields=below.fields,
        traits=below.traits,
        input=below,
        keys=node.keys,
        window=window,
        time=node.time,
        attached=node.attached,
        select=found.local,
    )
    merged = tuple(f"{text} AS {c.name}" for text, c in zip(found.merged, node.calls, strict=True))
    return replace(node, input=replace(node.input, input=local), merged=merged)
