"""Operators that give every change of their rows for itself, in place of the net change of an epoch: for what
stands above them by event time, whose answer would else depend on where epochs are cut."""

from __future__ import annotations

from dataclasses import replace

from tidemill.physical import nodes as p
from tidemill.physical.aggregates.distinct_reuse import unshared
from tidemill.physical.traits.event_time import has_watermark
from tidemill.physical.tree import with_inputs


def each_change(node: p.PhysicalNode) -> p.PhysicalNode:
    """``node``, whose rows say each change for itself, and behind which watermark it came."""
    if has_watermark(node):
        return node
    node = unshared(node)
    below = with_inputs(node, tuple(map(each_change, node.inputs)))
    if isinstance(below, p.Rank | p.ChangelogNormalize | p.GroupAggregate):
        return replace(below, versions=True)
    return below
