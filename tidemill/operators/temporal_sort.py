"""ORDER BY event time: rows wait for the watermark and come out in the order of their time.

A row is due when the watermark has reached its time; a row behind the watermark is due at the next watermark.
It is late, and dropped, only if a row of its time or later has been emitted, because the output is in order
over all epochs. ``$wm`` tells the emitted rows at the row's arrival, so the answer does not depend on the cut
of epochs. Cost: the epoch's rows, and a sort of the due rows."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.batch import by_arrival, contiguous
from tidemill.changelog.columns import Ints, single, vector
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.changelog.watermarks import END, NONE, WATERMARK_COLUMN
from tidemill.operators.api import EpochContext
from tidemill.operators.rows.ordering import OrderKey, codes, sort_rows
from tidemill.operators.rows.schemas import output_schema
from tidemill.operators.rows.waiting import WaitingRows, each_copy
from tidemill.state.layout import Layout
from tidemill.state.store import StateStore
from tidemill.state.timeline import due_times

_MICROSECONDS = 1000
_GIVEN = Layout(name="given", keys=(), columns=(pa.field("time", pa.int64()),))
_NOBODY = hash_columns([], 1)


@dataclass(frozen=True, kw_only=True)
class TemporalSortSpec:
    """``columns``: the row, (name, type); ``order``: the time attribute, ascending, then the others.
    Input with ``$seq`` and ``$wm``; append-only."""

    columns: tuple[tuple[str, pa.DataType], ...]
    order: tuple[OrderKey, ...]
    sequence: bool = False
    keeps_time: bool = False

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"temporal-sort {self.columns} {self.order}".encode()).hexdigest()[:16]

    @cached_property
    def waiting(self) -> WaitingRows:
        """Rows by the watermark that they are due at."""
        return WaitingRows(name="rows", columns=(*self.columns, (SEQUENCE_COLUMN, pa.int64())))

    def output_schema(self) -> pa.Schema:
        return output_schema(self.columns, sequence=self.sequence, timed=self.keeps_time)

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """The rows that are due, by time."""
        (table,) = inputs
        emitted = _Emitted.of(state)
        waiting = self.waiting.take(state, epoch.watermark)
        table = contiguous(by_arrival(table)) if len(table) else table
        times, marks = self._times(table), _marks(table)
        dues = np.maximum(times, np.where(marks == END, END, marks + 1))
        late = times <= emitted.before(marks, (due_times(waiting), self._times(waiting)), (dues, times))
        epoch.late.add(table, late)
        rows = self.waiting.weighted(table, dues).filter(pa.array(~late))
        ready = pa.array(due_times(rows) <= epoch.watermark)
        self.waiting.put(state, rows.filter(pc.invert(ready)))
        due = each_copy(pa.concat_tables([waiting, rows.filter(ready)]))
        if len(due) == 0:
            return self.output_schema().empty_table()
        emitted.put(int(self._times(due).max()), state)
        return self._ordered(due, epoch)

    def _times(self, table: pa.Table) -> Ints:
        if len(table) == 0:
            return np.zeros(0, np.int64)
        times: Ints = vector(single(table.column(self.order[0].name))).values // _MICROSECONDS
        return times

    def _ordered(self, due: pa.Table, epoch: EpochContext) -> pa.Table:
        measures = [codes(single(due.column(key.name)), key) for key in self.order]
        arrival = vector(due.column(SEQUENCE_COLUMN)).values
        order = sort_rows(np.zeros(len(due), np.int64), measures, arrival)
        due = due.take(pa.array(order))
        columns = [due.column(name) for name, _ in self.columns]
        if self.sequence:
            columns.append(pa.array((epoch.epoch << 32) + np.arange(len(due), dtype=np.int64)))
        if self.keeps_time:
            columns.append(pa.array(due_times(due) - 1))
        return pa.table(columns, schema=self.output_schema())


@dataclass(frozen=True, slots=True)
class _Emitted:
    """``last``: the latest time of all rows that earlier epochs emitted."""

    last: int

    @classmethod
    def of(cls, state: StateStore) -> _Emitted:
        stored = state.table(_GIVEN).lookup(_NOBODY, [])
        return cls(int(stored.vec("time").values[0]) if stored.there.all() else NONE)

    def before(self, marks: Ints, *rows: tuple[Ints, Ints]) -> Ints:
        """The latest emitted time when each row came. ``rows``: (due, time) of rows that may have been
        emitted."""
        dues, times = (np.concatenate(parts) for parts in zip(*rows, strict=True))
        order = np.argsort(dues, kind="stable")
        latest = np.maximum.accumulate(np.append(self.last, times[order]))
        latest_given: Ints = latest[np.searchsorted(dues[order], marks, "right")]
        return latest_given

    def put(self, last: int, state: StateStore) -> None:
        if last > self.last:
            state.table(_GIVEN).put(_NOBODY, {"time": pa.array([last], pa.int64())})


def _marks(table: pa.Table) -> Ints:
    if len(table) == 0:
        return np.zeros(0, np.int64)
    marks: Ints = vector(single(table.column(WATERMARK_COLUMN))).values
    return marks
