"""Aggregation in windows that grow (DYNAMIC_CUMULATE) over input with retractions: a window consists of its
remaining rows.

A window emits at the steps that ``dynamic`` describes. A step that was emitted stays. If a row is retracted,
later steps are those of the windows that the remaining rows make: a window may begin later, end earlier, fall
apart or be gone. A row that is retracted before the watermark comes to its time leaves no trace.

State is by time (see ``store.session_times``). An epoch is divided into rounds: a row that comes after a step
was emitted which would have counted the row divides the rows before from the rows after, so that the step
shows the rows before. Such rows are late by the watermark, in a window that is open; other epochs are one
round.

Cost of a round: as an epoch of ``retractable_session``; at a step boundary all times and pieces of the open
windows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, vector
from tidemill.changelog.watermarks import END as FOREVER
from tidemill.changelog.watermarks import NONE
from tidemill.operators.api import EpochContext
from tidemill.operators.window.assigners.retractable_sessions import Times, netted
from tidemill.operators.window.assigners.spans import LATE, Spans, lowest_from_here
from tidemill.operators.window.dynamic_steps import Passed, Points, results_at, steps_between
from tidemill.operators.window.output import MICROSECONDS
from tidemill.operators.window.shape import DataDrivenShape
from tidemill.operators.window.store.partial_aggregates import ends_of
from tidemill.operators.window.store.session_times import TimesState, TimesTables, weights
from tidemill.operators.window.store.sliced_sessions import Parts
from tidemill.state.store import StateStore


@dataclass(frozen=True, kw_only=True)
class RetractableDynamicSpec(DataDrivenShape):
    """``slide`` (the step) and ``gap`` in ms. Rows come with their kinds; every step is emitted once."""

    slide: int
    gap: int

    @cached_property
    def tables(self) -> TimesTables:
        return TimesTables(keys=self.key_fields, pieces=self.counted)

    @property
    def fingerprint(self) -> str:
        facts = f"retractable-dynamic {self.tables.counted.schema} {self.slide} {self.gap}"
        return hashlib.sha256(facts.encode()).hexdigest()[:16]

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """The steps that windows emit in this epoch."""
        rows = self.arrived(inputs[0])
        rounds = [self._round(part, passed, state, epoch) for part, passed in self._rounds(rows, epoch)]
        emitted = [results for results in rounds if results is not None]
        if not emitted:
            return self.output_schema().empty_table()
        tables, starts, ends = zip(*emitted, strict=True)
        return self.given(pa.concat_tables(tables), np.concatenate(starts), np.concatenate(ends), epoch)

    def _times(self, rows: pa.Table) -> Ints:
        return vector(rows.column(self.time)).values // MICROSECONDS if len(rows) else np.zeros(0, np.int64)

    def _rounds(self, rows: pa.Table, epoch: EpochContext) -> Iterator[tuple[pa.Table, Passed]]:
        """The rows of each round, and the time that passes in it, after them."""
        before, upto = map(self.clock.ended, (epoch.before, epoch.watermark))
        passed = Passed.between(before, upto, self.slide)
        marks = np.minimum(lowest_from_here(self.reached(rows)), upto - 1 if upto != NONE else NONE)
        steps = np.where(marks == NONE, NONE, (marks + 1) // self.slide * self.slide)
        divides = (steps > passed.shown) & (self._times(rows) < steps)
        first = 0
        for boundary in np.unique(steps[divides]).tolist():
            place = int(np.searchsorted(steps, boundary))
            yield rows.slice(first, place - first), Passed.between(before, boundary, self.slide)
            first, before = place, boundary
        yield rows.slice(first), Passed.between(before, upto, self.slide)

    def _round(
        self, rows: pa.Table, passed: Passed, state: StateStore, epoch: EpochContext
    ) -> tuple[pa.Table, Ints, Ints] | None:
        """The results that are emitted, and the start and the end of the window of each; None if there are
        none."""
        asking = [rows, state.timeline(self.tables.wake).take_due(passed.upto)]
        if passed.steps:
            names = [name for name, _ in self.keys]
            asking.append(state.table(self.tables.sessions).everything().select(names))
        keys, numbers = self.keys_of(asking)
        numbers = numbers[: len(rows)]
        if len(keys.hashes) == 0:
            return None
        kept = TimesState(tables=self.tables, store=state, keys=keys, gap=self.gap)
        before, counts = kept.times()
        at = self._times(rows)
        spans = Spans.behind(before, numbers, at, at + self.gap, self.reached(rows))
        times = netted(spans, np.concatenate([counts, weights(rows)]), self.gap)
        self.note_hot(keys, numbers, before.keys, epoch)
        self.add_late(rows, times.of[len(before) :] == LATE, epoch)
        points = self._points(times, passed)
        emits = np.zeros(len(times.ends), np.bool_)
        emits[points.windows] = True
        ended = times.of_sessions(times.ends <= passed.upto)
        pieces = kept.update(before, times, rows, needed=times.of_sessions(emits), ended=ended)
        if len(pieces) == 0:
            return None
        of = ends_of(pieces)
        slices = times.at[of] // self.slide * self.slide + self.slide
        parts, _ = Parts(pieces=pieces, windows=times.sessions[of], slices=slices).folded(self.pieces)
        results, points = results_at(self.pieces, parts, points, times.ends, state, epoch)
        return results, times.starts[points.windows] // self.slide * self.slide, points.ends

    def _points(self, times: Times, passed: Passed) -> Points:
        """The steps and ends that ``passed`` brings."""
        windows = np.arange(len(times.ends))
        first = times.starts // self.slide * self.slide + self.slide
        if passed.shown not in (NONE, FOREVER):
            first = np.maximum(first, passed.shown + self.slide)
        last = np.minimum(passed.last, (times.ends - 1) // self.slide * self.slide)
        rows, steps = steps_between(first, last, self.slide)
        closing = times.ends <= passed.upto
        return Points(
            np.concatenate([windows[rows], windows[closing]]), np.concatenate([steps, times.ends[closing]])
        )
