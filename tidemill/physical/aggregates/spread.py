"""DISTINCT in windows that have no key: counted by buckets of the distinct values, and added up.

All rows of such a window would go to one partition. Its numbers of distinct values are sums over buckets of
these, and so are the other calls; a bucket gives one row per window. Only what runs is changed: Flink's plan
is that of one aggregation, and EXPLAIN says beside it how it runs. The work of keyed windows is spread by
their keys; where these are few ``table.optimizer.distinct-agg.split.enabled`` spreads it.
"""

from __future__ import annotations

from dataclasses import replace

from tidemill.config.optimizer_options import AGG_PHASE_STRATEGY
from tidemill.config.option import Configuration
from tidemill.physical import nodes as p
from tidemill.physical.aggregates.distinct_split import adds_up, merging
from tidemill.physical.finish import PENDING, exchange, finish
from tidemill.physical.tree import map_up
from tidemill.types import logical as t
from tidemill.types.logical import Field

BUCKETS = 64
"""Many more than partitions, as the hashes of a few would leave some of these without work; few enough that
the rows of all buckets are nothing beside those that are counted. A part of what the operator is: its state
is by bucket."""


def spread_windows(root: p.PhysicalNode, config: Configuration) -> p.PhysicalNode:
    """The plan that runs, with such aggregations as two, unless it was asked for one phase alone."""
    if config.read(AGG_PHASE_STRATEGY).upper() == "ONE_PHASE":
        return root
    return map_up(root, _spread)


def spread_part(node: p.PhysicalNode) -> p.WindowAggregate | None:
    """What gives a row per bucket to ``node``, which adds them up; None where it does not."""
    if not isinstance(node, p.WindowAggregate) or not isinstance(node.input, p.Exchange):
        return None
    below: p.PhysicalNode = node.input
    while isinstance(below, p.Exchange | p.LocalWindowAggregate):
        below = below.input
    return below if isinstance(below, p.WindowAggregate) and below.spread is not None else None


def _spread(node: p.PhysicalNode) -> p.PhysicalNode:
    if not isinstance(node, p.WindowAggregate) or not _can_be_spread(node):
        return node
    below = node.input.inputs[0]
    columns = next(call.args for call in node.calls if call.distinct)
    calls = tuple(replace(call, name=f"$c{place}") for place, call in enumerate(node.calls))
    end = Field("$window_end", t.TimestampType(precision=3, nullable=False))
    part = finish(
        replace(
            node,
            fields=(*(Field(c.name, c.type) for c in calls), end),
            traits=PENDING,
            input=exchange(below, columns),
            calls=calls,
            properties=("end",),
            spread=p.Spread(columns=columns, buckets=BUCKETS),
        )
    )
    return replace(
        node,
        input=exchange(part, ()),
        calls=merging(node.calls, 0),
        time=len(calls),
        attached=True,
    )


def _can_be_spread(node: p.WindowAggregate) -> bool:
    if node.keys or node.spread is not None or not isinstance(node.input, p.Exchange):
        return False
    if node.emit is not None or node.window.proctime or node.window.kind.made_by_rows:
        return False
    distinct = {call.args for call in node.calls if call.distinct}
    return len(distinct) == 1 and adds_up(node.calls, node.input.fields, *distinct)
