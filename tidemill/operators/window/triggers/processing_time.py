"""Windows by processing time: those by event time, where the time is the clock's.

All rows of an epoch come at the time that its plan names, however long it takes and however often it runs
again. What the watermark is to windows by event time is here the millisecond before: more rows may come at
the time itself. So no row is late, and a window fires in the first epoch at or after its end, for which the
operator sets a timer. When all sources have ended what is open fires, too.

Where rows carry the window that they are in (``time`` is ''), it was cut a moment after the epoch's time."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Vec, to_arrow
from tidemill.changelog.watermarks import END as FOREVER
from tidemill.changelog.watermarks import NONE, WATERMARK_COLUMN
from tidemill.operators.api import TIMER, EpochContext, Evolving, OperatorSpec
from tidemill.operators.window.clock import Clock
from tidemill.operators.window.output import MICROSECONDS
from tidemill.state.layout import Layout
from tidemill.state.store import StateStore


class Windowed(OperatorSpec, Protocol):
    """A kernel of windows by event time."""

    def next_end(self, state: StateStore, ended: int) -> int | None:
        """The end of the next window after ``ended`` that has anything to show, in local time."""
        ...


@dataclass(frozen=True, kw_only=True)
class ByClockSpec:
    """``inner`` works by event time; ``time``: the column by which it cuts windows, made here."""

    inner: Windowed
    clock: Clock
    time: str = ""

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"by-clock {self.inner.fingerprint}".encode()).hexdigest()[:16]

    @property
    def evolving(self) -> tuple[Layout, ...]:
        """See ``operators.api.Evolving``."""
        return self.inner.evolving if isinstance(self.inner, Evolving) else ()

    def output_schema(self) -> pa.Schema:
        return self.inner.output_schema()

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        output = self.inner.step(tuple(self._timed(table, epoch) for table in inputs), state, epoch)
        end = self.inner.next_end(state, self.clock.ended(epoch.watermark))
        if end is not None and epoch.watermark != FOREVER:
            (last,) = self.clock.instants(np.array([end - 1])).tolist()
            epoch.notes[TIMER] = min(last + 1, epoch.notes.get(TIMER, FOREVER))
        return output

    def _timed(self, table: pa.Table, epoch: EpochContext) -> pa.Table:
        if self.time:
            now = self.clock.local(epoch.time) * MICROSECONDS
            table = table.append_column(self.time, _repeated(now, len(table), pa.timestamp("us")))
        return table.append_column(WATERMARK_COLUMN, _repeated(NONE, len(table), pa.int64()))


def _repeated(value: int, rows: int, kind: pa.DataType) -> pa.Array:
    return to_arrow(Vec(np.full(rows, value, np.int64)), kind)
