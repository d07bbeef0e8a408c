"""The running plan: the planner's tree, with each node as its kernel runs it.

The planner chooses operators as Flink does. The answers to ``running`` change them into the operators that
run:

- Kernels add up weights, so they get -U with every +U, while Flink's operators overwrite by key.
- Rows that Flink holds back until a watermark are emitted in their epoch and corrected later, so the operator
  is not insert-only any more.
- Distinct state that keys share becomes a separate aggregation.
- A join with time bounds runs without bounds if its rows have no watermark.
- A condition that a join's kernel cannot compute becomes a filter above it (``joins.by_pairs``).
- A temporal join reads all versions.

EXPLAIN names each of these changes beside the node (``runs``).
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch

from tidemill.physical import nodes as p
from tidemill.physical.aggregates.distinct_reuse import without_sharing
from tidemill.physical.finish import finish
from tidemill.physical.traits.event_time import has_watermark
from tidemill.physical.tree import map_up, with_inputs


def to_running_plan(root: p.PhysicalNode) -> p.PhysicalNode:
    """The running plan of the converted tree ``root``; changelog modes are not assigned yet."""
    return map_up(root, lambda node: _finished(with_each_change(running(node))))


def _finished(node: p.PhysicalNode) -> p.PhysicalNode:
    """Computes the traits again, because the inputs may have changed."""
    return finish(node) if node.inputs else node


def with_each_change(node: p.PhysicalNode) -> p.PhysicalNode:
    """``node`` over inputs that emit every change by itself, after its watermark, if it reads them so."""
    if not reads_each_change(node):
        return node
    return with_inputs(node, tuple(map(each_change, node.inputs)))


@singledispatch
def reads_each_change(node: p.PhysicalNode) -> bool:
    """Whether the operator works by window, so its answer depends on each change. By default it does not."""
    return False


@singledispatch
def running(node: p.PhysicalNode) -> p.PhysicalNode:
    """``node`` as its kernel runs it, over inputs that run. By default as planned."""
    return node


def each_change(node: p.PhysicalNode) -> p.PhysicalNode:
    """``node`` that emits each change by itself, with the watermark that preceded the change, instead of the
    net change of an epoch. Operators by event time above it need that: otherwise their answer would depend on
    the cut of epochs."""
    if has_watermark(node):
        return node
    node = without_sharing(node)
    below = with_inputs(node, tuple(map(each_change, node.inputs)))
    if isinstance(below, p.Versioned):
        return replace(below, versions=True)
    return below
