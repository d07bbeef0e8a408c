"""Aggregation in windows that grow (DYNAMIC_CUMULATE): one row per window, key and step while it is open.

A key's window opens at its first row's time, floored to the step. At every later step boundary it emits its
content from its start to the boundary, with or without new rows, and at its end (a gap after its last row)
all of it. A row counts in the steps after its time that were not emitted when it came. It is late if it meets
no window and its own span has ended. Without a gap windows never end: at the end of the input they emit the
current step.

For early and late results see ``dynamic_changes``: there the watermark minus the allowed lateness determines
the windows, the steps of a row, and the removal of state.

Cost of an epoch without a step boundary: the keys that have rows or whose time has come. At a boundary every
open window emits a row: its pieces are read, and the pieces of slices with rows are written.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Vec, to_arrow, vector
from tidemill.changelog.watermarks import END as FOREVER
from tidemill.changelog.watermarks import NONE
from tidemill.operators.api import EpochContext
from tidemill.operators.window.assigners.dynamic_cumulate import Growth, grow
from tidemill.operators.window.assigners.spans import Spans
from tidemill.operators.window.dynamic_changes import Changes
from tidemill.operators.window.dynamic_steps import Passed, Steps, shown_once
from tidemill.operators.window.output import MICROSECONDS
from tidemill.operators.window.shape import DataDrivenShape
from tidemill.operators.window.store.partial_aggregates import END, ends_of
from tidemill.operators.window.store.sessions import Open
from tidemill.operators.window.store.sliced_sessions import Parts, SlicedState, SlicedTables, numbered
from tidemill.operators.window.triggers.shown import START
from tidemill.state.store import StateStore


@dataclass(frozen=True, kw_only=True)
class DynamicAggregateSpec(DataDrivenShape):
    """``slide`` (the step) and ``gap`` in ms; without a gap (0) windows never end, but for ``state_ttl``.
    ``delayed``: how far the watermark is behind the latest time of a row."""

    slide: int
    gap: int = 0
    delayed: int = 0
    state_ttl: int = 0

    moving: ClassVar[tuple[str, ...]] = (START,)

    @cached_property
    def tables(self) -> SlicedTables:
        ttl = 0 if self.gap else self.state_ttl
        return SlicedTables(keys=self.key_fields, pieces=self.counted, ttl=ttl)

    @property
    def fingerprint(self) -> str:
        schema = self.tables.counted.schema
        facts = f"dynamic-aggregate {schema} {self.slide} {self.gap}"
        if self.trigger.repeats:
            facts = f"emitting-dynamic {(schema, self.shown.layout.schema)} {self.slide} {self.gap}"
        return hashlib.sha256(facts.encode()).hexdigest()[:16]

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """The steps that windows show in this epoch, or what has changed of them."""
        output = self._shown(self.arrived(inputs[0]), state, epoch)
        if self.trigger.repeats:
            self.timers.report(state, epoch)
        return output

    def _shown(self, rows: pa.Table, state: StateStore, epoch: EpochContext) -> pa.Table:
        trigger, reached = self.trigger, Passed.of(self, epoch)
        passed = Passed.of(self, epoch, trigger.lateness) if trigger.lateness else reached
        asking = [rows, state.timeline(self.tables.wake).take_due(reached.upto)]
        if trigger.repeats:
            asking.append(self.timers.take(state, epoch.time))
        every = reached.steps or (passed.steps and trigger.late > 0)
        state_of_keys, numbers = self._looked_at(asking, state, every=every)
        if len(state_of_keys.keys.hashes) == 0:
            return self.output_schema().empty_table()
        own = numbers[: len(rows)]
        open_, growth, came = self._grown(rows, own, state_of_keys, passed, epoch)
        steps = Steps(self, state_of_keys, open_, growth, passed, reached, came)
        if not trigger.repeats:
            return steps.run(partial(shown_once, steps, state, epoch))
        waited = numbers[len(rows) + len(asking[1]) : sum(map(len, asking))]
        changes = Changes.of(self, steps, own[growth.of[len(open_) :] >= 0], waited)
        output = steps.run(partial(changes.shown, state, epoch))
        if passed.upto != NONE:
            self.shown.table(state).forget_due(passed.upto)
        return output

    def _looked_at(
        self, tables: list[pa.Table], state: StateStore, *, every: bool
    ) -> tuple[SlicedState, Ints]:
        """The state of the keys that ``tables`` have, or of all (``every``); the number of each row's key."""
        if every:
            # What is told apart by more than its key has another hash.
            names = [name for name, _ in self.keys]
            tables = [*tables, state.table(self.tables.sessions).everything().select(names)]
        keys, numbers = self.keys_of(tables)
        state_of_keys = SlicedState(tables=self.tables, store=state, keys=keys)
        if self.tables.ttl and every:
            state_of_keys.forget_orphans()
        return state_of_keys, numbers

    def _grown(
        self, rows: pa.Table, numbers: Ints, state_of_keys: SlicedState, passed: Passed, epoch: EpochContext
    ) -> tuple[Open, Growth, Parts]:
        """The windows that were open, what they become by ``rows``, and the pieces of these."""
        open_ = state_of_keys.open()
        spans, shown_steps = self._spans(rows, numbers, open_, passed)
        growth = grow(spans, self.slide, shown_steps)
        of = growth.of[len(open_) :]
        self.note_hot(state_of_keys.keys, numbers, open_.keys, epoch)
        self.add_late(rows, of < 0, epoch)
        return open_, growth, self._cut(rows, of, np.maximum(spans.starts, shown_steps)[len(open_) :])

    def _spans(self, rows: pa.Table, keys: Ints, open_: Open, passed: Passed) -> tuple[Spans, Ints]:
        """Open windows and rows, and the last step that had been shown before each."""
        nothing = np.zeros(0, np.int64)
        times = vector(rows.column(self.time)).values // MICROSECONDS if len(rows) else nothing
        marks = self.reached(rows, self.trigger.lateness)
        ends = times + self.gap if self.gap else np.full(len(times), FOREVER, np.int64)
        spans = Spans.behind(open_, keys, times, ends, marks)
        shown_steps = np.where(
            marks == NONE, NONE, (np.minimum(marks, FOREVER - 1) + 1) // self.slide * self.slide
        )
        shown_steps = np.maximum(shown_steps, passed.shown)
        return spans, np.concatenate([np.full(len(open_), passed.shown, np.int64), shown_steps])

    def _cut(self, rows: pa.Table, of: Ints, earliest: Ints) -> Parts:
        """``rows`` as pieces of their windows; ``earliest``: a time in the first step that each counts in."""
        chosen = np.flatnonzero(of >= 0)
        slices = earliest[chosen] // self.slide * self.slide + self.slide
        heads, numbers = numbered(of[chosen], slices)
        if len(chosen) == 0:
            return Parts(pieces=self.pieces.schema.empty_table(), windows=heads, slices=heads)
        rows = rows.take(pa.array(chosen)).append_column(END, to_arrow(Vec(numbers), pa.int64()))
        pieces = self.pieces.cut(rows)
        heads = heads[ends_of(pieces)]
        return Parts(pieces=pieces, windows=of[chosen][heads], slices=slices[heads])
