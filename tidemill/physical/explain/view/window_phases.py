"""The local phase of aggregations by window, which Flink always has unless the options say ONE_PHASE.

Flink has none for sessions, because only all their rows determine their end. It also has none for windows by
processing time, windows with early or late results, and functions whose accumulators cannot be merged. The
writer of the exchange runs the local phase (``operators.window.local``). It also combines rows of sessions,
which EXPLAIN does not show (``operators.window.local_sessions``).
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
    """``node``, which is ``whole`` or its halves, with the local phases that Flink has."""
    if node is whole.source:
        return node
    node = with_inputs(node, tuple(local_phases(child, whole) for child in node.inputs))
    return _with_local(node) if isinstance(node, p.WindowAggregate) else node


def _with_local(node: p.WindowAggregate) -> p.WindowAggregate:
    window, below = node.window, node.source
    if window.proctime or node.emit is not None:
        return node
    if window.group or window.kind.is_data_driven or not mergeable(node.calls):
        return node
    retract = below.traits.kinds != INSERT_ONLY
    buffers = accumulators(node.calls, Printer.over(below.fields), retract=retract)
    local = LocalWindowAggregate(
        fields=below.fields,
        traits=below.traits,
        input=below,
        keys=node.keys,
        window=window,
        time=node.time,
        attached=node.attached,
        select=buffers.local,
    )
    phased = node if isinstance(node, PhasedWindowAggregate) else phased_window(node, node)
    merged = tuple(f"{text} AS {c.name}" for text, c in zip(buffers.merged, node.calls, strict=True))
    return replace(phased, input=with_inputs(node.input, (local,)), merged=merged)
