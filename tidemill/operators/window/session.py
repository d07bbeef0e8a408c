"""Aggregation in sessions: one row per session and key, when a gap has passed without a row of the key.

A row's span [time, time + gap) merges with every open session of its key that it overlaps or touches, also
with several. It is late only where it meets none and its own span has come to its end; a session fires when
the watermark has reached its last millisecond, and rows after that do not meet it, wherever the epoch was
cut (see ``merging``). Rows that can be taken back are ``netted_session``'s; here, by processing time, one
goes from the session that is open, whose bounds stay.

Rows that only come can be put together where they are made, as far as they are of one session whatever else
there is (see ``local_sessions``).

Cost of an epoch: the keys that have rows or whose time has come, with their open sessions; the pieces
of sessions that fire or merge, and where pieces are accumulators those that rows go to.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import contiguous
from tidemill.changelog.columns import Ints, Mask, Vec, to_arrow
from tidemill.operators.api import AGAIN, EpochContext
from tidemill.operators.window.assigners.session import Sessions
from tidemill.operators.window.local_sessions import sessions_of
from tidemill.operators.window.session_shape import SessionShape
from tidemill.operators.window.store.partial_aggregates import END, ends_of
from tidemill.operators.window.store.sessions import Open, SessionState, rewritten
from tidemill.state.store import StateStore


@dataclass(frozen=True, kw_only=True)
class SessionAggregateSpec(SessionShape):
    """A session's number is its place within the epoch."""

    @property
    def fingerprint(self) -> str:
        facts = f"session-aggregate {self.tables.counted.schema} {self.gap}{self.counted_by}"
        return hashlib.sha256(facts.encode()).hexdigest()[:16]

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """The results of the sessions that fire in this epoch."""
        upto = self.clock.ended(epoch.watermark)
        rows, keys, numbers = self.asked_about(inputs[0], state, upto)
        if len(keys.hashes) == 0:
            return self.output_schema().empty_table()
        kept = SessionState(tables=self.tables, store=state, keys=keys)
        open_ = kept.open()
        marks = self.reached(rows)
        sessions = sessions_of(rows, numbers, open_, time=self.time, gap=self.gap, marks=marks)
        if sessions is None:
            epoch.notes[AGAIN] = 1
            return self.output_schema().empty_table()
        self.note_hot(keys, numbers, open_.keys, epoch)
        self.add_late(rows, sessions.of[len(open_) :] < 0, epoch)
        fired = _Change(self, kept, open_, sessions, upto).apply(rows)
        if len(fired) == 0:
            return self.output_schema().empty_table()
        results = self.pieces.results(contiguous(fired), state.scratch(), epoch)
        of = ends_of(results)
        starts, ends = sessions.starts[of], sessions.ends[of]
        last = self.clock.instants(ends - 1)
        return self.columns.shown(results, starts, ends, last, self.output_schema(), epoch)


@dataclass(frozen=True, slots=True)
class _Change:
    """What an epoch makes of the sessions that were open: ``sessions.of`` says what each became."""

    spec: SessionAggregateSpec
    kept: SessionState
    open: Open
    sessions: Sessions
    upto: int

    def apply(self, rows: pa.Table) -> pa.Table:
        """The pieces of what fires; the state is that of what stays open."""
        sessions, before = self.sessions, self.sessions.of[: len(self.open)]
        fires = sessions.ends <= self.upto
        heirs = self._heirs(before)
        gone = fires[before] | (heirs[before] != np.arange(len(before)))
        after, touched = self._after(heirs, before)
        old = self._old(before, gone, fires)
        pieces = pa.concat_tables([old, self._new(rows)])
        self.kept.forget(self.open.take(gone))
        self.kept.keep(after.take(touched & ~fires))
        waking = ~fires & touched & self._asleep(heirs)
        self.kept.look_again(after.take(waking))
        firing = fires[ends_of(pieces)]
        self.kept.put(pieces.filter(pa.array(~firing)), after.keys, after.names)
        return pieces.filter(pa.array(firing))

    def _heirs(self, before: Ints) -> Ints:
        """Per session the one of the open ones that it goes on, or -1."""
        heirs = np.full(len(self.sessions), -1, np.int64)
        heirs[before[::-1]] = np.arange(len(before))[::-1]
        return heirs

    def _asleep(self, heirs: Ints) -> Mask:
        """Sessions that nothing will look at: new ones, and those whose time to be looked at has come."""
        asleep = heirs < 0
        asleep[~asleep] = self.open.wakes[heirs[~asleep]] <= self.upto
        return asleep

    def _after(self, heirs: Ints, before: Ints) -> tuple[Open, Mask]:
        """All sessions as they are now, and which of them are not as they were."""
        sessions, old = self.sessions, heirs >= 0
        names, wakes = self.kept.new_names(len(sessions)), sessions.ends.copy()
        names[old] = self.open.names[heirs[old]]
        asleep = self._asleep(heirs)
        stay = old & ~asleep
        wakes[stay] = self.open.wakes[heirs[stay]]
        touched = asleep | (sessions.rows > 0)
        touched |= np.bincount(before, minlength=len(sessions)) > 1
        after = Open(keys=sessions.keys, names=names, starts=sessions.starts, ends=sessions.ends, wakes=wakes)
        return after, touched

    def _old(self, before: Ints, gone: Mask, fires: Mask) -> pa.Table:
        """The pieces that are moved, shown or replaced."""
        wanted = gone
        if rewritten(self.spec.pieces):
            merging = np.bincount(before, minlength=len(fires)) > 1
            wanted = gone | (self.sessions.rows > 0)[before] | merging[before]
        return self.kept.take(self.open.take(wanted), before[wanted], gone[wanted])

    def _new(self, rows: pa.Table) -> pa.Table:
        of = self.sessions.of[len(self.open) :]
        chosen = np.flatnonzero(of >= 0)
        if self.spec.partial_input:
            return self.spec.local.pieces_of(rows.take(pa.array(chosen)), of[chosen])
        rows = rows.append_column(END, to_arrow(Vec(of), pa.int64()))
        if len(chosen) < len(of):
            rows = rows.take(pa.array(chosen))
        return self.spec.pieces.cut(rows)
