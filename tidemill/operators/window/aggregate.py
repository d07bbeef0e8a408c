"""Aggregation in windows: one row per window and key, when the window's end has come.

A row counts in its slice, and so in every window with that slice that has not fired: it is late for those
whose end the watermark *before the row* had reached, wherever the epoch was cut. Fired windows are the
ones whose end lies between the watermarks before and after the epoch; CUMULATE fires at each step, rows
or not.

Before the exchange rows of a key and slice become one, where they are accumulators (``local``), or those that
are equal (``counts_copies``): as long as a task has not seen the end of one of their windows itself, whether
they are late is decided by what came before the task, and so in one way for all of them. The others keep
their watermark.

Cost of an epoch: the slices it touches, and the pieces of the windows that fire. What no later window needs
goes in the same step, without being written (see ``state.timeline``). A CUMULATE's slices become one
once they have fired.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

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
from tidemill.operators.rows.copies import counts_copies, one_each, read_by, together
from tidemill.operators.window.assigners.slices import CalendarWindows, Kind, Windows
from tidemill.operators.window.local import ROWS, LocalSlices
from tidemill.operators.window.output import MICROSECONDS
from tidemill.operators.window.shape import WindowShape
from tidemill.operators.window.store.first_slice_distinct import FirstSliceDistinct
from tidemill.operators.window.store.overlapping import by_window
from tidemill.operators.window.store.partial_aggregates import (
    END,
    Accumulated,
    Pieces,
    at_ends,
    ends_of,
    pieces_of,
    straying,
)
from tidemill.operators.window.store.slice_sets import SliceSets
from tidemill.operators.window.store.views import last_places, shown_at
from tidemill.state.layout import Layout
from tidemill.state.store import StateStore
from tidemill.state.timeline import TimeTable


class Kept(Protocol):
    """What is kept of rows, in tables by time."""

    @property
    def layout(self) -> Layout: ...

    def add(self, pieces: pa.Table, slices: TimeTable) -> None: ...

    def folded(self, pieces: pa.Table) -> pa.Table: ...

    def stored(self, entries: pa.Table) -> pa.Table: ...

    def together(self, ended: pa.Table, fresh: pa.Table) -> pa.Table: ...


@dataclass(frozen=True, kw_only=True)
class WindowAggregateSpec(WindowShape):
    """``time``: where rows are ``attached`` to a window, the end of it."""

    windows: Windows | CalendarWindows
    attached: bool = False
    partial_input: bool = False
    copies_input: bool = False

    @property
    def group(self) -> GroupAggregateSpec:
        """The aggregation by window and key."""
        return self.asked if self.distinct is None else self.distinct.summing

    @cached_property
    def distinct(self) -> FirstSliceDistinct | None:
        """How distinct values are counted apart from rows; None where there are none, or rows are kept."""
        found = FirstSliceDistinct(group=self.asked, keys=self.keys)
        return found if (found.serves if self.cumulates else found.separates) else None

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
        return self.windows.kind is Kind.CUMULATE and not self.attached

    @cached_property
    def pieces(self) -> Pieces:
        return pieces_of(self.group, self.keys)

    @property
    def whole(self) -> bool:
        """Whether a slice is a window."""
        return self.attached or self.windows.kind is Kind.TUMBLE

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
        facts = f"window-aggregate {self.pieces.layout.schema} {self.windows}"
        return hashlib.sha256(facts.encode()).hexdigest()[:16]

    @cached_property
    def local(self) -> LocalSlices | None:
        """The phase before the exchange; None where rows are kept as they are."""
        if not isinstance(self.pieces, Accumulated) or self.distinct is not None:
            return None
        return LocalSlices(group=self.group, keys=self.keys)

    @property
    def combinable(self) -> bool:
        return self.local is not None or self.counts_copies

    @property
    def counts_copies(self) -> bool:
        """Whether equal rows can come as one with their number."""
        return self.aggregates_rows_that_stay and all(map(counts_copies, self.calls))

    def combine(self, table: pa.Table) -> pa.Table:
        """One row per slice, key and watermark that tells whether it is late, or for all that are equal."""
        table, ends, marks = self._judged(table)
        if self.local is None:
            return together(self._in_slices(table, ends, marks), self._read)
        return self.local.combine(table, ends, marks)

    def _judged(self, table: pa.Table) -> tuple[pa.Table, Ints, Ints]:
        """The rows, their slices, and the watermarks that tell whether they are late: none where all of a
        slice are or none is."""
        table = contiguous(with_types(table, dict(self.keys)))
        ends = self._slices(table)
        marks: Ints = vector(table.column(WATERMARK_COLUMN)).values
        first = ends if self.attached else self.windows.first_ends(ends)
        return table, ends, np.where(self.clock.instants(first - 1) > marks, NONE, marks)

    def _in_slices(self, table: pa.Table, ends: Ints, marks: Ints) -> pa.Table:
        place = table.schema.get_field_index(WATERMARK_COLUMN)
        table = table.set_column(place, WATERMARK_COLUMN, to_arrow(Vec(marks), pa.int64()))
        return table.append_column(END, to_arrow(Vec(ends), pa.int64()))

    @property
    def _read(self) -> tuple[str, ...]:
        """The columns that tell rows apart."""
        own = [END, WATERMARK_COLUMN, *(name for name, _ in self.keys), *read_by(self.calls)]
        own += [self.itself] * bool(self.itself)
        return tuple(dict.fromkeys(own))

    def merged(self, raw: list[pa.Table], combined: list[pa.Table]) -> tuple[WindowAggregateSpec, pa.Table]:
        """Where some of the rows came combined, the rest is combined here: the step sees one kind."""
        if self.local is None:
            ones = [one_each(self._in_slices(*self._judged(t)), self._read) for t in raw]
            return replace(self, copies_input=True), pa.concat_tables([*combined, *ones])
        rest = [self.combine(pa.concat_tables(raw))] if raw else []
        return replace(self, partial_input=True), pa.concat_tables([*combined, *rest])

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """The results of the windows that fire in this epoch."""
        (table,) = inputs
        firing = self.firing(self.pieces, state, epoch)
        rows, ends, after = self._counted(table, firing.before, epoch)
        if self.cumulates:
            return self._grown(rows, self._open(ends, after), firing, state, epoch)
        came = Came(after, firing.before)
        fired = [came.fired(firing, lambda chosen: self._cut(rows, ends, chosen))]
        if self.distinct is not None:
            fired.append(
                self.distinct.told([self._told(s, rows, ends, came, firing, state) for s in self.sets])
            )
        return self._shown(pa.concat_tables(fired), state, epoch)

    def firing(self, kept: Kept, state: StateStore, epoch: EpochContext) -> Firing:
        """The windows that end in this epoch, of what is ``kept``."""
        return Firing(
            self,
            slices=state.timeline(kept.layout),
            strays=state.timeline(straying(kept.layout)),
            before=self.clock.ended(epoch.before),
            upto=self.clock.ended(epoch.watermark),
            kept=kept,
        )

    def _told(
        self, values: SliceSets, rows: pa.Table, ends: Ints, came: Came, firing: Firing, state: StateStore
    ) -> pa.Table:
        """The distinct values of the windows that fire, as rows that tell them."""
        own = replace(
            firing,
            slices=state.timeline(values.layout),
            strays=state.timeline(straying(values.layout)),
            kept=values,
        )
        return values.rows(came.fired(own, lambda chosen: values.cut(rows, ends, chosen)))

    def _grown(
        self, rows: pa.Table, ends: Ints, firing: Firing, state: StateStore, epoch: EpochContext
    ) -> pa.Table:
        """Of windows that cumulate: each is shown by what the one before it was, and the slices since."""
        self.pieces.add(self._cut(rows, ends, np.ones(len(ends), np.bool_)), firing.slices)
        if self.firsts is not None and len(rows):
            self.pieces.add(self._values(rows, ends, self.firsts, state), firing.slices)
        table, starts, numbers = self._in_order(firing.due())
        slices = ends_of(table)
        bounds = (np.full(len(starts), t, np.int64) for t in (firing.before, firing.upto))
        asked, fired = self.windows.containing(slices[starts], *bounds)
        output = self.output_schema().empty_table()
        if len(asked):
            last = last_places(numbers, slices, asked, fired)
            results, points = shown_at(self.pieces, table, starts, last, state, epoch)
            output = self._with_windows(results, fired[points], epoch)
        firing.forget()
        if self.firsts is not None and firing.fires:
            self.firsts.forget(firing.expired, state)
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
        """The rows that are not late for all their windows; their slices' ends; and up to where windows had
        fired when a row came (``before`` where none of its own had)."""
        table = contiguous(with_types(table, dict(self.keys)))
        if len(table) == 0:
            return table, np.zeros(0, np.int64), np.zeros(0, np.int64)
        ends = self._slices(table)
        if self.copies_input:
            table = table.drop_columns([END])
        marks: Ints = vector(table.column(WATERMARK_COLUMN)).values
        first, last = ends, ends
        if not self.attached:
            first, last = self.windows.first_ends(ends), self.windows.last_ends(ends)
        late = (self.clock.instants(last - 1) <= marks) | (last < first)
        after = np.full(len(ends), before, np.int64)
        partly = np.flatnonzero(~late & (self.clock.instants(first - 1) <= marks))
        if len(partly):
            distinct, places = np.unique(marks[partly], return_inverse=True)
            upto = np.array([self.clock.ended(mark) for mark in distinct.tolist()], np.int64)
            after[partly] = np.maximum(before, self.windows.fired(upto))[places.reshape(-1)]
        if late.any():
            self.add_late(table, late & (last >= first), epoch, self._rows(table))
            kept = np.flatnonzero(~late)
            table, ends, after = table.take(pa.array(kept)), ends[kept], after[kept]
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

    def _cut(self, rows: pa.Table, ends: Ints, chosen: Mask) -> pa.Table:
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
        starts, last = self.windows.starts(ends), self.clock.instants(ends - 1)
        return self.columns.shown(results, starts, ends, last, self.output_schema(), epoch)


@dataclass(frozen=True, slots=True)
class Came:
    """Up to where windows had fired when each row came (``after``), and at the beginning (``before``)."""

    after: Ints
    before: int

    def fired(self, firing: Firing, cut: Callable[[Mask], pa.Table]) -> pa.Table:
        """What the windows that fire hold, of accumulators one piece each; the rest stays. ``cut`` makes what
        is kept of rows."""
        clean, kept = self.after <= self.before, firing.kept
        if firing.spec.whole:
            return firing.whole(cut(clean))
        kept.add(cut(clean), firing.slices)
        found = kept.together(firing.stored(), kept.stored(firing.strays.take_due(firing.upto)))
        for value in np.unique(self.after[~clean]).tolist():
            # Windows that ended between this epoch's rows do not see the rows behind them.
            strays = cut(self.after == value)
            if value <= firing.upto:
                found = kept.together(found, firing.windows(strays, value))
                kept.add(strays, firing.slices)
            elif len(strays):
                kept.add(kept.folded(firing.later(strays, value)), firing.strays)
        firing.forget()
        return found


@dataclass(frozen=True, slots=True)
class Firing:
    """The windows that end in (``before``, ``upto``], and the slices they are made of. ``strays``: by window
    what came when the row's own source had gone on beyond earlier windows of its slice, for which others are
    still waited for."""

    spec: WindowAggregateSpec
    slices: TimeTable
    strays: TimeTable
    before: int
    upto: int
    kept: Kept

    @property
    def fires(self) -> bool:
        """Whether any window ends: as long as none does, nothing that is kept is looked at."""
        if self.upto in (NONE, FOREVER):
            return self.upto > self.before
        (last,) = self.spec.windows.fired(np.array([self.upto], np.int64)).tolist()
        return bool(last > self.before)

    def due(self) -> pa.Table:
        """The pieces of which windows fire, and no others that come later."""
        first, last = (NONE, self.upto) if self.fires else (1, 0)
        return self.kept.stored(self.slices.range(first, last))

    def whole(self, fresh: pa.Table) -> pa.Table:
        """What the windows hold that end, where a slice is a window and ``fresh`` came: what is not kept is
        not written. No row of such a window comes when it has ended, so there are no strays."""
        over = ends_of(fresh) <= self.upto
        self.kept.add(fresh.filter(pa.array(~over)), self.slices)
        ended = self.kept.stored(self.slices.take_due(self.upto))
        return self.kept.together(ended, fresh.filter(pa.array(over)))

    def stored(self) -> pa.Table:
        """The pieces that are kept, by window."""
        return self.windows(self.due(), self.before)

    def windows(self, pieces: pa.Table, after: int) -> pa.Table:
        """``pieces`` by window, of those that end after ``after``."""
        if isinstance(self.kept, Accumulated):
            return by_window(self.kept, pieces, self.spec.windows, after, self.upto)
        ends = ends_of(pieces)
        bounds = np.full(len(ends), after, np.int64), np.full(len(ends), self.upto, np.int64)
        return at_ends(pieces, *self.spec.windows.containing(ends, *bounds))

    def later(self, pieces: pa.Table, after: int) -> pa.Table:
        """``pieces`` by window, of all those that end after ``after``."""
        ends, windows = ends_of(pieces), self.spec.windows
        bound = np.full(len(ends), after, np.int64)
        return at_ends(pieces, *windows.containing(ends, bound, windows.last_ends(ends)))

    @property
    def expired(self) -> int:
        """No later window has a slice that ends at or before this."""
        if self.upto in (NONE, FOREVER):
            return self.upto
        return self.spec.windows.expired(self.upto)

    def forget(self) -> None:
        """What no later window needs goes; a CUMULATE's slices that have fired become one."""
        windows, pieces = self.spec.windows, self.spec.pieces
        if self.upto == FOREVER:
            self.slices.take_due(FOREVER)
        if self.spec.whole or self.upto in (NONE, FOREVER) or not self.fires:
            return
        self.slices.take_due(windows.expired(self.upto))
        if windows.kind is Kind.CUMULATE and isinstance(pieces, Accumulated):
            (settled,) = windows.fired(np.array([self.upto])).tolist()
            if settled > windows.expired(self.upto):
                taken = pieces.stored(self.slices.take_due(settled))
                pieces.add(pieces.settle(taken, settled), self.slices)
