"""Early and late results of windows made of slices (see ``aggregate``).

A window of a key emits its result at its end, and before and after it as the trigger says. Each time it emits
the changes since the last emission. So the output is right at every epoch, and its sum does not depend on the
cut of epochs. A window that is shut emits its pending changes.

An early result of CUMULATE emits the window of the row's own step, and later windows that were already
emitted, because later steps would all be equal.

Cost of an epoch: the slices and windows of its rows, and the windows that end. Timers are stored by time,
emitted results by the end of their window (see ``state.timeline``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import contiguous
from tidemill.changelog.columns import Ints, Mask, Vec, single, to_arrow, vector
from tidemill.changelog.watermarks import END as FOREVER
from tidemill.changelog.watermarks import NONE
from tidemill.operators.api import EpochContext
from tidemill.operators.window.store.pane_lookup import window_pieces
from tidemill.operators.window.store.partial_aggregates import END, PartialAggregates, at_ends, ends_of
from tidemill.operators.window.store.sliced import Slices
from tidemill.operators.window.triggers.shown import START, ShownWindows, distinct, places_in
from tidemill.operators.window.triggers.timers import Timers
from tidemill.operators.window.triggers.trigger import Trigger
from tidemill.state.store import StateStore

_AFTER = "$after"


class SlicedWindows(Protocol):
    """The interface of sliced windows: see ``aggregate``."""

    @property
    def trigger(self) -> Trigger: ...
    @property
    def pieces(self) -> PartialAggregates: ...
    @property
    def cumulates(self) -> bool: ...
    @property
    def shown(self) -> ShownWindows: ...
    @property
    def timers(self) -> Timers: ...
    def cut(self, rows: pa.Table, ends: Ints, chosen: Mask) -> pa.Table: ...
    def changed(self, asked: pa.Table, now: pa.Table, state: StateStore, epoch: EpochContext) -> pa.Table: ...
    def nothing_changed(self) -> pa.Table: ...


@dataclass(frozen=True, slots=True)
class Came:
    """The counted rows of an epoch: the ends of their slices, and the last window end that was shut for
    each."""

    rows: pa.Table
    ends: Ints
    after: Ints


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of one epoch."""

    spec: SlicedWindows
    store: Slices
    state: StateStore
    epoch: EpochContext

    def of(self, came: Came) -> pa.Table:
        """The changes of the windows that emit in this epoch."""
        spec, store, at = self.spec, self.store, self.store.at
        stray = came.after > at.shut_before
        spec.pieces.add(spec.cut(came.rows, came.ends, ~stray), store.slices)
        strays = [
            (value, spec.cut(came.rows, came.ends, came.after == value))
            for value in np.unique(came.after[stray]).tolist()
        ]
        firing = self._firing(strays)
        windows = [firing.select(self._names), self._out_of_turn(came)]
        if spec.trigger.early is not None:
            windows.append(spec.shown.ending(at.before, at.upto, self.state))
        asked = distinct(pa.concat_tables(windows))
        not_firing = asked.filter(pa.array(~self._fires(ends_of(asked))))
        # Windows that were shut before this epoch do not see its rows.
        pieces = [
            firing,
            *self._held(not_firing),
            *(self._behind(value, cut, not_firing) for value, cut in strays),
        ]
        output = spec.changed(asked, self._results(pa.concat_tables(pieces)), self.state, self.epoch)
        for value, cut in strays:
            store.keep_strays(cut, value)
        store.forget()
        if at.shut not in (NONE, at.shut_before):
            spec.shown.table(self.state).forget_due(at.shut)
        spec.timers.report(self.state, self.epoch)
        return output

    def _held(self, windows: pa.Table) -> Iterator[pa.Table]:
        """The stored pieces of ``windows``, by slice and by window."""
        ends, store = ends_of(windows), self.store
        each = np.arange(len(windows)), ends
        yield window_pieces(
            self.spec.pieces, windows, each if store.whole else store.windows.parts(ends), store.slices
        )
        yield window_pieces(self.spec.pieces, windows, each, store.strays)

    @property
    def _names(self) -> list[str]:
        names: list[str] = self.spec.shown.identity.names
        return names

    def _fires(self, ends: Ints) -> Mask:
        """Which windows come to their end in this epoch."""
        fires: Mask = (ends > self.store.at.before) & (ends <= self.store.at.upto)
        return fires

    def _firing(self, strays: list[tuple[int, pa.Table]]) -> pa.Table:
        """The pieces of all windows that end in this epoch."""
        pieces, store, at = self.spec.pieces, self.store, self.store.at
        if at.upto <= at.before:
            return pieces.schema.empty_table()
        first = at.before + 1 if store.whole else NONE
        stored = pieces.stored(store.slices.range(first, at.upto))
        parts = [store.by_window(stored, at.before, at.upto)]
        parts.append(pieces.stored(store.strays.range(at.before + 1, at.upto)))
        parts += [store.by_window(cut, max(value, at.before), at.upto) for value, cut in strays]
        return pa.concat_tables(parts)

    def _behind(self, after: int, cut: pa.Table, windows: pa.Table) -> pa.Table:
        """The pieces that strays add to ``windows``."""
        pieces = self.store.by_window(cut, after, int(ends_of(windows).max(initial=NONE)))
        return pieces.filter(pa.array(places_in(windows, pieces.select(self._names)) >= 0))

    def _out_of_turn(self, came: Came) -> pa.Table:
        """The windows and keys that emit now although they do not end now, possibly repeated. Later emissions
        get timers."""
        spec, at, trigger = self.spec, self.store.at, self.spec.trigger
        due = spec.timers.take(self.state, self.epoch.time)
        window_parts = [due.filter(pa.array(ends_of(due) > at.shut_before))]
        touched = self._touched(came)
        ends = ends_of(touched)
        ended, ahead = (touched.filter(pa.array(where)) for where in (ends <= at.before, ends > at.upto))
        window_parts += spec.timers.wait(trigger, ended, ahead, self.state, self.epoch.time)
        if trigger.late:
            spec.timers.remember(self.state, ended)
            window_parts.append(spec.timers.shutting(self.state, at.shut))
        return pa.concat_tables(window_parts)

    def _touched(self, came: Came) -> pa.Table:
        """The windows and keys that rows change, if they may emit before or after their end."""
        spec, at, state = self.spec, self.store.at, self.state
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
        windows = distinct(at_ends(slices, *self.store.containing(ends, after, bounds)))
        if not (early and spec.cumulates):
            return windows
        is_visible = (ends_of(windows) <= at.upto) | spec.shown.there(windows, state)
        own = slices.filter(pa.array(ends > np.maximum(after, at.upto)))
        return distinct(pa.concat_tables([windows.filter(pa.array(is_visible)), own]))

    def _results(self, pieces: pa.Table) -> pa.Table:
        """The current start, end, key and results of windows."""
        spec = self.spec
        if len(pieces) == 0:
            return spec.nothing_changed()
        results = spec.pieces.results(contiguous(pieces), self.state.scratch(), self.epoch)
        starts = self.store.windows.starts(ends_of(results))
        return results.append_column(START, to_arrow(Vec(starts), pa.int64()))
