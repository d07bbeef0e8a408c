"""Aggregation in windows: one row per window and key, when the window's end has come.

A row counts in its slice, and so in every window with that slice that has not fired: it is late for those
whose end the watermark *before the row* had reached, wherever the epoch was cut. Fired windows are the
ones whose end lies between the watermarks before and after the epoch; CUMULATE fires at each step, rows
or not.

Cost of an epoch: the slices it touches, and the pieces of the windows that fire. What no later window needs
goes in the same step, without being written (see ``state.timeline``). A CUMULATE's slices become one
once they have fired.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import contiguous, with_types
from tidemill.changelog.columns import Ints, Mask, Vec, to_arrow, vector
from tidemill.changelog.watermarks import END as FOREVER
from tidemill.changelog.watermarks import NONE, WATERMARK_COLUMN
from tidemill.operators.api import EpochContext
from tidemill.operators.window.output import MICROSECONDS
from tidemill.operators.window.pieces import END, Accumulated, Pieces, at_ends, ends_of, pieces_of
from tidemill.operators.window.shape import LATE, WindowShape
from tidemill.operators.window.slices import Kind, Windows
from tidemill.state.store import StateStore
from tidemill.state.timeline import TimeTable


@dataclass(frozen=True, kw_only=True)
class WindowAggregateSpec(WindowShape):
    """``time``: where rows are ``attached`` to a window, the end of it."""

    windows: Windows
    attached: bool = False

    @cached_property
    def pieces(self) -> Pieces:
        return pieces_of(self.group, self.keys)

    @property
    def whole(self) -> bool:
        """Whether a slice is a window."""
        return self.attached or self.windows.kind is Kind.TUMBLE

    @property
    def needs_sequence(self) -> bool:
        return self.group.needs_sequence

    @property
    def fingerprint(self) -> str:
        facts = f"window-aggregate {self.pieces.layout.schema} {self.windows}"
        return hashlib.sha256(facts.encode()).hexdigest()[:16]

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """The results of the windows that fire in this epoch."""
        (table,) = inputs
        slices = state.timeline(self.pieces.layout)
        firing = _Firing(self, slices, self.clock.ended(epoch.before), self.clock.ended(epoch.watermark))
        rows, ends, after = self._counted(table, firing.before, epoch)
        clean = after <= firing.before
        self.pieces.add(self._cut(rows, ends, clean), slices)
        fired = [firing.stored()]
        for value in np.unique(after[~clean]).tolist():
            # Windows that fired between this epoch's rows do not see the rows behind them.
            strays = self._cut(rows, ends, after == value)
            fired.append(firing.windows(strays, value))
            self.pieces.add(strays, slices)
        firing.forget()
        return self._shown(pa.concat_tables(fired), state, epoch)

    def _counted(self, table: pa.Table, before: int, epoch: EpochContext) -> tuple[pa.Table, Ints, Ints]:
        """The rows that are not late for all their windows; their slices' ends; and up to where windows had
        fired when a row came (``before`` where none of its own had)."""
        table = contiguous(with_types(table, dict(self.keys)))
        if len(table) == 0:
            return table, np.zeros(0, np.int64), np.zeros(0, np.int64)
        times: Ints = vector(table.column(self.time)).values // MICROSECONDS
        marks: Ints = vector(table.column(WATERMARK_COLUMN)).values
        ends = times if self.attached else self.windows.slice_ends(times)
        first, last = ends, ends
        if not self.attached:
            first, last = self.windows.first_ends(ends), self.windows.last_ends(ends)
        late = (self.clock.instants(last - 1) <= marks) | (last < first)
        after = np.full(len(ends), before, np.int64)
        partly = np.flatnonzero(~late & (self.clock.instants(first - 1) <= marks))
        if len(partly):
            distinct, places = np.unique(marks[partly], return_inverse=True)
            upto = np.array([self.clock.ended(mark) for mark in distinct.tolist()], np.int64)
            after[partly] = np.maximum(before, self.windows.fired(upto))[places.reshape(-1)]
        if late.any():
            epoch.notes[LATE] = epoch.notes.get(LATE, 0) + int(np.count_nonzero(late & (last >= first)))
            kept = np.flatnonzero(~late)
            table, ends, after = table.take(pa.array(kept)), ends[kept], after[kept]
        return table, ends, after

    def _cut(self, rows: pa.Table, ends: Ints, chosen: Mask) -> pa.Table:
        rows = rows.append_column(END, to_arrow(Vec(ends), pa.int64()))
        if not chosen.all():
            rows = rows.take(pa.array(np.flatnonzero(chosen)))
        return self.pieces.cut(rows)

    def _shown(self, fired: pa.Table, state: StateStore, epoch: EpochContext) -> pa.Table:
        if len(fired) == 0:
            return self.output_schema().empty_table()
        results = self.pieces.results(contiguous(fired), state.scratch(), epoch)
        ends = ends_of(results)
        return self.columns.shown(
            results,
            self.windows.starts(ends),
            ends,
            self.clock.instants(ends - 1),
            self.output_schema(),
            epoch,
        )


@dataclass(frozen=True, slots=True)
class _Firing:
    """The windows that end in (``before``, ``upto``], and the slices they are made of."""

    spec: WindowAggregateSpec
    slices: TimeTable
    before: int
    upto: int

    def stored(self) -> pa.Table:
        """The pieces that are kept, by window."""
        if self.spec.whole:
            return self.spec.pieces.stored(self.slices.take_due(self.upto))
        if self.upto <= self.before:
            return self.spec.pieces.stored(self.slices.range(1, 0))
        return self.windows(self.spec.pieces.stored(self.slices.range(NONE, self.upto)), self.before)

    def windows(self, pieces: pa.Table, after: int) -> pa.Table:
        """``pieces`` by window, of those that end after ``after``."""
        ends = ends_of(pieces)
        bounds = np.full(len(ends), after, np.int64), np.full(len(ends), self.upto, np.int64)
        return at_ends(pieces, *self.spec.windows.containing(ends, *bounds))

    def forget(self) -> None:
        """What no later window needs goes; a CUMULATE's slices that have fired become one."""
        windows, pieces = self.spec.windows, self.spec.pieces
        if self.upto == FOREVER:
            self.slices.take_due(FOREVER)
        if self.spec.whole or self.upto in (NONE, FOREVER):
            return
        self.slices.take_due(windows.expired(self.upto))
        if windows.kind is Kind.CUMULATE and isinstance(pieces, Accumulated):
            (settled,) = windows.fired(np.array([self.upto])).tolist()
            if settled > windows.expired(self.upto):
                taken = pieces.stored(self.slices.take_due(settled))
                pieces.add(pieces.settle(taken, settled), self.slices)
