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
from tidemill.physical.traits.event_time import has_watermark
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
    return arrival_of(node)


@singledispatch
def arrival_of(node: p.PhysicalNode) -> Arrival:
    """The arrival of the rows of ``node``, from its inputs' (``arrival``). By default ``by_event_time``."""
    return by_event_time(node)


def as_inputs(node: p.PhysicalNode) -> Arrival:
    """The arrival of an operator that keeps the order. Rows of two tables come as the job reads them."""
    arrivals = {arrival(child) for child in node.inputs}
    return arrivals.pop() if len(arrivals) == 1 else Arrival.UNTOLD


def as_source(node: p.PhysicalNode) -> Arrival:
    """The arrival of an operator over ``node`` that passes on the positions of rows."""
    return Arrival.SOURCE if arrival(node) is Arrival.SOURCE else Arrival.UNTOLD


def by_event_time(node: p.PhysicalNode) -> Arrival:
    """The arrival of an operator that holds rows back until the watermark reaches their time."""
    waits = needs_watermark(node) and has_watermark(node) and node.traits.kinds == INSERT_ONLY
    return Arrival.EVENT_TIME if waits else Arrival.UNTOLD
