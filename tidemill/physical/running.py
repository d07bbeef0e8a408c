"""The running plan: the planner's tree, with each node as its kernel runs it.

The planner chooses operators as Flink does. Only this module changes them into the running operators:

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

import dataclasses
from dataclasses import replace
from functools import singledispatch

from tidemill.physical import nodes as p
from tidemill.physical.aggregates.distinct_reuse import share_distinct
from tidemill.physical.aggregates.window_reuse import share_distinct_of_windows
from tidemill.physical.conditions import conjunction, conjuncts
from tidemill.physical.finish import exchange, finish
from tidemill.physical.joins.by_pairs import join_by_pairs
from tidemill.physical.joins.temporal import over_all_versions
from tidemill.physical.traits.changelog_mode import insert_only
from tidemill.physical.traits.event_time import has_watermark, waits_for_first
from tidemill.physical.tree import map_up, with_inputs
from tidemill.physical.versions import each_change
from tidemill.plan.nodes import JoinKind
from tidemill.plan.predicates import equal_columns


def to_running_plan(root: p.PhysicalNode) -> p.PhysicalNode:
    """The running plan of the converted tree ``root``; changelog modes are not assigned yet."""
    return map_up(root, lambda node: _finished(_with_each_change(_running(node))))


def _finished(node: p.PhysicalNode) -> p.PhysicalNode:
    """Computes the traits again, because the inputs may have changed."""
    return finish(node) if node.inputs else node


def _with_each_change(node: p.PhysicalNode) -> p.PhysicalNode:
    """Makes the input of operators by window emit every change by itself, after its watermark."""
    if not isinstance(node, _BY_WINDOW):
        return node
    return with_inputs(node, tuple(map(each_change, node.inputs)))


_BY_WINDOW = p.WindowAggregate | p.WindowsOfRows | p.WindowRank | p.WindowJoin


@singledispatch
def _running(node: p.PhysicalNode) -> p.PhysicalNode:
    return node


@_running.register
def _(node: p.Rank) -> p.PhysicalNode:
    """By arrival the first row stays the first, with or without bundles; by event time only if it is waited
    for."""
    append = insert_only(node.input)
    top_one = node.start == node.end == 1 and node.function == "ROW_NUMBER"
    first = top_one and node.time == "PROCTIME" and node.order[0].ascending
    waits = waits_for_first(node) and has_watermark(node.input)
    return replace(
        node,
        time=node.time if append else "",
        insert_only=append and (waits or first),
    )


@_running.register
def _(node: p.GroupAggregate) -> p.PhysicalNode:
    return share_distinct(node)


@_running.register
def _(node: p.WindowAggregate) -> p.PhysicalNode:
    """DISTINCT is spread later, together with the changelog modes (``aggregates.salted_distinct``)."""
    return share_distinct_of_windows(node)


@_running.register
def _(node: p.WindowRank) -> p.PhysicalNode:
    """A Top-N by window waits for the watermark, as in Flink."""
    return node


@_running.register
def _(node: p.WindowJoin) -> p.PhysicalNode:
    """A join by window waits for the watermark, too. Its rewritten form reads the same changes."""
    timed = _with_each_change(node)
    assert isinstance(timed, p.WindowJoin)
    return join_by_pairs(finish(timed))


@_running.register
def _(node: p.OverAggregate) -> p.PhysicalNode:
    stays = insert_only(node.input) and (node.time != "ROWTIME" or has_watermark(node.input))
    return node if stays else replace(node, time="")


@_running.register
def _(node: p.Join) -> p.PhysicalNode:
    return join_by_pairs(replace(node, overwrites=False))


@_running.register
def _(node: p.LookupJoin) -> p.PhysicalNode:
    return replace(node, overwrites=False)


@_running.register
def _(node: p.TemporalJoin) -> p.PhysicalNode:
    return over_all_versions(node)


@_running.register
def _(node: p.IntervalJoin) -> p.PhysicalNode:
    """Without a watermark a wait would never end. Equal times, a bound in Flink, become a key then."""
    if node.bounds.rowtime and all(insert_only(i) and has_watermark(i) for i in node.inputs):
        # The kernel of an outer one waits for what Spark says of its pairs.
        return join_by_pairs(node) if node.kind is JoinKind.INNER else node
    parts = {f.name: getattr(node, f.name) for f in dataclasses.fields(p.Join)}
    join = p.Join(**parts)
    width = len(node.left.fields)
    keys, residual = [], []
    for part in [] if node.residual is None else conjuncts(node.residual):
        pair = equal_columns(part, width)
        residual.append(part) if pair is None else keys.append(pair)
    if not keys:
        return join_by_pairs(replace(join, overwrites=False))
    left_keys = (*node.left_keys, *(a for a, _ in keys))
    right_keys = (*node.right_keys, *(b for _, b in keys))
    return join_by_pairs(
        replace(
            join,
            left=exchange(node.left.inputs[0], left_keys),
            right=exchange(node.right.inputs[0], right_keys),
            left_keys=left_keys,
            right_keys=right_keys,
            null_safe=(*node.null_safe, *[False] * len(keys)),
            by_identity=(*(node.by_identity or [False] * len(node.left_keys)), *[False] * len(keys)),
            residual=conjunction(residual),
            overwrites=False,
        )
    )
