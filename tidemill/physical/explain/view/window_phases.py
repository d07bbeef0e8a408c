"""The local phase of aggregation by window, as Flink shows it: always, unless its options say ONE_PHASE.

Flink shows none for sessions, as only their rows together say where they end, nor for windows by processing
time, those that show more than their end, and functions whose accumulators cannot be merged. What is shown
below the exchange its writer does (see ``operators.window.local``); that of sessions, which is not shown, too
(``operators.window.local_sessions``).
"""

from __future__ import annotations

from dataclasses import replace

from tidemill.changelog.rowkind import INSERT_ONLY
from tidemill.physical import nodes as p
from tidemill.physical.aggregates.parts import mergeable
from tidemill.physical.explain.printer import Printer
from tidemill.physical.explain.view.accumulators import accumulators
from tidemill.physical.explain.view.nodes import LocalWindowAggregate, PhasedWindowAggregate, phased_window
from tidemill.physical.tree import with_inputs


def local_phases(node: p.PhysicalNode, whole: p.WindowAggregate) -> p.PhysicalNode:
    """``node``, which is ``whole`` or its halves, each with a local phase where Flink has one."""
    if node is whole.source:
        return node
    node = with_inputs(node, tuple(local_phases(child, whole) for child in node.inputs))
    return _with_local(node) if isinstance(node, p.WindowAggregate) else node


def _with_local(node: p.WindowAggregate) -> p.WindowAggregate:
    window, below = node.window, node.source
    if window.proctime or node.emit is not None:
        return node
    if window.group or window.kind.made_by_rows or not mergeable(node.calls):
        return node
    retract = below.traits.kinds != INSERT_ONLY
    found = accumulators(node.calls, Printer.over(below.fields), retract=retract)
    local = LocalWindowAggregate(
        fields=below.fields,
        traits=below.traits,
        input=below,
        keys=node.keys,
        window=window,
        time=node.time,
        attached=node.attached,
        select=found.local,
    )
    phased = node if isinstance(node, PhasedWindowAggregate) else phased_window(node, node)
    merged = tuple(f"{text} AS {c.name}" for text, c in zip(found.merged, node.calls, strict=True))
    return replace(phased, input=with_inputs(node.input, (local,)), merged=merged)
