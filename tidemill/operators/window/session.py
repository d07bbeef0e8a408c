"""Aggregation in sessions over insert-only input: one row per session and key.

A row's span [time, time + gap) merges with every open session of its key that it overlaps or touches. It is
late only if it meets no session and its own span has ended. A session ends when the watermark has reached its
last millisecond, whatever the cut of epochs (see ``assigners.session``), and is open until it is shut (see
``triggers.trigger``). A session that grows or merges becomes another session: emitted results of the old
sessions are retracted.

Input with retractions needs ``retractable_session``. By processing time, and with early or late results, a
retraction removes a row from its open session, whose bounds stay.

Insert-only rows can be combined before the exchange, if they are certainly in one session
(``local_sessions``).

Cost of an epoch: the keys that have rows or whose time has come, with their open sessions; the pieces of
sessions that emit, merge or are shut; and, if pieces are accumulators, the pieces that rows change.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import contiguous
from tidemill.changelog.columns import Ints, Mask, Vec, to_arrow
from tidemill.changelog.watermarks import END as FOREVER
from tidemill.operators.api import AGAIN, EpochContext
from tidemill.operators.window.assigners.session import Sessions
from tidemill.operators.window.local_sessions import sessions_of
from tidemill.operators.window.session_shape import SessionShape
from tidemill.operators.window.store.partial_aggregates import END, ends_of
from tidemill.operators.window.store.sessions import Open, SessionState, rewritten
from tidemill.operators.window.triggers.shown import LAST, START, distinct, places_in
from tidemill.operators.window.triggers.trigger import Horizons
from tidemill.state.store import StateStore


@dataclass(frozen=True, kw_only=True)
class SessionAggregateSpec(SessionShape):
    """A session's number is its place within the epoch."""

    moving: ClassVar[tuple[str, ...]] = (START, LAST)

    @property
    def fingerprint(self) -> str:
        schema = self.tables.counted.schema
        facts = f"session-aggregate {schema} {self.gap}{self.counted_by}"
        if self.trigger.repeats:
            layouts = schema, self.shown.layout.schema
            facts = f"emitting-session {layouts} {self.gap}{self.counted_by}"
        return hashlib.sha256(facts.encode()).hexdigest()[:16]

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """The results of the sessions that are shown in this epoch, or what has changed of them."""
        output = self._shown(self.arrived(inputs[0]), state, epoch)
        if self.trigger.repeats:
            self.timers.report(state, epoch)
        return output

    def _shown(self, rows: pa.Table, state: StateStore, epoch: EpochContext) -> pa.Table:
        looked = self.looked_at(epoch)
        asking = [rows, state.timeline(self.tables.wake).take_due(looked)]
        if self.trigger.repeats:
            asking.append(self.timers.take(state, epoch.time))
        if not sum(map(len, asking)):
            return self.output_schema().empty_table()
        keys, numbers = self.keys_of(asking)
        numbers = numbers[: len(rows)]
        state_of_keys = SessionState(tables=self.tables, store=state, keys=keys)
        open_ = state_of_keys.open()
        marks = self.reached(rows, self.trigger.lateness)
        sessions = sessions_of(rows, numbers, open_, time=self.time, gap=self.gap, marks=marks)
        if sessions is None:
            epoch.notes[AGAIN] = 1
            return self.output_schema().empty_table()
        self.note_hot(keys, numbers, open_.keys, epoch)
        self.add_late(rows, sessions.of[len(open_) :] < 0, epoch)
        at = self.trigger.horizons(self.clock, epoch)
        return _Step(self, state_of_keys, open_, sessions, epoch, at, looked).run(rows, asking[2:])

    def looked_at(self, epoch: EpochContext) -> int:
        """Up to when sessions are looked at: an instant if they are shown again, else a local time."""
        return epoch.watermark if self.trigger.repeats else self.clock.ended(epoch.watermark)

    def next_look(self, ends: Ints, ended: Mask) -> Ints:
        """When sessions are looked at (see ``looked_at``): when they end, then when they are shut."""
        if not self.trigger.repeats:
            return ends
        instants = self.clock.instants(ends - 1)
        return np.where(ended, instants + self.trigger.lateness, instants)

    def next_end(self, state: StateStore, ended: int) -> int | None:
        """See ``triggers.processing_time``. By the clock what has ended is shut."""
        earliest = super().next_end(state, ended)
        return self.clock.ended(earliest) if earliest is not None and self.trigger.repeats else earliest


@dataclass(frozen=True, slots=True)
class _Step:
    """One epoch of the open sessions; ``sessions.of`` has the new session of each."""

    spec: SessionAggregateSpec
    kept: SessionState
    open: Open
    sessions: Sessions
    epoch: EpochContext
    horizons: Horizons
    looked: int

    def run(self, rows: pa.Table, due: list[pa.Table]) -> pa.Table:
        """``due``: sessions whose timers have come. The state is that of what stays open."""
        sessions, before = self.sessions, self.sessions.of[: len(self.open)]
        heirs = sessions.heirs(len(self.open))
        merged = np.bincount(before, minlength=len(sessions)) > 1
        touched = (sessions.rows > 0) | merged
        ended, shut = sessions.ends <= self.horizons.upto, sessions.ends <= self.horizons.shut
        lost = heirs[before] != np.arange(len(before))
        names = self._names(heirs)
        shows = self._shows(heirs, touched, ended, shut)
        if not self.spec.trigger.repeats:
            output = self._once(self._pieces(rows, names, lost, merged, shows, shut))
        else:
            identities = self._told(sessions.keys, names)
            shows |= self._wanted(identities, due)
            pieces = self._pieces(rows, names, lost, merged, shows, shut)
            output = self._again(pieces, identities, shows, touched & ~ended, lost)
            self._wait(identities, touched & ~shows & ~shut, ended)
            self.spec.shown.forget(identities.filter(pa.array(shut)), self.kept.store)
        self.kept.forget(self.open.take(lost | shut[before]))
        self._keep(heirs, names, touched, ended, shut)
        return output

    def _names(self, heirs: Ints) -> Ints:
        names = self.kept.new_names(len(self.sessions))
        names[heirs >= 0] = self.open.names[heirs[heirs >= 0]]
        return names

    def _shows(self, heirs: Ints, touched: Mask, ended: Mask, shut: Mask) -> Mask:
        """The sessions that emit: sessions that end, and others as the trigger says."""
        trigger = self.spec.trigger
        if not trigger.repeats:
            return ended
        had_ended = np.zeros(len(heirs), np.bool_)
        had_ended[heirs >= 0] = self.open.ends[heirs[heirs >= 0]] <= self.horizons.before
        shows = (ended & ~had_ended) | (ended & (touched if trigger.late == 0 else shut))
        return shows | (touched & ~ended) if trigger.early == 0 else shows

    # -- pieces ----------------------------------------------------------------------------------------

    def _pieces(
        self, rows: pa.Table, names: Ints, lost: Mask, merged: Mask, shows: Mask, shut: Mask
    ) -> pa.Table:
        """The pieces of the sessions that emit. The pieces of sessions that stay open are stored."""
        before = self.sessions.of[: len(self.open)]
        is_gone = is_removed = lost | shut[before]
        if rewritten(self.spec.pieces):
            is_removed = is_gone | ((self.sessions.rows > 0) | merged | shows)[before]
        old = [self.kept.take(self.open.take(is_removed), before[is_removed], is_gone[is_removed])]
        only_read = shows[before] & ~is_removed
        if only_read.any():
            nothing = np.zeros(int(np.count_nonzero(only_read)), np.bool_)
            old.append(self.kept.take(self.open.take(only_read), before[only_read], nothing))
        moving = pa.concat_tables([old[0], self._new(rows)])
        self.kept.put(moving.filter(pa.array(~shut[ends_of(moving)])), self.sessions.keys, names)
        every = pa.concat_tables([moving, *old[1:]])
        return every.filter(pa.array(shows[ends_of(every)]))

    def _new(self, rows: pa.Table) -> pa.Table:
        of = self.sessions.of[len(self.open) :]
        chosen = np.flatnonzero(of >= 0)
        if len(chosen) == 0:
            return self.spec.pieces.schema.empty_table()
        if self.spec.partial_input:
            return self.spec.local.pieces_of(rows.take(pa.array(chosen)), of[chosen])
        rows = rows.append_column(END, to_arrow(Vec(of), pa.int64()))
        if len(chosen) < len(of):
            rows = rows.take(pa.array(chosen))
        return self.spec.pieces.cut(rows)

    # -- what is shown ---------------------------------------------------------------------------------

    def _results(self, pieces: pa.Table) -> tuple[pa.Table, Ints]:
        """The current results of sessions, and the session of each row."""
        results = self.spec.pieces.results(contiguous(pieces), self.kept.store.scratch(), self.epoch)
        return results, ends_of(results)

    def _once(self, pieces: pa.Table) -> pa.Table:
        if len(pieces) == 0:
            return self.spec.output_schema().empty_table()
        results, of = self._results(pieces)
        return self.spec.given(results, self.sessions.starts[of], self.sessions.ends[of], self.epoch)

    def _again(
        self, pieces: pa.Table, identities: pa.Table, shows: Mask, open_: Mask, lost: Mask
    ) -> pa.Table:
        """The changes of sessions that emit. Results of ``lost`` sessions are retracted. Without early
        results, results of sessions that are ``open_`` again are retracted, too."""
        spec = self.spec
        hides = open_ if spec.trigger.early is None else np.zeros(len(open_), np.bool_)
        gone = self.open.take(lost)
        window_parts = [identities.filter(pa.array(shows | hides)), self._told(gone.keys, gone.names)]
        return spec.changed(
            distinct(pa.concat_tables(window_parts)),
            self._now(pieces, identities),
            self.kept.store,
            self.epoch,
        )

    def _now(self, pieces: pa.Table, identities: pa.Table) -> pa.Table:
        """The current name, key, bounds and results of sessions."""
        nothing = self.spec.nothing_changed()
        if len(pieces) == 0:
            return nothing
        results, of = self._results(pieces)
        columns = {name: results.column(name) for name in results.column_names}
        columns[END] = identities.column(END).take(pa.array(of))
        columns[START] = to_arrow(Vec(self.sessions.starts[of]), pa.int64())
        columns[LAST] = to_arrow(Vec(self.sessions.ends[of]), pa.int64())
        names = nothing.column_names
        return pa.table([columns[name] for name in names], names=names)

    # -- sessions --------------------------------------------------------------------------------------

    def _told(self, keys: Ints, names: Ints) -> pa.Table:
        """Sessions by name and key."""
        columns = [to_arrow(Vec(names), pa.int64()), *self.kept.keys.take(keys)]
        return pa.table(columns, schema=self.spec.shown.identity)

    def _wanted(self, identities: pa.Table, due: list[pa.Table]) -> Mask:
        """The sessions whose timers are due."""
        is_due = np.zeros(len(identities), np.bool_)
        for windows in due:
            positions = places_in(identities, windows)
            is_due[positions[positions >= 0]] = True
        return is_due

    def _wait(self, identities: pa.Table, waits: Mask, ended: Mask) -> None:
        """Sets timers for changes that are not emitted yet."""
        spec, state = self.spec, self.kept.store
        over, ahead = (identities.filter(pa.array(waits & where)) for where in (ended, ~ended))
        spec.timers.wait(spec.trigger, over, ahead, state, self.epoch.time)

    def _keep(self, heirs: Ints, names: Ints, touched: Mask, ended: Mask, shut: Mask) -> None:
        """Stores the sessions that stay open, and when they are processed next."""
        sessions, old = self.sessions, heirs >= 0
        next_look = self.spec.next_look(sessions.ends, ended)
        wakes = np.full(len(sessions), FOREVER, np.int64)
        wakes[old] = self.open.wakes[heirs[old]]
        asleep = ~old | (wakes <= self.looked) | (next_look < wakes)
        wakes = np.where(asleep, next_look, wakes)
        after = Open(keys=sessions.keys, names=names, starts=sessions.starts, ends=sessions.ends, wakes=wakes)
        self.kept.keep(after.take((touched | asleep) & ~shut))
        self.kept.look_again(after.take(asleep & ~shut))
