"""Aggregation in windows that show what they have before their end, or again after it.

What is counted is what ``aggregate`` counts; a row is late when the watermark before it had passed the end of
its last window by ``lateness``. A window of a key shows its result when it ends, before that and after it as
``trigger`` says, and each time what has changed since it was last shown: so the output is right at every
epoch, and what it adds up to does not depend on where epochs are cut. A window that is shut shows what it
still had to.

Of a CUMULATE an early result shows the window that ends with the row's own step, and those behind it that
have been shown: later steps would all be the same.

Cost of an epoch: the slices and windows of the rows that it has, and the windows that fire. Timers are by
time, shown results by the end of their window (see ``state.timeline``)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import contiguous, with_types
from tidemill.changelog.columns import Ints, Mask, Vec, single, to_arrow, vector
from tidemill.changelog.watermarks import END as FOREVER
from tidemill.changelog.watermarks import NONE, WATERMARK_COLUMN
from tidemill.operators.api import EpochContext
from tidemill.operators.window.assigners.slices import CalendarWindows, Kind, Windows
from tidemill.operators.window.output import MICROSECONDS
from tidemill.operators.window.shape import WindowShape
from tidemill.operators.window.store.overlapping import by_window
from tidemill.operators.window.store.pane_lookup import window_pieces
from tidemill.operators.window.store.partial_aggregates import (
    END,
    Accumulated,
    Pieces,
    at_ends,
    ends_of,
    straying,
)
from tidemill.operators.window.triggers.shown import START, distinct, places_in
from tidemill.operators.window.triggers.trigger import Horizons
from tidemill.state.store import StateStore
from tidemill.state.timeline import TimeTable

_AFTER = "$after"


@dataclass(frozen=True, kw_only=True)
class EmittingAggregateSpec(WindowShape):
    """Windows of fixed size; ``time``, where rows are ``attached`` to a window, is the end of it."""

    windows: Windows | CalendarWindows
    attached: bool = False

    @property
    def pieces(self) -> Pieces:
        return self.counted

    @property
    def whole(self) -> bool:
        """Whether a slice is a window."""
        return self.attached or self.windows.kind is Kind.TUMBLE

    @property
    def cumulates(self) -> bool:
        return self.windows.kind is Kind.CUMULATE and not self.attached

    def next_end(self, state: StateStore, ended: int) -> int | None:
        """See ``triggers.processing_time``."""
        earliest = state.timeline(self.pieces.layout).earliest()
        if earliest is None or self.whole:
            return earliest
        bounds = (np.array([x], np.int64) for x in (earliest, ended, FOREVER))
        _, ends = self.windows.containing(*bounds)
        return int(ends.min()) if len(ends) else None

    @property
    def needs_sequence(self) -> bool:
        return self.group.needs_sequence

    @property
    def fingerprint(self) -> str:
        layouts = self.pieces.layout.schema, self.shown.layout.schema
        facts = f"emitting-window-aggregate {layouts} {self.windows}"
        return hashlib.sha256(facts.encode()).hexdigest()[:16]

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """What has changed of the windows that show something in this epoch."""
        return _Step(self, state, epoch, self.trigger.horizons(self.clock, epoch)).run(inputs[0])

    def windows_of(self, ends: Ints, after: Ints, upto: Ints) -> tuple[Ints, Ints]:
        """The windows of slices that end in (``after``, ``upto``]: the slice's place, the window's end."""
        if not self.whole:
            # No window ends before its slice; NONE is too far below to be counted from.
            return self.windows.containing(ends, after, np.maximum(upto, ends - 1))
        rows = np.flatnonzero((ends > after) & (ends <= upto))
        return rows, ends[rows]

    def parts(self, ends: Ints) -> tuple[Ints, Ints]:
        """The slices of windows."""
        return (np.arange(len(ends)), ends) if self.whole else self.windows.parts(ends)


@dataclass(frozen=True, slots=True)
class _Came:
    """An epoch's rows that count: the ends of their slices, and up to where windows were shut for them."""

    rows: pa.Table
    ends: Ints
    after: Ints

    def where(self, chosen: Ints) -> _Came:
        return _Came(self.rows.take(pa.array(chosen)), self.ends[chosen], self.after[chosen])


@dataclass(frozen=True, slots=True)
class _Step:
    spec: EmittingAggregateSpec
    state: StateStore
    epoch: EpochContext
    horizons: Horizons

    def run(self, table: pa.Table) -> pa.Table:
        spec, at = self.spec, self.horizons
        slices = self.state.timeline(spec.pieces.layout)
        came = self._came(table)
        stray = came.after > at.shut_before
        spec.pieces.add(self._cut(came.where(np.flatnonzero(~stray))), slices)
        strays = [
            (value, self._cut(came.where(np.flatnonzero(came.after == value))))
            for value in np.unique(came.after[stray]).tolist()
        ]
        firing = self._firing(slices, strays)
        windows = [firing.select(self._names), self._out_of_turn(came)]
        if spec.trigger.early is not None:
            windows.append(spec.shown.ending(at.before, at.upto, self.state))
        asked = distinct(pa.concat_tables(windows))
        rest = asked.filter(pa.array(~self._fires(ends_of(asked))))
        # What came between this epoch's rows is not seen by the windows that were shut before it.
        pieces = [firing, window_pieces(spec.pieces, rest, spec.parts(ends_of(rest)), slices)]
        pieces.append(window_pieces(spec.pieces, rest, (np.arange(len(rest)), ends_of(rest)), self._strays))
        pieces += [self._behind(value, cut, rest) for value, cut in strays]
        output = spec.changed(asked, self._results(pa.concat_tables(pieces)), self.state, self.epoch)
        for value, cut in strays:
            self._keep(value, cut, slices)
        self._forget(slices)
        spec.timers.report(self.state, self.epoch)
        return output

    @property
    def _names(self) -> list[str]:
        names: list[str] = self.spec.shown.identity.names
        return names

    def _came(self, table: pa.Table) -> _Came:
        """The rows but those that are late for all their windows."""
        spec, at = self.spec, self.horizons
        table = contiguous(with_types(table, dict(spec.keys)))
        if len(table) == 0:
            return _Came(table, np.zeros(0, np.int64), np.zeros(0, np.int64))
        times: Ints = vector(table.column(spec.time)).values // MICROSECONDS
        ends = times if spec.attached else spec.windows.slice_ends(times)
        marks = spec.trigger.judged(vector(table.column(WATERMARK_COLUMN)).values)
        first, last = ends, ends
        if not spec.attached:
            first, last = spec.windows.first_ends(ends), spec.windows.last_ends(ends)
        late = (spec.clock.instants(last - 1) <= marks) & (last >= first)
        spec.add_late(table, late, self.epoch)
        after = np.full(len(ends), at.shut_before, np.int64)
        partly = np.flatnonzero(~late & (spec.clock.instants(first - 1) <= marks))
        if len(partly):
            found, places = np.unique(marks[partly], return_inverse=True)
            upto = np.array([spec.clock.ended(mark) for mark in found.tolist()], np.int64)
            after[partly] = np.maximum(at.shut_before, spec.windows.fired(upto))[places.reshape(-1)]
        return _Came(table, ends, after).where(np.flatnonzero(~late & (last >= first)))

    def _cut(self, came: _Came) -> pa.Table:
        rows = came.rows.append_column(END, to_arrow(Vec(came.ends), pa.int64()))
        return self.spec.pieces.cut(rows) if len(rows) else self.spec.pieces.schema.empty_table()

    def _fires(self, ends: Ints) -> Mask:
        """Which windows come to their end in this epoch."""
        fires: Mask = (ends > self.horizons.before) & (ends <= self.horizons.upto)
        return fires

    def _firing(self, slices: TimeTable, strays: list[tuple[int, pa.Table]]) -> pa.Table:
        """The pieces of all windows that end in this epoch."""
        spec, at = self.spec, self.horizons
        if at.upto <= at.before:
            return spec.pieces.schema.empty_table()
        first = at.before + 1 if spec.whole else NONE
        stored = spec.pieces.stored(slices.range(first, at.upto))
        parts = [self._by_window(stored, at.before, at.upto)]
        parts.append(spec.pieces.stored(self._strays.range(at.before + 1, at.upto)))
        parts += [self._by_window(cut, max(value, at.before), at.upto) for value, cut in strays]
        return pa.concat_tables(parts)

    @property
    def _strays(self) -> TimeTable:
        """By window what came when its own source had gone on beyond earlier windows of its slice, which may
        still change."""
        return self.state.timeline(straying(self.spec.pieces.layout))

    def _keep(self, after: int, cut: pa.Table, slices: TimeTable) -> None:
        """Strays for the windows that end after ``after``."""
        pieces, windows = self.spec.pieces, self.spec.windows
        if after <= self.horizons.shut:
            pieces.add(cut, slices)
        elif len(cut):
            ends = ends_of(cut)
            bound = np.full(len(ends), after, np.int64)
            places = self.spec.windows_of(ends, bound, windows.last_ends(ends))
            pieces.add(pieces.folded(at_ends(cut, *places)), self._strays)

    def _by_window(self, pieces: pa.Table, after: int, upto: int) -> pa.Table:
        """``pieces`` of slices as those of the windows that end in (``after``, ``upto``]."""
        spec, ends = self.spec, ends_of(pieces)
        if isinstance(spec.pieces, Accumulated) and not spec.whole:
            return by_window(spec.pieces, pieces, spec.windows, after, upto)
        bounds = np.full(len(ends), after, np.int64), np.full(len(ends), upto, np.int64)
        return at_ends(pieces, *spec.windows_of(ends, *bounds))

    def _behind(self, after: int, cut: pa.Table, asked: pa.Table) -> pa.Table:
        """What strays add to the windows ``asked``."""
        found = self._by_window(cut, after, int(ends_of(asked).max(initial=NONE)))
        return found.filter(pa.array(places_in(asked, found.select(self._names)) >= 0))

    def _out_of_turn(self, came: _Came) -> pa.Table:
        """The windows, and keys, that are shown now though they do not end now; some more than once. What is
        to be shown later is noted."""
        spec, at, trigger = self.spec, self.horizons, self.spec.trigger
        due = spec.timers.take(self.state, self.epoch.time)
        asked = [due.filter(pa.array(ends_of(due) > at.shut_before))]
        touched = self._touched(came)
        ends = ends_of(touched)
        for chosen, delay in ((ends <= at.before, trigger.late), (ends > at.upto, trigger.early)):
            windows = touched.filter(pa.array(chosen))
            if delay == 0:
                asked.append(windows)
            elif delay is not None:
                spec.timers.put(self.state, trigger.due(self.epoch.time, delay), windows)
        if trigger.late:
            spec.timers.remember(self.state, touched.filter(pa.array(ends <= at.before)))
            asked.append(spec.timers.shutting(self.state, at.shut))
        return pa.concat_tables(asked)

    def _touched(self, came: _Came) -> pa.Table:
        """The windows and keys that rows change, of those that may show it out of their turn."""
        spec, at, state = self.spec, self.horizons, self.state
        schema = spec.shown.identity.append(pa.field(_AFTER, pa.int64()))
        rows = came.rows.append_column(END, to_arrow(Vec(came.ends), pa.int64()))
        rows = rows.append_column(_AFTER, to_arrow(Vec(came.after), pa.int64()))
        slices = distinct(rows.select(schema.names).cast(schema))
        ends, after = ends_of(slices), vector(single(slices.column(_AFTER))).values
        slices = slices.drop_columns([_AFTER])
        early, upto = spec.trigger.early is not None, at.upto
        if early:
            upto = max(upto, spec.shown.latest(state)) if spec.cumulates else FOREVER
        bounds = np.full(len(ends), upto, np.int64)
        windows = distinct(at_ends(slices, *spec.windows_of(ends, after, bounds)))
        if not (early and spec.cumulates):
            return windows
        seen = (ends_of(windows) <= at.upto) | spec.shown.there(windows, state)
        own = slices.filter(pa.array(ends > np.maximum(after, at.upto)))
        return distinct(pa.concat_tables([windows.filter(pa.array(seen)), own]))

    def _results(self, pieces: pa.Table) -> pa.Table:
        """What windows have now: their start, end, key, and results."""
        spec = self.spec
        if len(pieces) == 0:
            schema = [*spec.shown.identity, *spec.shown.layout.columns]
            return pa.schema(schema).empty_table()
        results = spec.pieces.results(contiguous(pieces), self.state.scratch(), self.epoch)
        starts = spec.windows.starts(ends_of(results))
        return results.append_column(START, to_arrow(Vec(starts), pa.int64()))

    def _forget(self, slices: TimeTable) -> None:
        """What no window needs that can still change goes; a CUMULATE's slices that are shut become one."""
        spec, at, windows = self.spec, self.horizons, self.spec.windows
        if at.shut in (NONE, at.shut_before):
            return
        self._strays.forget_due(at.shut)
        spec.shown.table(self.state).forget_due(at.shut)
        if spec.whole or at.shut == FOREVER:
            slices.forget_due(at.shut)
            return
        slices.forget_due(windows.expired(at.shut))
        if windows.kind is Kind.CUMULATE and isinstance(spec.pieces, Accumulated):
            (settled,) = windows.fired(np.array([at.shut])).tolist()
            taken = spec.pieces.stored(slices.take_due(settled))
            if len(taken):
                spec.pieces.add(spec.pieces.settle(taken, settled), slices)
