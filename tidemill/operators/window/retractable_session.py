"""Aggregation in sessions over input with retractions: a session consists of its remaining rows.

State is by time instead of by session: for each key and time the number of rows, and their pieces. Sessions
are formed from the times when their key is processed: at the end of each time's span, and when rows of the
key come.

Cost of an epoch: the keys that have rows or whose time has come, with all times of their open sessions; the
pieces of sessions that fire; and, if pieces are accumulators, the pieces that rows change.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import contiguous, weights_of
from tidemill.changelog.columns import Ints, Mask, Vec, single, to_arrow, vector
from tidemill.operators.api import EpochContext
from tidemill.operators.window.assigners.retractable_sessions import NOWHERE, Times, netted
from tidemill.operators.window.assigners.spans import LATE, Spans
from tidemill.operators.window.output import MICROSECONDS
from tidemill.operators.window.session_shape import SessionShape
from tidemill.operators.window.store.partial_aggregates import END, ends_of
from tidemill.operators.window.store.sessions import SESSION, Open, SessionState, Tables, rewritten
from tidemill.state.layout import Layout
from tidemill.state.store import StateStore

_COUNT = "$count"


@dataclass(frozen=True, kw_only=True)
class TimesTables(Tables):
    """``sessions`` are those of one time, named by it."""

    @cached_property
    def sessions(self) -> Layout:
        named = (pa.field(SESSION, pa.int64()),)
        columns = (pa.field(_COUNT, pa.int64()),)
        return Layout(name="times", keys=self.keys, values=named, columns=columns)


@dataclass(frozen=True, kw_only=True)
class RetractableSessionSpec(SessionShape):
    """Rows come with their kinds."""

    @cached_property
    def tables(self) -> TimesTables:
        fields = tuple(pa.field(name, kind) for name, kind in self.keys)
        return TimesTables(keys=fields, pieces=self.counted)

    @property
    def evolving(self) -> tuple[Layout, ...]:
        """See ``operators.api.Evolving``."""
        return (self.tables.counted, *[self.shown.layout] * self.trigger.repeats)

    @property
    def fingerprint(self) -> str:
        facts = f"netted-session-aggregate {self.tables.counted.schema} {self.gap}{self.counted_by}"
        return hashlib.sha256(facts.encode()).hexdigest()[:16]

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """The results of the sessions that fire in this epoch."""
        upto, rows = self.clock.ended(epoch.watermark), self.arrived(inputs[0])
        keys, numbers = self.keys_of([rows, state.timeline(self.tables.wake).take_due(upto)])
        numbers = numbers[: len(rows)]
        if len(keys.hashes) == 0:
            return self.output_schema().empty_table()
        state_of_keys = _Kept(tables=self.tables, store=state, keys=keys)
        before, counts = state_of_keys.times(self.gap)
        times = netted(self._spans(before, rows, numbers), np.concatenate([counts, _each(rows)]), self.gap)
        self.note_hot(keys, numbers, before.keys, epoch)
        self.add_late(rows, times.of[len(before) :] == LATE, epoch)
        fired = _Change(self, state_of_keys, before, times, upto).apply(rows)
        if len(fired) == 0:
            return self.output_schema().empty_table()
        results = self.pieces.results(contiguous(fired), state.scratch(), epoch)
        of = ends_of(results)
        return self.given(results, times.starts[of], times.ends[of], epoch)

    def _spans(self, before: Open, rows: pa.Table, numbers: Ints) -> Spans:
        """The times that were, then the rows."""
        nothing = numbers[:0]
        at = vector(rows.column(self.time)).values // MICROSECONDS if len(rows) else nothing
        return Spans.behind(before, numbers, at, at + self.gap, self.reached(rows))


def _each(rows: pa.Table) -> Ints:
    """The weight of each row; a retraction has a negative weight."""
    weights = weights_of(rows) if len(rows) else None
    return np.ones(len(rows), np.int64) if weights is None else weights


@dataclass(frozen=True, kw_only=True)
class _Kept(SessionState):
    """State by time instead of by session."""

    def times(self, gap: int) -> tuple[Open, Ints]:
        """All times of the keys, and the number of rows of each."""
        owners, rows = self.store.table(self.tables.sessions).gather(self.keys.hashes, self.keys.columns)
        at, counts = (vector(single(rows.column(name))).values for name in (SESSION, _COUNT))
        return _sessions_of_one(owners, at, gap), counts

    def count(self, keys: Ints, at: Ints, counts: Ints) -> None:
        """Stores the number of rows of times; times without rows are removed."""
        layout = self.tables.sessions
        names = to_arrow(Vec(at), pa.int64())
        columns = {f.name: c for f, c in zip(layout.keys, self.keys.take(keys), strict=True)}
        columns[SESSION], columns[_COUNT] = names, to_arrow(Vec(counts), pa.int64())
        codes = layout.codes(self.keys.hashes[keys], [names])
        self.store.table(layout).put(codes, columns, counts == 0)


@dataclass(frozen=True, slots=True)
class _Change:
    """One epoch of the stored times; ``times.of`` has the new time of each."""

    spec: RetractableSessionSpec
    kept: _Kept
    before: Open
    times: Times
    upto: int

    def apply(self, rows: pa.Table) -> pa.Table:
        """The pieces of the sessions that fire, by session. Stores the sessions that stay open."""
        times = self.times
        fires = np.zeros(len(times.at), np.bool_)
        in_one = times.sessions != NOWHERE
        fires[in_one] = (times.ends <= self.upto)[times.sessions[in_one]]
        came, there = self._came()
        gone = fires | (times.counts == 0)
        pieces = pa.concat_tables([self._old(gone, came), self._new(rows)])
        self._count(gone, came, there)
        of = ends_of(pieces)
        stays = pieces.filter(pa.array(~gone[of]))
        self.kept.put(stays, times.keys, times.at)
        fired = pieces.filter(pa.array(fires[of]))
        column_index = fired.schema.get_field_index(END)
        return fired.set_column(column_index, END, to_arrow(Vec(times.sessions[ends_of(fired)]), pa.int64()))

    def _came(self) -> tuple[Mask, Mask]:
        """Which times rows came for, and which were there before."""
        came, there = (np.zeros(len(self.times.at), np.bool_) for _ in range(2))
        of, stored = self.times.of, len(self.before)
        there[of[:stored]] = True
        rows = of[stored:]
        came[rows[rows != LATE]] = True
        return came, there

    def _old(self, gone: Mask, came: Mask) -> pa.Table:
        """The pieces that are emitted, removed or replaced, by time."""
        of = self.times.of[: len(self.before)]
        is_read = gone | came if rewritten(self.spec.pieces) else gone
        chosen = is_read[of]
        return self.kept.take(self.before.take(chosen), of[chosen], gone[of[chosen]])

    def _new(self, rows: pa.Table) -> pa.Table:
        of = self.times.of[len(self.before) :]
        chosen = np.flatnonzero(of != LATE)
        if len(chosen) == 0:
            return self.spec.pieces.schema.empty_table()
        rows = rows.append_column(END, to_arrow(Vec(of), pa.int64()))
        return self.spec.pieces.cut(rows.take(pa.array(chosen)))

    def _count(self, gone: Mask, came: Mask, there: Mask) -> None:
        """Stores the remaining times, and when their keys are processed: when a session could end with
        them."""
        times = self.times
        # In this order: a time may go with its session, and come again.
        for changed, counts in ((gone & there, np.zeros_like(times.counts)), (came & ~gone, times.counts)):
            self.kept.count(times.keys[changed], times.at[changed], counts[changed])
        new = came & ~gone & ~there
        self.kept.look_again(_sessions_of_one(times.keys[new], times.at[new], self.spec.gap))


def _sessions_of_one(keys: Ints, at: Ints, gap: int) -> Open:
    """Each time as a session of its own, named by it."""
    return Open(keys=keys, names=at, starts=at, ends=at + gap, wakes=at + gap)
