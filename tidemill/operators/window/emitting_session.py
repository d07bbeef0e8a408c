"""Aggregation in sessions that show what they have before their end, or again after it.

What is one session is as in ``session``, but that a session is open until it is shut: the watermark has
passed its end by the lateness that is allowed. One that grows or takes in others is another session then:
what was shown of it, and of those it took in, is taken back. It shows something when it ends, before that and
after it as ``emission`` says. See ``emitting`` for windows of fixed size.

When a session is looked at is told by instants: when it ends, and when it is shut.

Cost of an epoch: the keys that have rows or whose time has come, with their open sessions; the pieces of
sessions that show something, merge or are shut, and where pieces are accumulators those that rows go to."""

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
from tidemill.operators.api import AGAIN, EpochContext
from tidemill.operators.rows.numbered_keys import Keys
from tidemill.operators.window.assigners.session import Sessions
from tidemill.operators.window.emitting import EmittingShape
from tidemill.operators.window.local_sessions import sessions_of
from tidemill.operators.window.session_shape import SessionShape
from tidemill.operators.window.store.partial_aggregates import END, ends_of
from tidemill.operators.window.store.sessions import Open, SessionState, rewritten
from tidemill.operators.window.triggers.emission import Horizons
from tidemill.operators.window.triggers.shown import START, ShownWindows, distinct, places_in
from tidemill.state.run import HASH
from tidemill.state.store import StateStore

_LAST = "$last"


@dataclass(frozen=True, kw_only=True)
class EmittingSessionSpec(EmittingShape, SessionShape):
    """Shows sessions also before their end and after it, as ``emission`` says."""

    @cached_property
    def shown(self) -> ShownWindows:
        bounds = (START, _LAST)
        results = (*((name, pa.int64()) for name in bounds), *((c.name, c.result) for c in self.calls))
        return ShownWindows(keys=self.keys, results=results, bounds=bounds, update_before=self.update_before)

    @property
    def fingerprint(self) -> str:
        layouts = self.tables.counted.schema, self.shown.layout.schema
        facts = f"emitting-session {layouts} {self.gap}{self.counted_by}"
        return hashlib.sha256(facts.encode()).hexdigest()[:16]

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """What has changed of the sessions that show something in this epoch."""
        output = self._changes(inputs[0], state, epoch)
        self.timers.report(state, epoch)
        return output

    def _changes(self, table: pa.Table, state: StateStore, epoch: EpochContext) -> pa.Table:
        table = with_types(table, dict(self.keys))
        rows = contiguous(by_arrival(table) if len(table) else table)
        woken = state.timeline(self.tables.wake).take_due(epoch.watermark)
        due = self.timers.take(state, epoch.time)
        if not len(rows) + len(woken) + len(due):
            return self.output_schema().empty_table()
        names = [name for name, _ in self.keys]
        columns = [pa.concat_arrays([single(t.column(n)) for t in (rows, woken, due)]) for n in names]
        hashes = [
            hashes_of(rows, [single(rows.column(n)) for n in names]),
            vector(woken.column(HASH)).values,
            hash_columns([due.column(n) for n in names], len(due)),
        ]
        keys, numbers = Keys.of(columns, np.concatenate(hashes))
        kept = SessionState(tables=self.tables, store=state, keys=keys)
        open_ = kept.open()
        marks = self.reached(rows, self.emission.lateness)
        sessions = sessions_of(rows, numbers[: len(rows)], open_, time=self.time, gap=self.gap, marks=marks)
        if sessions is None:
            epoch.notes[AGAIN] = 1
            return self.output_schema().empty_table()
        self.note_hot(keys, numbers[: len(rows)], open_.keys, epoch)
        self.add_late(rows, sessions.of[len(open_) :] < 0, epoch)
        at = self.emission.horizons(self.clock, epoch)
        return _Step(self, kept, open_, sessions, epoch, at).run(rows, due)


@dataclass(frozen=True, slots=True)
class _Step:
    """What an epoch makes of the sessions that were open: ``sessions.of`` says what each became."""

    spec: EmittingSessionSpec
    kept: SessionState
    open: Open
    sessions: Sessions
    epoch: EpochContext
    horizons: Horizons

    def run(self, rows: pa.Table, due: pa.Table) -> pa.Table:
        spec, state, sessions = self.spec, self.kept.store, self.sessions
        before = sessions.of[: len(self.open)]
        heirs = self._heirs(before)
        merged = np.bincount(before, minlength=len(sessions)) > 1
        touched = (sessions.rows > 0) | merged
        ended, shut = sessions.ends <= self.horizons.upto, sessions.ends <= self.horizons.shut
        names = self._names(heirs)
        told = self._told(sessions.keys, names)
        shows = self._shows(heirs, touched, ended, shut) | self._wanted(told, due)
        hides = touched & ~ended if spec.emission.early is None else np.zeros(len(sessions), np.bool_)
        gone = shut[before] | (heirs[before] != np.arange(len(before)))
        pieces = self._pieces(rows, before, names, gone, merged, shows, shut)
        now = self._results(pieces, told)
        lost = self.open.take(heirs[before] != np.arange(len(before)))
        asked = [told.filter(pa.array(shows | hides)), self._told(lost.keys, lost.names)]
        self._wait(told, heirs, touched & ~shows & ~shut, ended)
        output = self._changed(distinct(pa.concat_tables(asked)), now)
        self.kept.forget(self.open.take(gone))
        self._keep(heirs, names, touched, ended, shut)
        spec.shown.forget(told.filter(pa.array(shut)), state)
        return output

    def _heirs(self, before: Ints) -> Ints:
        """Per session the one of the open ones that it goes on, or -1."""
        heirs = np.full(len(self.sessions), -1, np.int64)
        heirs[before[::-1]] = np.arange(len(before))[::-1]
        return heirs

    def _names(self, heirs: Ints) -> Ints:
        names = self.kept.new_names(len(self.sessions))
        names[heirs >= 0] = self.open.names[heirs[heirs >= 0]]
        return names

    def _told(self, keys: Ints, names: Ints) -> pa.Table:
        """Sessions by name and key."""
        columns = [to_arrow(Vec(names), pa.int64()), *self.kept.keys.take(keys)]
        return pa.table(columns, schema=self.spec.shown.identity)

    def _shows(self, heirs: Ints, touched: Mask, ended: Mask, shut: Mask) -> Mask:
        """Which sessions show what they have: those that end, and as the emission says."""
        emission = self.spec.emission
        fires = self._fires(heirs, ended)
        shows = fires | (touched & ended) if emission.late == 0 else fires | (shut & ended)
        return shows | (touched & ~ended) if emission.early == 0 else shows

    def _fires(self, heirs: Ints, ended: Mask) -> Mask:
        had_ended = np.zeros(len(heirs), np.bool_)
        had_ended[heirs >= 0] = self.open.ends[heirs[heirs >= 0]] <= self.horizons.before
        return ended & ~had_ended

    def _wanted(self, told: pa.Table, due: pa.Table) -> Mask:
        """The sessions whose timers are due."""
        wanted = np.zeros(len(told), np.bool_)
        places = places_in(told, due)
        wanted[places[places >= 0]] = True
        return wanted

    def _wait(self, told: pa.Table, heirs: Ints, waits: Mask, ended: Mask) -> None:
        """Timers of what is not shown yet."""
        emission, state = self.spec.emission, self.kept.store
        for chosen, delay in ((ended, emission.late), (~ended, emission.early)):
            if delay:
                due = emission.due(self.epoch.time, delay)
                self.spec.timers.put(state, due, told.filter(pa.array(waits & chosen)))

    def _pieces(
        self,
        rows: pa.Table,
        before: Ints,
        names: Ints,
        gone: Mask,
        merged: Mask,
        shows: Mask,
        shut: Mask,
    ) -> pa.Table:
        """The pieces of the sessions that show something; the state is that of those that stay open."""
        taken = gone
        if rewritten(self.spec.pieces):
            taken = gone | ((self.sessions.rows > 0) | merged | shows)[before]
        only_read = shows[before] & ~taken
        old = self.kept.take(self.open.take(taken), before[taken], gone[taken])
        nothing = np.zeros(int(np.count_nonzero(only_read)), np.bool_)
        read = self.kept.take(self.open.take(only_read), before[only_read], nothing)
        moving = pa.concat_tables([old, self._new(rows)])
        stays = moving.filter(pa.array(~shut[ends_of(moving)]))
        self.kept.put(stays, self.sessions.keys, names)
        every = pa.concat_tables([moving, read])
        return every.filter(pa.array(shows[ends_of(every)]))

    def _new(self, rows: pa.Table) -> pa.Table:
        of = self.sessions.of[len(self.open) :]
        chosen = np.flatnonzero(of >= 0)
        if len(chosen) == 0:
            return self.spec.pieces.schema.empty_table()
        if self.spec.partial_input:
            return self.spec.local.pieces_of(rows.take(pa.array(chosen)), of[chosen])
        rows = rows.append_column(END, to_arrow(Vec(of), pa.int64())).take(pa.array(chosen))
        return self.spec.pieces.cut(rows)

    def _results(self, pieces: pa.Table, told: pa.Table) -> pa.Table:
        """What sessions have now: name, key, bounds, and results."""
        spec = self.spec
        schema = pa.schema([*spec.shown.identity, *spec.shown.layout.columns])
        if len(pieces) == 0:
            return schema.empty_table()
        results = spec.pieces.results(contiguous(pieces), self.kept.store.scratch(), self.epoch)
        of = ends_of(results)
        columns = {name: results.column(name) for name in results.column_names}
        columns[END] = told.column(END).take(pa.array(of))
        columns[START] = to_arrow(Vec(self.sessions.starts[of]), pa.int64())
        columns[_LAST] = to_arrow(Vec(self.sessions.ends[of]), pa.int64())
        return pa.table([columns[name] for name in schema.names], names=schema.names)

    def _changed(self, asked: pa.Table, now: pa.Table) -> pa.Table:
        spec = self.spec
        if len(asked) == 0:
            return spec.output_schema().empty_table()
        changes = spec.shown.changes(asked, now, self.kept.store)
        starts, ends = (vector(single(changes.column(name))).values for name in (START, _LAST))
        last = spec.clock.instants(ends - 1)
        return spec.columns.shown(changes, starts, ends, last, spec.output_schema(), self.epoch)

    def _keep(self, heirs: Ints, names: Ints, touched: Mask, ended: Mask, shut: Mask) -> None:
        """The sessions that stay open, and when they are looked at: at once where nothing would otherwise."""
        sessions, old = self.sessions, heirs >= 0
        instants = self.spec.clock.instants(sessions.ends - 1)
        next_look = np.where(ended, instants + self.spec.emission.lateness, instants)
        wakes = np.full(len(sessions), FOREVER, np.int64)
        wakes[old] = self.open.wakes[heirs[old]]
        asleep = ~old | (wakes <= self.epoch.watermark) | (next_look < wakes)
        wakes = np.where(asleep, next_look, wakes)
        after = Open(
            keys=sessions.keys,
            names=names,
            starts=sessions.starts,
            ends=sessions.ends,
            wakes=wakes,
        )
        self.kept.keep(after.take((touched | asleep) & ~shut))
        self.kept.look_again(after.take(asleep & ~shut))
