"""Operators that emit every change by itself instead of the net change of an epoch. Operators by event time
above them need it: otherwise their answer would depend on the cut of epochs."""

from __future__ import annotations

from dataclasses import replace

from tidemill.physical import nodes as p
from tidemill.physical.aggregates.distinct_reuse import without_sharing
from tidemill.physical.traits.event_time import has_watermark
from tidemill.physical.tree import with_inputs


def each_change(node: p.PhysicalNode) -> p.PhysicalNode:
    """``node`` that emits each change by itself, with the watermark that preceded the change."""
    if has_watermark(node):
        return node
    node = without_sharing(node)
    below = with_inputs(node, tuple(map(each_change, node.inputs)))
    if isinstance(below, p.Versioned):
        return replace(below, versions=True)
    return below
