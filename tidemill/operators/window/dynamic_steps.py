"""One epoch of windows that grow: the emitted points, and the remaining state (see ``dynamic``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask
from tidemill.changelog.watermarks import END as FOREVER
from tidemill.changelog.watermarks import NONE, held_back
from tidemill.operators.api import EpochContext
from tidemill.operators.window.assigners.dynamic_cumulate import Growth
from tidemill.operators.window.clock import Clock
from tidemill.operators.window.store.partial_aggregates import PartialAggregates
from tidemill.operators.window.store.sessions import Open
from tidemill.operators.window.store.sliced_sessions import SHOWN, Parts, SlicedState
from tidemill.operators.window.store.views import last_places, shown_at
from tidemill.operators.window.triggers.trigger import Trigger
from tidemill.state.store import StateStore


class GrowingWindows(Protocol):
    """The interface of growing windows; ``slide`` is the step. See ``dynamic``."""

    @property
    def slide(self) -> int: ...
    @property
    def gap(self) -> int: ...
    @property
    def delayed(self) -> int: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def trigger(self) -> Trigger: ...
    @property
    def pieces(self) -> PartialAggregates: ...
    def output_schema(self) -> pa.Schema: ...
    def given(self, results: pa.Table, starts: Ints, ends: Ints, epoch: EpochContext) -> pa.Table: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """The time that has passed. Windows that end at or before ``upto`` have ended, and those at or before
    ``before`` had ended before the epoch. ``shown``: the last step that was emitted before the epoch;
    ``last``: the last step now."""

    before: int
    upto: int
    shown: int
    last: int

    @staticmethod
    def of(spec: GrowingWindows, epoch: EpochContext, lateness: int = 0) -> Passed:
        """``lateness``: for how many ms longer windows may change."""
        marks = (held_back(mark, lateness) for mark in (epoch.before, epoch.watermark))
        before, upto = map(spec.clock.ended, marks)
        passed = Passed.between(before, upto, spec.slide)
        if upto == FOREVER and not spec.gap and epoch.reached not in (NONE, FOREVER):
            latest = spec.clock.ended(epoch.reached + spec.delayed)
            return replace(passed, last=-(-latest // spec.slide) * spec.slide)
        return passed

    @staticmethod
    def between(before: int, upto: int, slide: int) -> Passed:
        """The time from ``before`` to ``upto`` passes; steps have ``slide`` ms."""
        steps = (end // slide * slide if end not in (NONE, FOREVER) else end for end in (before, upto))
        shown, last = steps
        return Passed(before=before, upto=upto, shown=shown, last=last)

    @property
    def steps(self) -> bool:
        """Whether any step has ended. At the end of the input those of late rows may be left."""
        return self.last > self.shown or self.upto == FOREVER != self.before


@dataclass(frozen=True, slots=True)
class Points:
    """The emitted points: windows, and the ends at which they emit."""

    windows: Ints
    ends: Ints

    def take(self, rows: Ints | Mask) -> Points:
        return Points(self.windows[rows], self.ends[rows])


@dataclass(frozen=True, slots=True)
class Steps:
    """One epoch of the open windows. ``passed``: ends that cannot change any more. ``reached``: ends that
    time has reached. ``came``: the pieces of the epoch's rows."""

    spec: GrowingWindows
    kept: SlicedState
    open: Open
    growth: Growth
    passed: Passed
    reached: Passed
    came: Parts

    def run(self, output_of: Callable[[Parts, Parts], pa.Table]) -> pa.Table:
        """The result of ``output_of`` for all pieces, by window and slice, and for the pieces that the open
        windows had before the epoch. Afterwards the state has the pieces of the windows that stay open."""
        final = self.growth.final()
        gone = (self.growth.heirs >= 0) | (self.growth.ends <= self.passed.upto)
        before = self.growth.of[: len(self.open)]
        needed = np.flatnonzero(self._wanted(before, final, gone))
        stored = self.kept.parts(self.open.take(needed))
        open_index = needed[stored.windows]
        parts = Parts(pieces=stored.pieces, windows=before[open_index], slices=stored.slices)
        parts = parts.and_those(self.came)
        stored_parts = Parts(pieces=stored.pieces, windows=open_index, slices=stored.slices)
        every, _ = self._inherited(parts).folded(self.spec.pieces)
        output = output_of(every, stored_parts)
        self._keep(parts, open_index, final, gone)
        return output

    def _wanted(self, before: Ints, final: Ints, gone: Mask) -> Mask:
        """The open windows whose pieces are emitted, moved or changed."""
        touched = np.zeros(len(self.growth), np.bool_)
        if self.passed.steps or self.spec.trigger.repeats:
            touched[:] = True
            return touched[before]
        touched[self.came.windows] = not self.spec.pieces.layout.additive
        touched |= gone | (np.bincount(final, minlength=len(touched)) > 1)
        touched |= np.bincount(before, minlength=len(touched)) > 1
        return touched[before]

    def _inherited(self, parts: Parts) -> Parts:
        """With what windows have of those that they go on: nothing of it before the step in which they do."""
        growth, inherited = self.growth, parts
        while True:
            rows = np.flatnonzero(growth.heirs[inherited.windows] >= 0)
            if len(rows) == 0:
                return parts
            inherited = inherited.take(rows)
            first = growth.until[inherited.windows] + self.spec.slide
            inherited = Parts(
                pieces=inherited.pieces,
                windows=growth.heirs[inherited.windows],
                slices=np.maximum(inherited.slices, first),
            )
            parts = parts.and_those(inherited)

    def results(
        self, parts: Parts, points: Points, state: StateStore, epoch: EpochContext
    ) -> tuple[pa.Table, Points] | None:
        """What is held at ``points``, where anything is; ``parts`` are folded."""
        if len(points.windows) == 0:
            return None
        return results_at(self.spec.pieces, parts, points, self.growth.ends, state, epoch)

    def points(self, parts: Parts, reached: Passed) -> Points:
        """All that windows show which have come to ``reached``, of what may have changed since."""
        starts = np.flatnonzero(np.diff(parts.windows, prepend=-1))
        behind = np.append(starts[1:], len(parts))[: len(starts)]
        return self._steps(parts.windows[starts], parts.slices[starts], parts.slices[behind - 1], reached)

    def _steps(self, windows: Ints, first: Ints, last: Ints, passed: Passed) -> Points:
        """``first`` and ``last``: the slices of ``windows``."""
        growth, slide, last_shown = self.growth, self.spec.slide, self.passed.shown
        low = first if last_shown in (NONE, FOREVER) else np.maximum(first, last_shown + slide)
        ends = growth.ends[windows]
        if self.spec.gap:
            high = np.minimum(passed.last, (ends - 1) // slide * slide)
        elif passed.upto == FOREVER:
            # At the end of the input no row is left out, however late it came, taken back since or not.
            high = np.maximum(last, self._furthest()[windows])
            high = high if passed.last == FOREVER else np.maximum(high, passed.last)
        else:
            high = np.full(len(windows), passed.last, np.int64)
        high = np.minimum(high, growth.until[windows])
        rows, steps = steps_between(low, high, slide)
        closing = np.zeros(len(windows), np.bool_)
        if self.spec.gap:
            closing = (ends <= passed.upto) & (growth.heirs[windows] < 0)
        return Points(
            np.concatenate([windows[rows], windows[closing]]),
            np.concatenate([steps, ends[closing]]),
        )

    def _furthest(self) -> Ints:
        """Of windows that nothing ends the last step in which a row that came to them counts first."""
        last_steps = np.full(len(self.growth), NONE, np.int64)
        arranged = np.where(self.open.wakes == FOREVER, NONE, self.open.wakes)
        np.maximum.at(last_steps, self.growth.of[: len(self.open)], arranged)
        np.maximum.at(last_steps, self.came.windows, self.came.slices)
        np.maximum.at(last_steps, self.growth.final(), last_steps.copy())
        return last_steps

    def _keep(self, parts: Parts, open_index: Ints, final: Ints, gone: Mask) -> None:
        """Stores the windows that stay open, and their pieces."""
        before = self.growth.of[: len(self.open)]
        after, touched = self._after(final)
        stays = ~gone[final[before]] & (after.names[final[before]] == self.open.names)
        self.kept.forget(self.open.take(~stays))
        self.kept.keep(after.take(touched & ~gone))
        if self.spec.gap:
            self.kept.look_again(after.take(self._asleep(final) & ~gone))
        self._keep_pieces(parts, open_index, final, gone, after)

    def _keep_pieces(self, parts: Parts, open_index: Ints, final: Ints, gone: Mask, after: Open) -> None:
        old = np.zeros(len(parts), np.bool_)
        old[: len(open_index)] = True
        windows = final[parts.windows]
        slices, merge = parts.slices, not self.spec.pieces.layout.additive
        if merge and self.passed.upto != NONE:
            slices = np.where(slices <= self.passed.last, SHOWN, slices)
        same = old & (slices == parts.slices) & ~gone[windows]
        same[: len(open_index)] &= after.names[windows[: len(open_index)]] == self.open.names[open_index]
        forgotten = np.flatnonzero(old & ~same)
        removed = Parts(
            pieces=parts.pieces.take(pa.array(forgotten)),
            windows=open_index[forgotten],
            slices=parts.slices[forgotten],
        )
        self.kept.write(removed, self.open, gone=True)
        stay = np.flatnonzero(~gone[windows] & (merge | ~same))
        written = Parts(pieces=parts.pieces.take(pa.array(stay)), windows=windows[stay], slices=slices[stay])
        written, numbers = written.folded(self.spec.pieces)
        if merge:
            # A record without changes is already stored.
            changed = np.ones(len(written), np.bool_)
            alone = np.bincount(numbers, minlength=len(written)) == 1
            changed[numbers[same[stay]]] = ~alone[numbers[same[stay]]]
            written = written.take(np.flatnonzero(changed))
        self.kept.write(written, after)

    def _next_look(self) -> Ints:
        """When each window should be looked at again: when it ends, then when it is shut."""
        ends, lateness = self.growth.ends, self.spec.trigger.lateness
        if not lateness:
            return ends
        return np.where((ends <= self.reached.upto) & (ends < FOREVER), ends + lateness, ends)

    def _awake(self, final: Ints) -> Ints:
        """When each is, as it was arranged."""
        awake = np.full(len(self.growth), FOREVER, np.int64)
        before = final[self.growth.of[: len(self.open)]]
        np.minimum.at(awake, before, np.where(self.open.wakes > self.reached.upto, self.open.wakes, FOREVER))
        return awake

    def _asleep(self, final: Ints) -> Mask:
        """Windows that nothing will look at in time: new ones, and those that were looked at now."""
        asleep: Mask = self._next_look() < self._awake(final)
        return asleep

    def _after(self, final: Ints) -> tuple[Open, Mask]:
        """All windows as they are now, and which of them are not as they were."""
        growth = self.growth
        before = final[growth.of[: len(self.open)]]
        names = self.kept.new_names(len(growth))
        names[before[::-1]] = self.open.names[::-1]
        # A window that never ends is not woken: the field has its last step.
        wakes = np.minimum(self._next_look(), self._awake(final)) if self.spec.gap else self._furthest()
        touched = self._asleep(final) if self.spec.gap else np.zeros(len(growth), np.bool_)
        touched[growth.of[len(self.open) :][growth.of[len(self.open) :] >= 0]] = True
        touched |= np.bincount(final, minlength=len(growth)) > 1
        touched |= np.bincount(before, minlength=len(growth)) > 1
        return (
            Open(keys=growth.keys, names=names, starts=growth.firsts, ends=growth.ends, wakes=wakes),
            touched,
        )


def steps_between(first: Ints, last: Ints, slide: int) -> tuple[Ints, Ints]:
    """All steps from each of ``first`` to its ``last`` one: the number of the pair, and the step."""
    counts = np.where(last >= first, (last - first) // slide + 1, 0)
    rows = np.repeat(np.arange(len(first)), counts)
    number = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rows, first[rows] + number * slide


def results_at(
    pieces: PartialAggregates,
    parts: Parts,
    points: Points,
    ends: Ints,
    state: StateStore,
    epoch: EpochContext,
) -> tuple[pa.Table, Points]:
    """The results of ``parts``, which are folded, at ``points``; ``ends``: of the windows."""
    starts = np.flatnonzero(np.diff(parts.windows, prepend=-1))
    # The end of a window is behind all of its slices.
    upto = np.where(points.ends == ends[points.windows], FOREVER, points.ends)
    last = last_places(parts.windows, parts.slices, points.windows, upto)
    results, shown_points = shown_at(pieces, parts.pieces, starts, last, state, epoch)
    return results, points.take(shown_points)


def shown_once(steps: Steps, state: StateStore, epoch: EpochContext, parts: Parts, stored: Parts) -> pa.Table:
    """The output of windows that show every step once; ``parts``: all that is held, folded."""
    results_and_points = (
        steps.results(parts, steps.points(parts, steps.passed), state, epoch) if len(parts) else None
    )
    if results_and_points is None:
        return steps.spec.output_schema().empty_table()
    results, points = results_and_points
    return steps.spec.given(results, steps.growth.starts[points.windows], points.ends, epoch)
