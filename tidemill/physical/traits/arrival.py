"""The order in which the rows of a plan arrive, if it does not depend on the cut of epochs.

Rows of several upsert keys may have the same primary key of a sink. In Flink the row that arrives last wins.
If operators emit the net change of an epoch, the order is unknown (UNTOLD), and the sink compares the rows
instead.

    SELECT k, v FROM src                                    SOURCE: as the rows of ``src`` came
    SELECT k, COUNT(*) FROM src GROUP BY k, v               SOURCE: as the rows that made the changes came
    SELECT k, SUM(v) OVER (PARTITION BY v ORDER BY ts) ...  EVENT_TIME: when the watermark reached their time
    SELECT l.k, r.v FROM l JOIN r ON l.id = r.id            UNTOLD
"""

from __future__ import annotations

from enum import Enum, auto
from functools import singledispatch

from tidemill.changelog.rowkind import INSERT_ONLY
from tidemill.physical import nodes as p
from tidemill.physical.traits.event_time import has_watermark, waits_for_first
from tidemill.physical.traits.mini_batch import needs_watermark
from tidemill.plan.once import once_per_node


class Arrival(Enum):
    """``SOURCE``: a row has the position of the source row that caused it. ``EVENT_TIME``: rows are
    insert-only, and released when the watermark reaches their time. ``UNTOLD``: neither."""

    SOURCE = auto()
    EVENT_TIME = auto()
    UNTOLD = auto()


@once_per_node
def arrival(node: p.PhysicalNode) -> Arrival:
    return _arrival(node)


@singledispatch
def _arrival(node: p.PhysicalNode) -> Arrival:
    return _by_event_time(node)


@_arrival.register(p.TableSourceScan)
@_arrival.register(p.DataFrameScan)
@_arrival.register(p.Values)
def _(node: p.PhysicalNode) -> Arrival:
    return Arrival.SOURCE


@_arrival.register(p.Calc)
@_arrival.register(p.ChangelogNormalize)
@_arrival.register(p.Correlate)
@_arrival.register(p.DropUpdateBefore)
@_arrival.register(p.Exchange)
@_arrival.register(p.Expand)
@_arrival.register(p.FromChangelog)
@_arrival.register(p.LookupJoin)
@_arrival.register(p.MiniBatchAssigner)
@_arrival.register(p.ToChangelog)
@_arrival.register(p.Union)
@_arrival.register(p.WatermarkAssigner)
@_arrival.register(p.WindowTableFunction)
def _(node: p.PhysicalNode) -> Arrival:
    """Operators that keep the order. Rows of two tables come as the job reads them."""
    arrivals = {arrival(child) for child in node.inputs}
    return arrivals.pop() if len(arrivals) == 1 else Arrival.UNTOLD


@_arrival.register
def _(node: p.GroupAggregate) -> Arrival:
    """An aggregation can emit the change of every row, but shared distinct values are counted by epoch."""
    return Arrival.UNTOLD if node.reuse is not None else _of_source(node.input)


@_arrival.register
def _(node: p.Rank) -> Arrival:
    by_time = isinstance(node, p.WindowRank) or waits_for_first(node)
    return _by_event_time(node) if by_time else _of_source(node.input)


def _of_source(node: p.PhysicalNode) -> Arrival:
    """The arrival of an operator over ``node`` that passes on the positions of rows."""
    return Arrival.SOURCE if arrival(node) is Arrival.SOURCE else Arrival.UNTOLD


@_arrival.register(p.IntervalJoin)
@_arrival.register(p.Match)
def _(node: p.PhysicalNode) -> Arrival:
    """They emit rows at times that their watermark does not determine."""
    return Arrival.UNTOLD


def _by_event_time(node: p.PhysicalNode) -> Arrival:
    """The arrival of an operator that holds rows back until the watermark reaches their time."""
    waits = needs_watermark(node) and has_watermark(node) and node.traits.kinds == INSERT_ONLY
    return Arrival.EVENT_TIME if waits else Arrival.UNTOLD
