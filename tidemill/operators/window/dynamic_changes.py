"""Early and late results of windows that grow (see ``dynamic``).

A point is an end at which a window emits. Points up to the watermark minus the allowed lateness never change
again. Points between there and the watermark were emitted, and are corrected. A point ahead of the watermark,
the end of a step with rows, is emitted early. A key's points have different ends, so emitted results are
stored by key and end. A point that ceases to exist is retracted at once: a window's end that moved, or the
step of a retracted row.

Cost of an epoch: the keys that have rows, timers or ending windows, with all their open windows; at a step
boundary every open window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask, Vec, single, to_arrow
from tidemill.changelog.watermarks import END as FOREVER
from tidemill.changelog.watermarks import NONE
from tidemill.operators.api import EpochContext
from tidemill.operators.window.dynamic_steps import GrowingWindows, Passed, Points, Steps
from tidemill.operators.window.store.partial_aggregates import END
from tidemill.operators.window.store.sliced_sessions import Parts
from tidemill.operators.window.triggers.shown import START, ShownWindows, distinct, places_in
from tidemill.operators.window.triggers.timers import Timers
from tidemill.state.store import StateStore


class ShownAgain(GrowingWindows, Protocol):
    """Windows that grow, and remember what they have shown."""

    @property
    def shown(self) -> ShownWindows: ...
    @property
    def timers(self) -> Timers: ...
    def changed(self, asked: pa.Table, now: pa.Table, state: StateStore, epoch: EpochContext) -> pa.Table: ...
    def nothing_changed(self) -> pa.Table: ...


@dataclass(frozen=True, slots=True)
class Changes:
    """``touched`` and ``waited``: per key whether rows came to it, and whether its timer was due."""

    spec: ShownAgain
    steps: Steps
    touched: Mask
    waited: Mask

    @staticmethod
    def of(spec: ShownAgain, steps: Steps, touched: Ints, waited: Ints) -> Changes:
        """``touched`` and ``waited``: the numbers of these keys."""
        marks = [np.zeros(len(steps.kept.keys.hashes), np.bool_) for _ in range(2)]
        for mark, numbers in zip(marks, (touched, waited), strict=True):
            mark[numbers] = True
        return Changes(spec, steps, *marks)

    def shown(self, state: StateStore, epoch: EpochContext, parts: Parts, stored: Parts) -> pa.Table:
        """``parts``: all that is held, folded; ``stored``: what was before the epoch, of the open windows."""
        spec, keys = self.spec, self.steps.growth.keys
        points = self._all_points(parts)
        standing = self._told(keys[points.windows], points.ends)
        before = self._shown_before(stored)
        lost = before.filter(pa.array(places_in(standing, before) < 0))
        is_due = self._due(keys[points.windows], points.ends)
        self._wait(points, is_due, state, epoch)
        windows = distinct(pa.concat_tables([standing.filter(pa.array(is_due)), lost]))
        return spec.changed(windows, self._now(parts, points.take(is_due), state, epoch), state, epoch)

    def _all_points(self, parts: Parts) -> Points:
        """What can change still, and what is shown before its time."""
        reached = self.steps.points(parts, self.steps.reached)
        if self.spec.trigger.early is None or self.steps.reached.upto == FOREVER:
            return reached
        windows, slices = self._ahead(parts.windows, parts.slices, self.steps.growth.ends, self.steps.reached)
        live = self.steps.growth.heirs[windows] < 0
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
        reached, passed = self.steps.reached, self.steps.passed
        last = Passed(before=NONE, upto=reached.before, shown=NONE, last=max(reached.shown, passed.shown))
        of, ends = self._ahead(stored.windows, stored.slices, self.steps.open.ends, last)
        keys = np.concatenate([self.steps.open.keys[of], self.steps.open.keys])
        ends = np.concatenate([ends, self.steps.open.ends])
        changeable = (ends > self.steps.passed.before) & (ends < FOREVER)
        return distinct(self._told(keys[changeable], ends[changeable]))

    def _told(self, keys: Ints, ends: Ints) -> pa.Table:
        columns = [to_arrow(Vec(ends), pa.int64()), *self.steps.kept.keys.take(keys)]
        return pa.table(columns, schema=self.spec.shown.identity)

    def _due(self, keys: Ints, ends: Ints) -> Mask:
        """Which points are shown: those that come to their end, those that can change no more, and as the
        trigger says."""
        trigger, touched, waited = self.spec.trigger, self.touched[keys], self.waited[keys]
        ended, had_ended = ends <= self.steps.reached.upto, ends <= self.steps.reached.before
        is_due = (ended & ~had_ended) | (ends <= self.steps.passed.upto) | waited
        is_due |= had_ended & touched & (trigger.late == 0)
        shows: Mask = is_due | (~ended & touched & (trigger.early == 0))
        return shows

    def _wait(self, points: Points, is_due: Mask, state: StateStore, epoch: EpochContext) -> None:
        """Timers of what has changed and is not shown yet, by key."""
        spec, keys = self.spec, self.steps.growth.keys[points.windows]
        waits = self.touched[keys] & ~is_due
        ended = points.ends <= self.steps.reached.upto
        numbers = (np.unique(keys[waits & where]) for where in (ended, ~ended))
        over, ahead = (self._told(n, np.zeros(len(n), np.int64)) for n in numbers)
        spec.timers.wait(spec.trigger, over, ahead, state, epoch.time)

    def _now(self, parts: Parts, points: Points, state: StateStore, epoch: EpochContext) -> pa.Table:
        """What stands at ``points``."""
        spec = self.spec
        nothing = spec.nothing_changed()
        results_and_points = self.steps.results(parts, points, state, epoch) if len(parts) else None
        if results_and_points is None:
            return nothing
        results, points = results_and_points
        columns = {name: single(results.column(name)) for name in results.column_names}
        columns[END] = to_arrow(Vec(points.ends), pa.int64())
        columns[START] = to_arrow(Vec(self.steps.growth.starts[points.windows]), pa.int64())
        return pa.table([columns[name] for name in nothing.column_names], schema=nothing.schema)
