"""Aggregation in sessions over input with retractions: a session consists of its remaining rows.

State is by time (see ``store.session_times``). A key is processed at the end of each time's span, and when
rows of the key come.

Cost of an epoch: the keys that have rows or whose time has come, with all times of their open sessions; the
pieces of sessions that fire; and, if pieces are accumulators, the pieces that rows change.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import contiguous
from tidemill.changelog.columns import Ints, Vec, to_arrow, vector
from tidemill.operators.api import EpochContext
from tidemill.operators.window.assigners.retractable_sessions import netted
from tidemill.operators.window.assigners.spans import LATE, Spans
from tidemill.operators.window.output import MICROSECONDS
from tidemill.operators.window.session_shape import SessionShape
from tidemill.operators.window.store.partial_aggregates import END, ends_of
from tidemill.operators.window.store.session_times import TimesState, TimesTables, weights
from tidemill.operators.window.store.sessions import Open
from tidemill.state.store import StateStore


@dataclass(frozen=True, kw_only=True)
class RetractableSessionSpec(SessionShape):
    """Rows come with their kinds."""

    @cached_property
    def tables(self) -> TimesTables:
        return TimesTables(keys=self.key_fields, pieces=self.counted)

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
        state_of_keys = TimesState(tables=self.tables, store=state, keys=keys, gap=self.gap)
        before, counts = state_of_keys.times()
        times = netted(self._spans(before, rows, numbers), np.concatenate([counts, weights(rows)]), self.gap)
        self.note_hot(keys, numbers, before.keys, epoch)
        self.add_late(rows, times.of[len(before) :] == LATE, epoch)
        fires = times.of_sessions(times.ends <= upto)
        fired = state_of_keys.update(before, times, rows, needed=fires, ended=fires)
        if len(fired) == 0:
            return self.output_schema().empty_table()
        place = fired.schema.get_field_index(END)
        fired = fired.set_column(place, END, to_arrow(Vec(times.sessions[ends_of(fired)]), pa.int64()))
        results = self.pieces.results(contiguous(fired), state.scratch(), epoch)
        of = ends_of(results)
        return self.given(results, times.starts[of], times.ends[of], epoch)

    def _spans(self, before: Open, rows: pa.Table, numbers: Ints) -> Spans:
        """The times that were, then the rows."""
        nothing = numbers[:0]
        at = vector(rows.column(self.time)).values // MICROSECONDS if len(rows) else nothing
        return Spans.behind(before, numbers, at, at + self.gap, self.reached(rows))
