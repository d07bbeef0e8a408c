"""The common spec of aggregations in windows: keys, calls, time, trigger, and output columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import by_arrival, contiguous, hashes_of, with_types
from tidemill.changelog.columns import Ints, Mask, single, vector
from tidemill.changelog.rowkind import KIND_COLUMN
from tidemill.changelog.watermarks import WATERMARK_COLUMN, all_held_back
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.api import HOT, EpochContext
from tidemill.operators.group_aggregate.operator import GroupAggregateSpec
from tidemill.operators.rows.keyed_values import Keys
from tidemill.operators.window.clock import Clock
from tidemill.operators.window.output import WindowColumns
from tidemill.operators.window.store.partial_aggregates import END, PartialAggregates, Whole, pieces_of
from tidemill.operators.window.store.sessions import Tables
from tidemill.operators.window.triggers.shown import LAST, START, ShownWindows
from tidemill.operators.window.triggers.timers import Timers
from tidemill.operators.window.triggers.trigger import AT_END, Trigger
from tidemill.state.layout import Layout
from tidemill.state.store import StateStore


@dataclass(frozen=True, kw_only=True)
class WindowShape:
    """``time``: the column that windows are made by, in local time; ``output``: the order of keys, results
    and window columns. ``rows``: the other columns of rows that are given as they are, not aggregated.
    ``bucket``: the column of the buckets that all rows of hot keys are in, ``hot`` how many rows in an epoch
    make a key one; ``itself``: of copies of rows the column (BOOLEAN) that is true for one of each.
    ``behind``: by how many ms the operator holds its watermark back, and so that of each row.
    ``update_before``: whether windows that are shown again give -U."""

    keys: tuple[tuple[str, pa.DataType], ...]
    calls: tuple[AggregateSpec, ...]
    time: str
    clock: Clock
    columns: WindowColumns
    output: tuple[str, ...]
    trigger: Trigger = AT_END
    update_before: bool = True
    rows: tuple[tuple[str, pa.DataType], ...] | None = None
    retracts: bool = False
    keeps_time: bool = False
    sequence: bool = False
    bucket: str = ""
    hot: int = 0
    itself: str = ""
    behind: int = 0

    moving: ClassVar[tuple[str, ...]] = ()
    """The bounds that a window may change between the times that it is shown: ``START``, ``LAST``."""

    @property
    def group(self) -> GroupAggregateSpec:
        """The aggregation that runs."""
        return self.asked

    @cached_property
    def asked(self) -> GroupAggregateSpec:
        """The aggregation by window, told by a number (``END``), and key."""
        keys = ((END, pa.int64()), *self.keys)
        return GroupAggregateSpec(
            keys=keys, calls=self.calls, retracts=self.retracts, emit_update_before=False
        )

    @cached_property
    def counted(self) -> PartialAggregates:
        """What is kept of rows."""
        if self.rows is None:
            return pieces_of(self.group, self.keys)
        return Whole(group=self.group, keys=self.keys, rows=self.rows)

    @property
    def aggregates_rows_that_stay(self) -> bool:
        """Whether rows are insert-only, and equal rows count alike whenever they come."""
        return self.rows is None and not self.retracts and not self.group.needs_sequence

    # -- rows ------------------------------------------------------------------------------------------

    def arrived(self, table: pa.Table) -> pa.Table:
        """An epoch's rows in the order in which they came."""
        table = with_types(table, self.types)
        return contiguous(by_arrival(table) if len(table) else table)

    def keys_of(self, tables: list[pa.Table]) -> tuple[Keys, Ints]:
        """The distinct keys that ``tables`` have, and the number of each row's key."""
        names = [name for name, _ in self.keys]
        columns = [pa.concat_arrays([single(t.column(n)) for t in tables]) for n in names]
        hashes = [hashes_of(t, [single(t.column(n)) for n in names]) for t in tables]
        return Keys.of(columns, np.concatenate(hashes))

    def reached(self, rows: pa.Table, lateness: int = 0) -> Ints:
        """The local time that was reached before each row, minus the allowed ``lateness`` in ms."""
        if len(rows) == 0:
            return np.zeros(0, np.int64)
        marks = vector(single(rows.column(WATERMARK_COLUMN))).values
        return self.clock.all_reached(all_held_back(marks, self.behind + lateness))

    def add_late(self, rows: pa.Table, late: Mask, epoch: EpochContext, sizes: Ints | None = None) -> None:
        """Reports ``rows`` that are ``late``, each once. ``sizes``: the number of rows that each stands
        for."""
        if late.any():
            once = np.ones(len(rows), np.bool_)
            if self.bucket:
                once = vector(single(rows.column(self.bucket))).values == 0
            elif self.itself:
                once = vector(single(rows.column(self.itself))).values
            epoch.late.add(rows, late & once, sizes)

    def note_hot(self, keys: Keys, rows: Ints, open_: Ints, epoch: EpochContext) -> None:
        """Reports keys that are hot from now on. ``rows``: the key numbers of the new rows. ``open_``: the
        key numbers of the open windows: the first bucket has state of these keys."""
        if not self.bucket:
            return
        counts = np.bincount(rows, minlength=len(keys.hashes))
        counts[open_] = 0
        bucket_column = [name for name, _ in self.keys].index(self.bucket)
        counts[vector(keys.columns[bucket_column]).values != 0] = 0
        hot = np.flatnonzero(counts >= self.hot)
        if len(hot):
            epoch.notes[HOT] = [*epoch.notes.get(HOT, ()), *keys.hashes[hot].tolist()]

    # -- results ---------------------------------------------------------------------------------------

    @property
    def types(self) -> dict[str, pa.DataType]:
        """Of the columns that are handed on."""
        return dict((*self.keys, *(self.rows or ())))

    def output_schema(self) -> pa.Schema:
        keys = tuple(self.types.items())
        plain = self.columns.schema(keys, self.calls, self.output, self.keeps_time, self.sequence)
        if not self.trigger.repeats:
            return plain
        visible, fields = len(self.output), list(plain)
        return pa.schema([*fields[:visible], pa.field(KIND_COLUMN, pa.int8()), *fields[visible:]])

    def given(self, results: pa.Table, starts: Ints, ends: Ints, epoch: EpochContext) -> pa.Table:
        """The output: ``results`` with the bounds of each row's window."""
        last = self.clock.instants(ends - 1)
        return self.columns.shown(results, starts, ends, last, self.output_schema(), epoch)

    @cached_property
    def shown(self) -> ShownWindows:
        """The emitted results of windows, if ``trigger`` emits a window again."""
        bounds = tuple((name, pa.int64()) for name in dict.fromkeys((START, *self.moving)))
        return ShownWindows(
            keys=self.keys,
            results=(*bounds, *((c.name, c.result) for c in self.calls)),
            bounds=self.moving,
            update_before=self.update_before,
        )

    @cached_property
    def timers(self) -> Timers:
        """The timers of windows that emit a change later than in its epoch."""
        return Timers(identity=self.shown.identity)

    def changed(self, windows: pa.Table, now: pa.Table, state: StateStore, epoch: EpochContext) -> pa.Table:
        """The output for distinct ``windows``: the changes from their emitted results to ``now``."""
        if len(windows) == 0:
            return self.output_schema().empty_table()
        changes = self.shown.changes(windows, now, state)
        end = LAST if LAST in self.moving else END
        starts, ends = (vector(single(changes.column(name))).values for name in (START, end))
        return self.given(changes, starts, ends, epoch)

    def nothing_changed(self) -> pa.Table:
        """``now`` of no window: its end, the key, bounds and results."""
        return pa.schema([*self.shown.identity, *self.shown.layout.columns]).empty_table()


@dataclass(frozen=True, kw_only=True)
class DataDrivenShape(WindowShape):
    """The common spec of windows that the rows of a key determine: sessions, and windows that grow."""

    @cached_property
    def tables(self) -> Tables:
        return Tables(keys=self.key_fields, pieces=self.counted)

    @property
    def key_fields(self) -> tuple[pa.Field, ...]:
        return tuple(pa.field(name, kind) for name, kind in self.keys)

    @property
    def pieces(self) -> PartialAggregates:
        return self.tables.pieces

    @property
    def needs_sequence(self) -> bool:
        """The windows that a row meets depend on the rows before it."""
        return True

    @property
    def evolving(self) -> tuple[Layout, ...]:
        """See ``operators.api.Evolving``."""
        return (self.tables.counted, *[self.shown.layout] * self.trigger.repeats)
