"""Aggregation in windows that grow (DYNAMIC_CUMULATE): one row per window, key and step while it is open.

A key's window opens at its first row's time floored to the step; at every later boundary of a step it shows
what it holds from its start to there, rows or not, and at its end (a gap after its last row) all of it.
A row counts in the steps after its time that had not been shown when it came; it is late if it meets no
window and its own span has ended (see ``growing``). Without a gap windows never end: at the end of the
input they show the step that time was in.

Cost of an epoch in which no step ends: the keys that have rows or whose time has come. Where one ends,
every open window gives a row; its pieces are read, and those of the slices with rows are written.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import by_arrival, contiguous, hashes_of, with_types
from tidemill.changelog.columns import Ints, Mask, Vec, single, to_arrow, vector
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.watermarks import END as FOREVER
from tidemill.changelog.watermarks import NONE, WATERMARK_COLUMN
from tidemill.operators.api import EpochContext
from tidemill.operators.rows.numbered_keys import Keys
from tidemill.operators.window.growing import Growth, grow
from tidemill.operators.window.merging import Spans
from tidemill.operators.window.output import MICROSECONDS
from tidemill.operators.window.pieces import END, Pieces, ends_of
from tidemill.operators.window.session_state import Open
from tidemill.operators.window.shape import WindowShape
from tidemill.operators.window.sliced_state import SHOWN, Parts, SlicedState, SlicedTables, numbered
from tidemill.operators.window.views import last_places, shown_at
from tidemill.state.run import HASH
from tidemill.state.store import StateStore


@dataclass(frozen=True, kw_only=True)
class DynamicAggregateSpec(WindowShape):
    """``slide`` (the step) and ``gap`` in ms; without a gap (0) windows never end, but for ``state_ttl``.
    ``behind``: how far the watermark is behind the latest time of a row."""

    slide: int
    gap: int = 0
    behind: int = 0
    state_ttl: int = 0

    @cached_property
    def tables(self) -> SlicedTables:
        fields = tuple(pa.field(name, kind) for name, kind in self.keys)
        ttl = 0 if self.gap else self.state_ttl
        return SlicedTables(keys=fields, pieces=self.counted, ttl=ttl)

    @property
    def pieces(self) -> Pieces:
        return self.tables.pieces

    @property
    def needs_sequence(self) -> bool:
        """Which windows a row meets depends on the rows before it."""
        return True

    @property
    def fingerprint(self) -> str:
        facts = f"dynamic-aggregate {self.tables.counted.schema} {self.slide} {self.gap}"
        return hashlib.sha256(facts.encode()).hexdigest()[:16]

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """The steps that windows show in this epoch."""
        table = with_types(inputs[0], self.types)
        rows = contiguous(by_arrival(table) if len(table) else table)
        passed = _Passed.of(self, epoch)
        due = state.timeline(self.tables.wake).take_due(passed.upto)
        kept, numbers = self._looked_at(rows, due, state, passed)
        if len(kept.keys.hashes) == 0:
            return self.output_schema().empty_table()
        open_ = kept.open()
        spans, shown = self._spans(rows, numbers, open_, passed)
        growth = grow(spans, self.slide, shown)
        of = growth.of[len(open_) :]
        epoch.late.add(rows, of < 0)
        came = self._cut(rows, of, np.maximum(spans.starts, shown)[len(open_) :])
        shows = _Steps(self, kept, open_, growth, passed, came).results(state, epoch)
        return self.output_schema().empty_table() if shows is None else shows

    def _looked_at(
        self, rows: pa.Table, due: pa.Table, state: StateStore, passed: _Passed
    ) -> tuple[SlicedState, Ints]:
        """The state of the keys that have rows or something to show, and the number of each row's key."""
        names = [name for name, _ in self.keys]
        tables = [rows, due]
        if passed.steps:
            tables.append(state.table(self.tables.sessions).everything())
        columns = [pa.concat_arrays([single(t.column(n)) for t in tables]) for n in names]
        hashes = [hashes_of(rows, [single(rows.column(n)) for n in names]), vector(due.column(HASH)).values]
        hashes += [hash_columns([t.column(n) for n in names], len(t)) for t in tables[2:]]
        keys, numbers = Keys.of(columns, np.concatenate(hashes))
        kept = SlicedState(tables=self.tables, store=state, keys=keys)
        if self.tables.ttl and passed.steps:
            kept.forget_orphans()
        return kept, numbers[: len(rows)]

    def _spans(self, rows: pa.Table, keys: Ints, open_: Open, passed: _Passed) -> tuple[Spans, Ints]:
        """Open windows and rows, and the last step that had been shown before each."""
        nothing = np.zeros(0, np.int64)
        times = vector(rows.column(self.time)).values // MICROSECONDS if len(rows) else nothing
        marks = vector(rows.column(WATERMARK_COLUMN)).values if len(rows) else nothing
        marks = self.clock.all_reached(marks)
        ends = times + self.gap if self.gap else np.full(len(times), FOREVER, np.int64)
        before = np.full(len(open_), NONE, np.int64)
        spans = Spans(
            keys=np.concatenate([open_.keys, keys]),
            starts=np.concatenate([open_.starts, times]),
            ends=np.concatenate([open_.ends, ends]),
            marks=np.concatenate([before, marks]),
            stored=len(open_),
        )
        shown = np.where(marks == NONE, NONE, (np.minimum(marks, FOREVER - 1) + 1) // self.slide * self.slide)
        shown = np.maximum(shown, passed.shown)
        return spans, np.concatenate([np.full(len(open_), passed.shown, np.int64), shown])

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Passed:
    """What of time has passed: windows that end at or before ``upto`` have ended, ``shown`` is the last step
    that had been shown before the epoch, ``last`` the last one after it."""

    upto: int
    shown: int
    last: int

    @staticmethod
    def of(spec: DynamicAggregateSpec, epoch: EpochContext) -> _Passed:
        before, upto = spec.clock.ended(epoch.before), spec.clock.ended(epoch.watermark)
        slide = spec.slide
        last = upto // slide * slide if upto not in (NONE, FOREVER) else upto
        if upto == FOREVER and not spec.gap and epoch.reached not in (NONE, FOREVER):
            latest = spec.clock.ended(epoch.reached + spec.behind)
            last = -(-latest // slide) * slide
        shown = before // slide * slide if before not in (NONE, FOREVER) else before
        return _Passed(upto=upto, shown=shown, last=last)

    @property
    def steps(self) -> bool:
        """Whether any step has ended."""
        return self.last > self.shown


@dataclass(frozen=True, slots=True)
class _Steps:
    """What an epoch makes of the windows that were open. ``came``: the pieces of its rows."""

    spec: DynamicAggregateSpec
    kept: SlicedState
    open: Open
    growth: Growth
    passed: _Passed
    came: Parts

    def results(self, state: StateStore, epoch: EpochContext) -> pa.Table | None:
        """The rows that are shown; the state is that of what stays open."""
        final = self.growth.final()
        gone = (self.growth.heirs >= 0) | (self.growth.ends <= self.passed.upto)
        before = self.growth.of[: len(self.open)]
        wanted = np.flatnonzero(self._wanted(before, final, gone))
        stored = self.kept.parts(self.open.take(wanted))
        place = wanted[stored.windows]
        stored = Parts(pieces=stored.pieces, windows=before[place], slices=stored.slices)
        parts = stored.and_those(self.came)
        shows = self._show(self._inherited(parts), gone, state, epoch)
        self._keep(parts, place, final, gone)
        return shows

    def _wanted(self, before: Ints, final: Ints, gone: Mask) -> Mask:
        """The open windows whose pieces are shown, moved or added to."""
        touched = np.zeros(len(self.growth), np.bool_)
        touched[self.came.windows] = not self.spec.pieces.layout.additive
        touched |= gone | (np.bincount(final, minlength=len(touched)) > 1)
        touched |= np.bincount(before, minlength=len(touched)) > 1
        if self.passed.steps:
            touched[:] = True
        return touched[before]

    def _inherited(self, parts: Parts) -> Parts:
        """With what windows have of those that they go on: nothing of it before the step in which they do."""
        growth, given = self.growth, parts
        while True:
            rows = np.flatnonzero(growth.heirs[given.windows] >= 0)
            if len(rows) == 0:
                return parts
            given = given.take(rows)
            first = growth.until[given.windows] + self.spec.slide
            given = Parts(
                pieces=given.pieces,
                windows=growth.heirs[given.windows],
                slices=np.maximum(given.slices, first),
            )
            parts = parts.and_those(given)

    def _show(self, parts: Parts, gone: Mask, state: StateStore, epoch: EpochContext) -> pa.Table | None:
        parts, _ = parts.folded(self.spec.pieces)
        if len(parts) == 0:
            return None
        starts = np.flatnonzero(np.diff(parts.windows, prepend=-1))
        behind = np.append(starts[1:], len(parts))
        windows, ends = self._steps(parts.windows[starts], parts.slices[starts], parts.slices[behind - 1])
        if len(windows) == 0:
            return None
        # The end of a window is behind all of its slices.
        upto = np.where(ends == self.growth.ends[windows], FOREVER, ends)
        last = last_places(parts.windows, parts.slices, windows, upto)
        results, points = shown_at(self.spec.pieces, parts.pieces, starts, last, state, epoch)
        windows, ends = windows[points], ends[points]
        return self.spec.columns.shown(
            results,
            self.growth.starts[windows],
            ends,
            self.spec.clock.instants(ends - 1),
            self.spec.output_schema(),
            epoch,
        )

    def _steps(self, windows: Ints, first: Ints, last: Ints) -> tuple[Ints, Ints]:
        """The windows and the ends of all that they show now; ``first`` and ``last``: their slices."""
        growth, passed, slide = self.growth, self.passed, self.spec.slide
        low = first if passed.shown == NONE else np.maximum(first, passed.shown + slide)
        ends = growth.ends[windows]
        if self.spec.gap:
            high = np.minimum(passed.last, (ends - 1) // slide * slide)
        elif passed.upto == FOREVER:
            # At the end of the input no row is left out, however late it came.
            high = last if passed.last == FOREVER else np.maximum(last, passed.last)
        else:
            high = np.full(len(windows), passed.last, np.int64)
        high = np.minimum(high, growth.until[windows])
        counts = np.where(high >= low, (high - low) // slide + 1, 0)
        rows = np.repeat(np.arange(len(windows)), counts)
        place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        closing = np.zeros(len(windows), np.bool_)
        if self.spec.gap:
            closing = (ends <= passed.upto) & (growth.heirs[windows] < 0)
        return (
            np.concatenate([windows[rows], windows[closing]]),
            np.concatenate([low[rows] + place * slide, ends[closing]]),
        )

    def _keep(self, parts: Parts, place: Ints, final: Ints, gone: Mask) -> None:
        """What stays open, and what was counted of it."""
        before = self.growth.of[: len(self.open)]
        after, touched = self._after(final)
        stays = ~gone[final[before]] & (after.names[final[before]] == self.open.names)
        self.kept.forget(self.open.take(~stays))
        self.kept.keep(after.take(touched & ~gone))
        if self.spec.gap:
            self.kept.look_again(after.take(self._asleep(final) & ~gone))
        self._keep_pieces(parts, place, final, gone, after)

    def _keep_pieces(self, parts: Parts, place: Ints, final: Ints, gone: Mask, after: Open) -> None:
        old = np.zeros(len(parts), np.bool_)
        old[: len(place)] = True
        windows = final[parts.windows]
        slices, merge = parts.slices, not self.spec.pieces.layout.additive
        if merge and self.passed.upto != NONE:
            slices = np.where(slices <= self.passed.last, SHOWN, slices)
        same = old & (slices == parts.slices) & ~gone[windows]
        same[: len(place)] &= after.names[windows[: len(place)]] == self.open.names[place]
        forgotten = np.flatnonzero(old & ~same)
        taken = Parts(
            pieces=parts.pieces.take(pa.array(forgotten)),
            windows=place[forgotten],
            slices=parts.slices[forgotten],
        )
        self.kept.write(taken, self.open, gone=True)
        stay = np.flatnonzero(~gone[windows] & (merge | ~same))
        kept = Parts(pieces=parts.pieces.take(pa.array(stay)), windows=windows[stay], slices=slices[stay])
        kept, numbers = kept.folded(self.spec.pieces)
        if merge:
            # A record that nothing came to is there already.
            changed = np.ones(len(kept), np.bool_)
            alone = np.bincount(numbers, minlength=len(kept)) == 1
            changed[numbers[same[stay]]] = ~alone[numbers[same[stay]]]
            kept = kept.take(np.flatnonzero(changed))
        self.kept.write(kept, after)

    def _asleep(self, final: Ints) -> Mask:
        """Windows that nothing will look at: new ones, and those whose time to be looked at has come."""
        before = self.growth.of[: len(self.open)]
        asleep = np.ones(len(self.growth), np.bool_)
        asleep[final[before[self.open.wakes > self.passed.upto]]] = False
        return asleep

    def _after(self, final: Ints) -> tuple[Open, Mask]:
        """All windows as they are now, and which of them are not as they were."""
        growth = self.growth
        before = final[growth.of[: len(self.open)]]
        names = self.kept.new_names(len(growth))
        names[before[::-1]] = self.open.names[::-1]
        wakes = growth.ends.copy()
        awake = np.full(len(growth), FOREVER, np.int64)
        np.minimum.at(awake, before, np.where(self.open.wakes > self.passed.upto, self.open.wakes, FOREVER))
        wakes = np.where(awake < FOREVER, awake, wakes)
        touched = self._asleep(final) if self.spec.gap else np.zeros(len(growth), np.bool_)
        touched[growth.of[len(self.open) :][growth.of[len(self.open) :] >= 0]] = True
        touched |= np.bincount(final, minlength=len(growth)) > 1
        touched |= np.bincount(before, minlength=len(growth)) > 1
        return (
            Open(keys=growth.keys, names=names, starts=growth.firsts, ends=growth.ends, wakes=wakes),
            touched,
        )
