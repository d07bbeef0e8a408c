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
from tidemill.changelog.columns import Ints, Vec, single, to_arrow, vector
from tidemill.changelog.watermarks import END as FOREVER
from tidemill.changelog.watermarks import NONE
from tidemill.operators.api import EpochContext
from tidemill.operators.rows.numbered_keys import Keys
from tidemill.operators.window.assigners.dynamic_cumulate import Growth, grow
from tidemill.operators.window.assigners.session import Spans
from tidemill.operators.window.dynamic_steps import Passed, Steps
from tidemill.operators.window.output import MICROSECONDS
from tidemill.operators.window.shape import WindowShape
from tidemill.operators.window.store.partial_aggregates import END, Pieces, ends_of
from tidemill.operators.window.store.sessions import Open
from tidemill.operators.window.store.sliced_sessions import Parts, SlicedState, SlicedTables, numbered
from tidemill.state.store import StateStore


@dataclass(frozen=True, kw_only=True)
class DynamicAggregateSpec(WindowShape):
    """``slide`` (the step) and ``gap`` in ms; without a gap (0) windows never end, but for ``state_ttl``.
    ``delayed``: how far the watermark is behind the latest time of a row."""

    slide: int
    gap: int = 0
    delayed: int = 0
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
        rows, passed = self.arrived(inputs[0]), Passed.of(self, epoch)
        due = state.timeline(self.tables.wake).take_due(passed.upto)
        kept, numbers = self.looked_at([rows, due], state, every=passed.steps)
        if len(kept.keys.hashes) == 0:
            return self.output_schema().empty_table()
        open_, growth, came = self.grown(rows, numbers[: len(rows)], kept, passed, epoch)
        shows = Steps(self, kept, open_, growth, passed, came).results(state, epoch)
        return self.output_schema().empty_table() if shows is None else shows

    def arrived(self, table: pa.Table) -> pa.Table:
        """An epoch's rows in the order in which they came."""
        table = with_types(table, self.types)
        return contiguous(by_arrival(table) if len(table) else table)

    def looked_at(
        self, tables: list[pa.Table], state: StateStore, *, every: bool
    ) -> tuple[SlicedState, Ints]:
        """The state of the keys that ``tables`` have, or of all (``every``); the number of each row's key."""
        names = [name for name, _ in self.keys]
        size = sum(map(len, tables))
        if every:
            # What is told apart by more than its key has another hash.
            tables = [*tables, state.table(self.tables.sessions).everything().select(names)]
        columns = [pa.concat_arrays([single(t.column(n)) for t in tables]) for n in names]
        hashes = [hashes_of(t, [single(t.column(n)) for n in names]) for t in tables]
        keys, numbers = Keys.of(columns, np.concatenate(hashes))
        kept = SlicedState(tables=self.tables, store=state, keys=keys)
        if self.tables.ttl and every:
            kept.forget_orphans()
        return kept, numbers[:size]

    def grown(
        self,
        rows: pa.Table,
        numbers: Ints,
        kept: SlicedState,
        passed: Passed,
        epoch: EpochContext,
        lateness: int = 0,
    ) -> tuple[Open, Growth, Parts]:
        """The windows that were open, what they become by ``rows``, and the pieces of these."""
        open_ = kept.open()
        spans, shown = self._spans(rows, numbers, open_, passed, lateness)
        growth = grow(spans, self.slide, shown)
        of = growth.of[len(open_) :]
        self.note_hot(kept.keys, numbers, open_.keys, epoch)
        self.add_late(rows, of < 0, epoch)
        return open_, growth, self._cut(rows, of, np.maximum(spans.starts, shown)[len(open_) :])

    def _spans(
        self, rows: pa.Table, keys: Ints, open_: Open, passed: Passed, lateness: int
    ) -> tuple[Spans, Ints]:
        """Open windows and rows, and the last step that had been shown before each."""
        nothing = np.zeros(0, np.int64)
        times = vector(rows.column(self.time)).values // MICROSECONDS if len(rows) else nothing
        marks = self.reached(rows, lateness)
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
