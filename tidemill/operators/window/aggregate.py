"""Aggregation in windows made of slices: one row per window and key when the window's end has come.

A row counts in its slice, and so in every open window with that slice. It is late for windows that the
watermark *before the row* had shut, whatever the cut of epochs. The windows that end between the watermarks
before and after the epoch are emitted; CUMULATE emits each step, with or without rows. For early and late
results see ``aggregate_changes``.

Before the exchange, rows of a key and slice are combined into accumulators (``local``), or equal rows are
combined (``counts_copies``). As long as a task has not seen the end of one of their windows, the rows before
the task decide whether they are late, so the decision is the same for all of them. Other rows keep their
watermark.

Cost of an epoch: see ``store.sliced``.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import COPIES, contiguous, with_types
from tidemill.changelog.columns import Ints, Mask, Vec, single, to_arrow, vector
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.watermarks import END as FOREVER
from tidemill.changelog.watermarks import NONE, WATERMARK_COLUMN
from tidemill.operators.api import EpochContext
from tidemill.operators.group_aggregate.operator import GroupAggregateSpec
from tidemill.operators.rows.copies import columns_read, combine_equal_rows, counts_copies, with_single_copies
from tidemill.operators.window.aggregate_changes import Came, Changes
from tidemill.operators.window.assigners.assigner import Assigner
from tidemill.operators.window.local import ROWS, LocalSlices
from tidemill.operators.window.output import MICROSECONDS
from tidemill.operators.window.shape import WindowShape
from tidemill.operators.window.store.first_slice_distinct import FirstSliceDistinct
from tidemill.operators.window.store.partial_aggregates import (
    END,
    Accumulated,
    PartialAggregates,
    at_ends,
    ends_of,
)
from tidemill.operators.window.store.slice_sets import SliceSets
from tidemill.operators.window.store.sliced import Kept, Slices
from tidemill.operators.window.store.views import last_places, shown_at
from tidemill.state.layout import Layout
from tidemill.state.store import StateStore


@dataclass(frozen=True, kw_only=True)
class WindowAggregateSpec(WindowShape):
    """``time``: where rows are ``attached`` to a window, the end of it."""

    windows: Assigner
    attached: bool = False
    partial_input: bool = False
    copies_input: bool = False

    @property
    def group(self) -> GroupAggregateSpec:
        """The aggregation by window and key."""
        return self.asked if self.distinct is None else self.distinct.summing

    @cached_property
    def distinct(self) -> FirstSliceDistinct | None:
        """How distinct values are counted apart from rows; None if there are none, or rows are kept."""
        if self.trigger.repeats:
            return None
        first_slice = FirstSliceDistinct(group=self.asked, keys=self.keys)
        return first_slice if (first_slice.serves if self.cumulates else first_slice.separates) else None

    @property
    def firsts(self) -> FirstSliceDistinct | None:
        """Of windows that cumulate: values by their first slices."""
        return self.distinct if self.cumulates else None

    @property
    def sets(self) -> tuple[SliceSets, ...]:
        """Of other windows: the values of each slice."""
        if self.distinct is None or self.cumulates:
            return ()
        return tuple(SliceSets(self.distinct, view) for view in self.distinct.views.values())

    @property
    def cumulates(self) -> bool:
        return self.windows.cumulates and not self.attached

    @property
    def pieces(self) -> PartialAggregates:
        return self.counted

    @property
    def whole(self) -> bool:
        """Whether a slice is a window."""
        return self.attached or self.windows.whole

    def next_end(self, state: StateStore, ended: int) -> int | None:
        """See ``triggers.processing_time``."""
        earliest = state.timeline(self.pieces.layout).earliest()
        if earliest is None or self.whole:
            return earliest
        bounds = (np.array([x], np.int64) for x in (earliest, ended, FOREVER))
        _, ends = self.windows.containing(*bounds)
        return int(ends.min()) if len(ends) else None

    @property
    def needs_sequence(self) -> bool:
        return self.group.needs_sequence

    @property
    def fingerprint(self) -> str:
        schema = self.pieces.layout.schema
        facts = f"window-aggregate {schema} {self.windows.on_disk}"
        if self.trigger.repeats:
            facts = f"emitting-window-aggregate {(schema, self.shown.layout.schema)} {self.windows.on_disk}"
        return hashlib.sha256(facts.encode()).hexdigest()[:16]

    @property
    def evolving(self) -> tuple[Layout, ...]:
        """See ``operators.api.Evolving``."""
        values = [s.layout for s in self.sets]
        if self.firsts is not None:
            fields = tuple(pa.field(*key) for key in self.keys)
            values += [view.layout(fields) for view in self.firsts.views.values()]
        shown_layouts = [self.shown.layout] * self.trigger.repeats
        return (self.pieces.layout, *values, *shown_layouts)

    @cached_property
    def local(self) -> LocalSlices | None:
        """The phase before the exchange; None if rows are kept as they are."""
        if not isinstance(self.pieces, Accumulated) or self.distinct is not None:
            return None
        return LocalSlices(group=self.group, keys=self.keys)

    @property
    def combinable(self) -> bool:
        return not self.trigger.repeats and (self.local is not None or self.counts_copies)

    @property
    def counts_copies(self) -> bool:
        """Whether equal rows can come as one with their number."""
        return self.aggregates_rows_that_stay and all(map(counts_copies, self.calls))

    def combine(self, table: pa.Table) -> pa.Table:
        """One row per slice, key and watermark that tells whether it is late, or for all that are equal."""
        table, ends, marks = self._judged(table)
        if self.local is None:
            return combine_equal_rows(self._in_slices(table, ends, marks), self._read)
        return self.local.combine(table, ends, marks)

    def _judged(self, table: pa.Table) -> tuple[pa.Table, Ints, Ints]:
        """The rows, their slices, and the watermarks that tell whether they are late: none if all of a
        slice are or none is."""
        table = contiguous(with_types(table, dict(self.keys)))
        ends = self._slices(table)
        marks: Ints = vector(table.column(WATERMARK_COLUMN)).values
        first = ends if self.attached else self.windows.first_ends(ends)
        return table, ends, np.where(self.clock.instants(first - 1) > marks, NONE, marks)

    def _in_slices(self, table: pa.Table, ends: Ints, marks: Ints) -> pa.Table:
        column_index = table.schema.get_field_index(WATERMARK_COLUMN)
        table = table.set_column(column_index, WATERMARK_COLUMN, to_arrow(Vec(marks), pa.int64()))
        return table.append_column(END, to_arrow(Vec(ends), pa.int64()))

    @property
    def _read(self) -> tuple[str, ...]:
        """The columns that tell rows apart."""
        own = [END, WATERMARK_COLUMN, *(name for name, _ in self.keys), *columns_read(self.calls)]
        own += [self.itself] * bool(self.itself)
        return tuple(dict.fromkeys(own))

    def merged(self, raw: list[pa.Table], combined: list[pa.Table]) -> tuple[WindowAggregateSpec, pa.Table]:
        """Where some of the rows came combined, the rest is combined here: the step sees one kind."""
        if self.local is None:
            ones = [with_single_copies(self._in_slices(*self._judged(t)), self._read) for t in raw]
            return replace(self, copies_input=True), pa.concat_tables([*combined, *ones])
        late_combined = [self.combine(pa.concat_tables(raw))] if raw else []
        return replace(self, partial_input=True), pa.concat_tables([*combined, *late_combined])

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """The results of the windows that are shown in this epoch, or what has changed of them."""
        slices = self.slices(self.pieces, state, epoch)
        rows, ends, after = self._counted(inputs[0], slices.at.shut_before, epoch)
        if self.trigger.repeats:
            return Changes(self, slices, state, epoch).of(Came(rows, ends, after))
        if self.cumulates:
            return self._grown(rows, self._open(ends, after), slices, state, epoch)
        fired = [slices.fired(after, lambda chosen: self.cut(rows, ends, chosen))]
        if self.distinct is not None:
            values_by_set = [self._told(s, rows, ends, after, slices, state) for s in self.sets]
            fired.append(self.distinct.told(values_by_set))
        return self._shown(pa.concat_tables(fired), state, epoch)

    def slices(self, kept: Kept, state: StateStore, epoch: EpochContext) -> Slices:
        """What is ``kept`` by slice, and the windows that end in this epoch."""
        return Slices.of(kept, self.windows, self.whole, self.trigger.horizons(self.clock, epoch), state)

    def _told(
        self, values: SliceSets, rows: pa.Table, ends: Ints, after: Ints, slices: Slices, state: StateStore
    ) -> pa.Table:
        """The distinct values of the windows that end, as rows that tell them."""
        own = Slices.of(values, self.windows, self.whole, slices.at, state)
        return values.rows(own.fired(after, lambda chosen: values.cut(rows, ends, chosen)))

    def _grown(
        self, rows: pa.Table, ends: Ints, slices: Slices, state: StateStore, epoch: EpochContext
    ) -> pa.Table:
        """Of windows that cumulate: each is shown by what the one before it was, and the slices since."""
        self.pieces.add(self.cut(rows, ends, np.ones(len(ends), np.bool_)), slices.slices)
        if self.firsts is not None and len(rows):
            self.pieces.add(self._values(rows, ends, self.firsts, state), slices.slices)
        table, starts, numbers = self._in_order(slices.due())
        own = ends_of(table)
        bounds = (np.full(len(starts), t, np.int64) for t in (slices.at.before, slices.at.upto))
        window_slices, fired = self.windows.containing(own[starts], *bounds)
        output = self.output_schema().empty_table()
        if len(window_slices):
            last = last_places(numbers, own, window_slices, fired)
            results, points = shown_at(self.pieces, table, starts, last, state, epoch)
            output = self._with_windows(results, fired[points], epoch)
        fires = slices.fires
        slices.forget()
        if self.firsts is not None and fires:
            self.firsts.forget(slices.expired, state)
        return output

    def _in_order(self, pieces: pa.Table) -> tuple[pa.Table, Ints, Ints]:
        """``pieces`` by key and start of the window, and in the order of slices; where each of these begins,
        and the number of each piece's."""
        starts = to_arrow(Vec(self.windows.starts(ends_of(pieces))), pa.int64())
        columns = [starts, *(single(pieces.column(name)) for name, _ in self.keys)]
        groups = group_rows(hash_columns(columns, len(pieces)), columns)
        numbers = groups.ids()
        order = groups.order[np.lexsort((ends_of(pieces)[groups.order], numbers))]
        return pieces.take(pa.array(order)), groups.starts, numbers

    def _counted(self, table: pa.Table, before: int, epoch: EpochContext) -> tuple[pa.Table, Ints, Ints]:
        """The rows that are not late for all their windows, the ends of their slices, and the time up to
        which windows were shut when a row came (``before`` if none of its own windows was)."""
        table = contiguous(with_types(table, dict(self.keys)))
        if len(table) == 0:
            return table, np.zeros(0, np.int64), np.zeros(0, np.int64)
        ends = self._slices(table)
        if self.copies_input:
            table = table.drop_columns([END])
        marks = self.trigger.judged(vector(table.column(WATERMARK_COLUMN)).values)
        first, last = ends, ends
        if not self.attached:
            first, last = self.windows.first_ends(ends), self.windows.last_ends(ends)
        late = (self.clock.instants(last - 1) <= marks) | (last < first)
        after = np.full(len(ends), before, np.int64)
        partly = np.flatnonzero(~late & (self.clock.instants(first - 1) <= marks))
        if len(partly):
            distinct, mark_index = np.unique(marks[partly], return_inverse=True)
            upto = np.array([self.clock.ended(mark) for mark in distinct.tolist()], np.int64)
            after[partly] = np.maximum(before, self.windows.fired(upto))[mark_index.reshape(-1)]
        if late.any():
            self.add_late(table, late & (last >= first), epoch, self._rows(table))
            counted_rows = np.flatnonzero(~late)
            table, ends, after = table.take(pa.array(counted_rows)), ends[counted_rows], after[counted_rows]
        return table, ends, after

    def _open(self, ends: Ints, after: Ints) -> Ints:
        """The first slices of cumulating windows that had not fired: an earlier row counts from there."""
        fired = np.flatnonzero(ends <= after)
        opened = ends.copy()
        opened[fired] = self.windows.slice_ends(after[fired])
        return opened

    def _values(self, rows: pa.Table, ends: Ints, firsts: FirstSliceDistinct, state: StateStore) -> pa.Table:
        """What the rows add to the numbers of distinct values."""
        if self.copies_input:
            rows = rows.drop_columns([COPIES])
        rows = rows.append_column(END, to_arrow(Vec(ends), pa.int64()))
        return firsts.added(rows, self.windows.last_ends(ends), state)

    def _slices(self, table: pa.Table) -> Ints:
        """The end of each row's slice."""
        if self.partial_input or self.copies_input:
            return ends_of(table)
        times: Ints = vector(table.column(self.time)).values // MICROSECONDS
        return times if self.attached else self.windows.slice_ends(times)

    def _rows(self, table: pa.Table) -> Ints:
        """How many rows each row stands for."""
        if not (self.partial_input or self.copies_input):
            return np.ones(len(table), np.int64)
        rows: Ints = vector(table.column(COPIES if self.copies_input else ROWS)).values
        return rows

    def cut(self, rows: pa.Table, ends: Ints, chosen: Mask) -> pa.Table:
        if self.partial_input:
            rows = rows.select(self.pieces.schema.names).cast(self.pieces.schema)
            rows = at_ends(rows, np.flatnonzero(chosen), ends[chosen])
            return self.pieces.folded(rows) if len(rows) else rows
        rows = rows.append_column(END, to_arrow(Vec(ends), pa.int64()))
        if not chosen.all():
            rows = rows.take(pa.array(np.flatnonzero(chosen)))
        return self.pieces.cut(rows if self.distinct is None else self.distinct.plain(rows))

    def _shown(self, fired: pa.Table, state: StateStore, epoch: EpochContext) -> pa.Table:
        if len(fired) == 0:
            return self.output_schema().empty_table()
        if isinstance(self.pieces, Accumulated) and self.distinct is None:
            results = self.pieces.told(contiguous(fired))
        else:
            results = self.pieces.results(contiguous(fired), state.scratch(), epoch)
        return self._with_windows(results, ends_of(results), epoch)

    def _with_windows(self, results: pa.Table, ends: Ints, epoch: EpochContext) -> pa.Table:
        return self.given(results, self.windows.starts(ends), ends, epoch)
