"""How the nodes of a plan run: the same tree, each node as its kernel is.

The planner chooses operators as Flink does; here each becomes what runs, and nowhere else:
kernels add up weights, so they get -U with every +U where Flink's operators overwrite by key; what Flink
holds back until a watermark is given with the epoch and corrected later, so it is no longer insert-only;
distinct state that keys share is that of an aggregation of its own;
a join with time bounds runs as one without where its rows have no watermark; what the kernel of a join
cannot compute over pairs is a filter above it (``joins.by_pairs``); a temporal join gets all versions.
EXPLAIN names each of these beside the node (``runs``).
"""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from functools import singledispatch

from tidemill.physical import nodes as p
from tidemill.physical.aggregates.distinct_reuse import shared
from tidemill.physical.aggregates.window_reuse import shared_window
from tidemill.physical.conditions import conjunction, conjuncts
from tidemill.physical.finish import exchange, finish
from tidemill.physical.joins.by_pairs import by_pairs
from tidemill.physical.joins.temporal import as_it_runs
from tidemill.physical.traits.changelog_mode import insert_only
from tidemill.physical.traits.event_time import has_watermark, waits_for_first
from tidemill.physical.tree import map_up, with_inputs
from tidemill.physical.versions import each_change
from tidemill.plan.nodes import JoinKind
from tidemill.plan.predicates import equal_columns


def running(root: p.PhysicalNode) -> p.PhysicalNode:
    """The converted tree ``root`` as it runs; changelog modes are still to be assigned."""
    return map_up(root, lambda node: _finished(_timed(_running(node))))


def _finished(node: p.PhysicalNode) -> p.PhysicalNode:
    """What comes up from below has changed, and with it the traits."""
    return finish(node) if node.inputs else node


def _timed(node: p.PhysicalNode) -> p.PhysicalNode:
    """What works by window gets every change of the last row of each key, behind its watermark."""
    if not isinstance(node, _BY_WINDOW):
        return node
    return with_inputs(node, tuple(map(each_change, node.inputs)))


_BY_WINDOW = p.WindowAggregate | p.WindowsOfRows | p.WindowRank | p.WindowJoin


@singledispatch
def _running(node: p.PhysicalNode) -> p.PhysicalNode:
    return node


@_running.register
def _(node: p.Rank) -> p.PhysicalNode:
    """By arrival the first row stays the first, bundled or not; by event time where it is waited for."""
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
    return shared(node)


@_running.register
def _(node: p.WindowAggregate) -> p.PhysicalNode:
    """How DISTINCT is spread is settled with the changelog modes (``aggregates.salted_distinct``)."""
    return shared_window(node)


@_running.register
def _(node: p.WindowRank) -> p.PhysicalNode:
    """By window rows wait for the watermark, as in Flink."""
    return node


@_running.register
def _(node: p.WindowJoin) -> p.PhysicalNode:
    """As above. What is made of the join gets the changes that the join would get."""
    timed = _timed(node)
    assert isinstance(timed, p.WindowJoin)
    return by_pairs(finish(timed))


@_running.register
def _(node: p.OverAggregate) -> p.PhysicalNode:
    stays = insert_only(node.input) and (node.time != "ROWTIME" or has_watermark(node.input))
    return node if stays else replace(node, time="")


@_running.register
def _(node: p.Join) -> p.PhysicalNode:
    return by_pairs(replace(node, overwrites=False))


@_running.register
def _(node: p.LookupJoin) -> p.PhysicalNode:
    return replace(node, overwrites=False)


@_running.register
def _(node: p.TemporalJoin) -> p.PhysicalNode:
    return as_it_runs(node)


@_running.register
def _(node: p.IntervalJoin) -> p.PhysicalNode:
    """Without a watermark nothing says when a wait ends; equal times, a bound for Flink, are a key then."""
    if node.bounds.rowtime and all(insert_only(i) and has_watermark(i) for i in node.inputs):
        # The kernel of an outer one waits for what Spark says of its pairs.
        return by_pairs(node) if node.kind is JoinKind.INNER else node
    parts = {f.name: getattr(node, f.name) for f in dataclasses.fields(p.Join)}
    join = p.Join(**parts)
    width = len(node.left.fields)
    keys, rest = [], []
    for part in [] if node.residual is None else conjuncts(node.residual):
        pair = equal_columns(part, width)
        rest.append(part) if pair is None else keys.append(pair)
    if not keys:
        return by_pairs(replace(join, overwrites=False))
    left_keys = (*node.left_keys, *(a for a, _ in keys))
    right_keys = (*node.right_keys, *(b for _, b in keys))
    return by_pairs(
        replace(
            join,
            left=exchange(node.left.inputs[0], left_keys),
            right=exchange(node.right.inputs[0], right_keys),
            left_keys=left_keys,
            right_keys=right_keys,
            null_safe=(*node.null_safe, *[False] * len(keys)),
            by_identity=(*(node.by_identity or [False] * len(node.left_keys)), *[False] * len(keys)),
            residual=conjunction(rest),
            overwrites=False,
        )
    )
