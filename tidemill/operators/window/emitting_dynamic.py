"""Windows that grow (see ``dynamic``) and show their points before the step has ended, or again after it.

What is one window, what a row counts in and when state goes follow from the watermark held back by the
lateness that is allowed: points up to there never change again. A point between there and the watermark has
been shown and is corrected; one ahead of the watermark, the end of a step that has rows, is shown early. No
two points of a key have one end, so what has been shown is kept by key and end. A point that is none any
more is taken back at once: a window's end that moved, the step of a row that was taken back.

Cost of an epoch: the keys that have rows, timers or windows whose end has come, with all their open windows;
where a step ends, every open window.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask, Vec, single, to_arrow
from tidemill.changelog.watermarks import END as FOREVER
from tidemill.changelog.watermarks import NONE
from tidemill.operators.api import EpochContext
from tidemill.operators.window.dynamic import DynamicAggregateSpec
from tidemill.operators.window.dynamic_steps import Passed, Points, Steps
from tidemill.operators.window.emitting import EmittingShape
from tidemill.operators.window.store.partial_aggregates import END
from tidemill.operators.window.store.sliced_sessions import Parts
from tidemill.operators.window.triggers.shown import START, ShownWindows, distinct, places_in
from tidemill.state.store import StateStore


@dataclass(frozen=True, kw_only=True)
class EmittingDynamicSpec(EmittingShape, DynamicAggregateSpec):
    """The kernel; as ``DynamicAggregateSpec``, and when its windows show what they have."""

    @cached_property
    def shown(self) -> ShownWindows:
        """A point of another window stands where its start is another."""
        results = ((START, pa.int64()), *((c.name, c.result) for c in self.calls))
        return ShownWindows(
            keys=self.keys, results=results, bounds=(START,), update_before=self.update_before
        )

    @property
    def fingerprint(self) -> str:
        layouts = self.tables.counted.schema, self.shown.layout.schema
        facts = f"emitting-dynamic {layouts} {self.slide} {self.gap}"
        return hashlib.sha256(facts.encode()).hexdigest()[:16]

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """What has changed of the points that are shown in this epoch."""
        output = self._changes(self.arrived(inputs[0]), state, epoch)
        self.timers.report(state, epoch)
        return output

    def _changes(self, rows: pa.Table, state: StateStore, epoch: EpochContext) -> pa.Table:
        lateness = self.emission.lateness
        passed, reached = Passed.of(self, epoch, lateness), Passed.of(self, epoch)
        woken = state.timeline(self.tables.wake).take_due(reached.upto)
        due = self.timers.take(state, epoch.time)
        every = reached.steps or (passed.steps and self.emission.late > 0)
        kept, numbers = self.looked_at([rows, woken, due], state, every=every)
        if len(kept.keys.hashes) == 0:
            return self.output_schema().empty_table()
        own = numbers[: len(rows)]
        open_, growth, came = self.grown(rows, own, kept, passed, epoch, lateness)
        touched, waited = (np.zeros(len(kept.keys.hashes), np.bool_) for _ in range(2))
        touched[own[growth.of[len(open_) :] >= 0]] = True
        waited[numbers[len(rows) + len(woken) :]] = True
        steps = _Steps(self, kept, open_, growth, passed, came, self, reached, touched, waited)
        shows = steps.results(state, epoch)
        if passed.upto != NONE:
            self.shown.table(state).forget_due(passed.upto)
        return self.output_schema().empty_table() if shows is None else shows


@dataclass(frozen=True, slots=True)
class _Steps(Steps):
    """``reached``: what has come to its end, though it may change still. Per key whether rows ``touched`` it,
    and whether its timer was ``waited`` for."""

    emitting: EmittingDynamicSpec
    reached: Passed
    touched: Mask
    waited: Mask

    def _wanted(self, before: Ints, final: Ints, gone: Mask) -> Mask:
        return np.ones(len(before), np.bool_)

    @property
    def _looked(self) -> int:
        return self.reached.upto

    def _next_look(self) -> Ints:
        ends, lateness = self.growth.ends, self.emitting.emission.lateness
        return np.where((ends <= self.reached.upto) & (ends < FOREVER), ends + lateness, ends)

    def _show(self, parts: Parts, stored: Parts, state: StateStore, epoch: EpochContext) -> pa.Table | None:
        spec = self.emitting
        parts, _ = parts.folded(spec.pieces)
        points = self._all_points(parts)
        standing = self._told(self.growth.keys[points.windows], points.ends)
        before = self._shown_before(stored)
        lost = before.filter(pa.array(places_in(standing, before) < 0))
        asked = self._due(self.growth.keys[points.windows], points.ends)
        self._wait(points, asked, state, epoch)
        windows = distinct(pa.concat_tables([standing.filter(pa.array(asked)), lost]))
        return spec.changed(windows, self._now(parts, points.take(asked), state, epoch), state, epoch)

    def _all_points(self, parts: Parts) -> Points:
        """What can change still, and what is shown before its time."""
        reached = self._points(parts, self.reached)
        if self.emitting.emission.early is None or self.reached.upto == FOREVER:
            return reached
        windows, slices = self._ahead(parts.windows, parts.slices, self.growth.ends, self.reached)
        live = self.growth.heirs[windows] < 0
        return Points(
            np.concatenate([reached.windows, windows[live]]), np.concatenate([reached.ends, slices[live]])
        )

    def _ahead(self, windows: Ints, slices: Ints, ends: Ints, reached: Passed) -> tuple[Ints, Ints]:
        """Of slices that time has not come to the points at which they are shown."""
        own = np.minimum(slices, ends[windows])
        ahead = (slices > reached.last) & (own > reached.upto)
        return windows[ahead], own[ahead]

    def _shown_before(self, stored: Parts) -> pa.Table:
        """Points of the open windows that may have been shown and may be none any more."""
        last = Passed(
            before=NONE, upto=self.reached.before, shown=NONE, last=max(self.reached.shown, self.passed.shown)
        )
        of, ends = self._ahead(stored.windows, stored.slices, self.open.ends, last)
        keys = np.concatenate([self.open.keys[of], self.open.keys])
        ends = np.concatenate([ends, self.open.ends])
        changeable = (ends > self.passed.before) & (ends < FOREVER)
        return distinct(self._told(keys[changeable], ends[changeable]))

    def _told(self, keys: Ints, ends: Ints) -> pa.Table:
        columns = [to_arrow(Vec(ends), pa.int64()), *self.kept.keys.take(keys)]
        return pa.table(columns, schema=self.emitting.shown.identity)

    def _due(self, keys: Ints, ends: Ints) -> Mask:
        """Which points are shown: those that come to their end, those that can change no more, and as the
        emission says."""
        emission, touched, waited = self.emitting.emission, self.touched[keys], self.waited[keys]
        ended, had_ended = ends <= self.reached.upto, ends <= self.reached.before
        asked = (ended & ~had_ended) | (ends <= self.passed.upto) | waited
        asked |= had_ended & touched & (emission.late == 0)
        shows: Mask = asked | (~ended & touched & (emission.early == 0))
        return shows

    def _wait(self, points: Points, asked: Mask, state: StateStore, epoch: EpochContext) -> None:
        """Timers of what has changed and is not shown yet, by key."""
        spec, keys = self.emitting, self.growth.keys[points.windows]
        waits = self.touched[keys] & ~asked
        ended = points.ends <= self.reached.upto
        for chosen, delay in ((ended, spec.emission.late), (~ended, spec.emission.early)):
            numbers = np.unique(keys[waits & chosen])
            if delay and len(numbers):
                due = spec.emission.due(epoch.time, delay)
                spec.timers.put(state, due, self._told(numbers, np.zeros(len(numbers), np.int64)))

    def _now(self, parts: Parts, points: Points, state: StateStore, epoch: EpochContext) -> pa.Table:
        """What stands at ``points``."""
        spec = self.emitting
        schema = pa.schema([*spec.shown.identity, *spec.shown.layout.columns])
        found = self._results(parts, points, state, epoch) if len(parts) else None
        if found is None:
            return schema.empty_table()
        results, points = found
        columns = {name: single(results.column(name)) for name in results.column_names}
        columns[END] = to_arrow(Vec(points.ends), pa.int64())
        columns[START] = to_arrow(Vec(self.growth.starts[points.windows]), pa.int64())
        return pa.table([columns[name] for name in schema.names], schema=schema)
