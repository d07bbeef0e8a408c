"""Windows by processing time: those by event time, where the time is the clock's.

All rows of an epoch come at the time that its plan names, however long it takes and however often it runs
again. What the watermark is to windows by event time is here the millisecond before: more rows may come at
the time itself. So no row is late, and a window fires in the first epoch at or after its end, for which the
operator sets a timer. When all sources have ended what is open fires, too.

Where rows carry the window that they are in (``time`` is ''), it was cut a moment after the epoch's time."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Vec, to_arrow
from tidemill.changelog.watermarks import END as FOREVER
from tidemill.changelog.watermarks import NONE, WATERMARK_COLUMN
from tidemill.operators.api import TIMER, EpochContext, OperatorSpec
from tidemill.operators.window.aggregate import WindowAggregateSpec
from tidemill.operators.window.clock import Clock
from tidemill.operators.window.emitting import EmittingAggregateSpec
from tidemill.operators.window.emitting_buffer import EmittingBufferSpec
from tidemill.operators.window.emitting_session import EmittingSessionSpec
from tidemill.operators.window.output import MICROSECONDS
from tidemill.operators.window.session import SessionAggregateSpec
from tidemill.operators.window.window_buffer import WindowBufferSpec
from tidemill.state.store import StateStore


@dataclass(frozen=True, kw_only=True)
class ByClockSpec:
    """``inner`` works by event time; ``time``: the column by which it cuts windows, made here."""

    inner: OperatorSpec
    clock: Clock
    time: str = ""

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"by-clock {self.inner.fingerprint}".encode()).hexdigest()[:16]

    def output_schema(self) -> pa.Schema:
        return self.inner.output_schema()

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        output = self.inner.step(tuple(self._timed(table, epoch) for table in inputs), state, epoch)
        end = next_end(self.inner, state, self.clock.ended(epoch.watermark))
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


@singledispatch
def next_end(spec: object, state: StateStore, ended: int) -> int | None:
    """The end of the next window after ``ended`` that has anything to show, in local time."""
    raise TypeError(f"{type(spec).__name__} has no windows")


@next_end.register(WindowAggregateSpec)
@next_end.register(EmittingAggregateSpec)
def _(spec: WindowAggregateSpec | EmittingAggregateSpec, state: StateStore, ended: int) -> int | None:
    earliest = state.timeline(spec.pieces.layout).earliest()
    if earliest is None or spec.whole:
        return earliest
    bounds = (np.array([x], np.int64) for x in (earliest, ended, FOREVER))
    _, ends = spec.windows.containing(*bounds)
    return int(ends.min()) if len(ends) else None


@next_end.register
def _(spec: EmittingSessionSpec, state: StateStore, ended: int) -> int | None:
    """By the clock what has ended is shut."""
    earliest = state.timeline(spec.tables.wake).earliest()
    return None if earliest is None else spec.clock.ended(earliest)


@next_end.register
def _(spec: SessionAggregateSpec, state: StateStore, ended: int) -> int | None:
    return state.timeline(spec.tables.wake).earliest()


@next_end.register(WindowBufferSpec)
@next_end.register(EmittingBufferSpec)
def _(spec: WindowBufferSpec | EmittingBufferSpec, state: StateStore, ended: int) -> int | None:
    found = (state.timeline(port.waiting.layout).earliest() for port in spec.ports)
    return min((end for end in found if end is not None), default=None)
