"""MATCH_RECOGNIZE by processing time: the search by event time, where the time is that of the epoch.

All rows of an epoch have the epoch's time, in the order of their arrival, and are searched at once: no row
waits or is late. For the end of WITHIN the operator sets a timer. Without WITHIN the matches do not depend on
the cut of epochs.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Vec, to_arrow
from tidemill.changelog.watermarks import END, NONE, WATERMARK_COLUMN
from tidemill.operators.api import TIMER, EpochContext, KeptRows
from tidemill.operators.match.operator import MICROSECONDS, MatchSpec
from tidemill.state.store import StateStore


@dataclass(frozen=True, kw_only=True)
class MatchByClockSpec:
    """Of ``inner`` the first column of the order is made here."""

    inner: MatchSpec

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"by-clock {self.inner.fingerprint}".encode()).hexdigest()[:16]

    @property
    def kept_rows(self) -> KeptRows:
        return self.inner.kept_rows

    def output_schema(self) -> pa.Schema:
        return self.inner.output_schema()

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        (table,) = inputs
        watermark = END if epoch.watermark == END else epoch.time
        timed = self._timed(table, epoch.time)
        output = self.inner.step((timed,), state, replace(epoch, watermark=watermark))
        wakes = state.timeline(self.inner.wake).earliest()
        if wakes is not None and wakes < END and watermark != END:
            epoch.notes[TIMER] = wakes
        return output

    def _timed(self, table: pa.Table, now: int) -> pa.Table:
        name = self.inner.order[0].name
        at = table.schema.get_field_index(name)
        kind = dict(self.inner.columns)[name]
        table = table.set_column(at, name, _repeated(now * MICROSECONDS, len(table), kind))
        return table.append_column(WATERMARK_COLUMN, _repeated(NONE, len(table), pa.int64()))


def _repeated(value: int, rows: int, kind: pa.DataType) -> pa.Array:
    return to_arrow(Vec(np.full(rows, value, np.int64)), kind)
