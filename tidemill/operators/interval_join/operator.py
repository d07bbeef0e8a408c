"""Interval joins: the times of two rows that match are a bounded distance apart, so each row's wait ends.

A left row of time t matches right rows of times from t - ``upper`` to t - ``lower``. It waits until the
watermark has passed t - ``lower`` (a right row: t + ``upper``). Then it is removed, and an outer side emits
it with NULLs if nothing matched it. So the size of the state follows the width of the interval, and the
result is append-only.

A pair is emitted if neither row was removed before the other came: ``$wm``, the watermark of the rows before
a row, must not be beyond the end of its partner's wait. This depends only on the two rows, not on the cut of
epochs or on which side was read first. Rows in time always find their partners.

The output is behind by ``delay``, because a row may be emitted that long after its time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import one_by_one
from tidemill.changelog.watermarks import NONE, WATERMARK_COLUMN
from tidemill.operators.api import EpochContext
from tidemill.operators.interval_join.arrived import Arrived
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

    def take_in(self, port: int, rows: pa.Table, state: StateStore, epoch: EpochContext) -> None:
        """See ``operators.api.TakesRows``; of an inner join, whose rows come before any watermark."""
        rows = one_by_one(rows)
        marks = pa.array(np.full(len(rows), NONE, np.int64))
        arrived, can = Arrived.of(self, port, rows.append_column(WATERMARK_COLUMN, marks), epoch)
        arrived.take(can).keep(self, port, state.timeline(self.rows[port]))
