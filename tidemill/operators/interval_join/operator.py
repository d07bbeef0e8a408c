"""Interval joins: the times of two rows that match are a bounded distance apart, so each row's wait ends.

A left row of time t matches right rows of times from t - ``upper`` to t - ``lower``. It is waited for
until the watermark has passed t - ``lower`` (a right row: t + ``upper``); then it is forgotten, and an outer
side shows it with NULLs if nothing matched it. So what is kept follows the width of the interval, and the
result is append-only.

A pair comes out if neither row was forgotten when the other came: ``$wm``, the watermark that the rows before
it had reached, must not be beyond the end of its partner's wait. That is a matter of the two rows alone,
never of where epochs are cut or which side was read first. Rows that are on time always find their partners.

What goes on is behind by ``delay``: a row can be shown so long after its time.

Cost of an epoch: a sort of its rows, the pairs, the kept rows of their keys in the stretches of time they
reach, and what ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from tidemill.operators.api import EpochContext
from tidemill.operators.interval_join.shape import IntervalShape
from tidemill.operators.interval_join.step import IntervalStep
from tidemill.state.store import StateStore


@dataclass(frozen=True, kw_only=True)
class IntervalJoinSpec(IntervalShape):
    """The kernel of an interval join by event time."""

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """The pairs that the epoch makes, and the rows of outer sides whose wait ends in it."""
        left, right = inputs
        return IntervalStep(self, state, epoch).run(left, right)
