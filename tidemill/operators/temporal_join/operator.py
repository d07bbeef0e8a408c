"""The temporal join by event time: joins every left row with the version of its key at the row's time.

A left row waits until the watermarks of both sides have reached its time. Then its version is known, and the
row is emitted with the version, padded, or dropped. A row behind its side's watermark is due at the next
watermark. It sees a version only if no later version is settled, because earlier versions are removed.

State: left rows by due time, versions by the time they settle (both are read from the start, without
searches), and the latest settled version per key. Cost of an epoch: its rows, the due rows, the settling
versions, and one lookup per key.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.batch import by_arrival, contiguous, hashes_of
from tidemill.changelog.columns import Ints, Mask, Vec, single, to_arrow, vector
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN
from tidemill.changelog.watermarks import END, WATERMARK_COLUMN, all_held_back
from tidemill.operators.api import EpochContext
from tidemill.operators.rows.waiting import each_copy
from tidemill.operators.temporal_join.shape import ALIVE, TemporalJoinShape
from tidemill.operators.temporal_join.versions import (
    MICROSECONDS,
    History,
    Versions,
    arrived_versions,
    current_versions,
    settled_versions,
    without_null,
)
from tidemill.state.store import StateStore
from tidemill.state.timeline import due_times


@dataclass(frozen=True, kw_only=True)
class TemporalJoinSpec(TemporalJoinShape):
    """Input of both sides with ``$wm``, of the right one with ``$seq``."""

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """The left rows that are due, each with its version."""
        left, right = inputs
        state.now = epoch.time
        rows = _Due.of(self, left, state, epoch.watermark)
        fresh = settled_versions(self, arrived_versions(self, right, state), state, epoch.watermark)
        history, owners = self._history(rows, fresh, state)
        history.keep_last(self, state)
        if len(rows.dues) == 0:
            return self.output_schema().empty_table()
        # A late row sees the version of the watermark, because of earlier versions only the last is kept.
        times = rows.times(self)
        version_rows = history.seen(owners, np.maximum(times, rows.dues - 1), rows.dues)
        matched = rows.matchable(self) & (version_rows >= 0)
        gone = matched.copy()
        matched[matched] = history.versions.times[version_rows[matched]] <= times[matched]
        gone &= ~matched & rows.comes(self)
        epoch.late.count += int(np.count_nonzero(gone))
        alive = vector(single(history.versions.rows.column(ALIVE))).values
        matched[matched] = alive[version_rows[matched]]
        return self._shown(_Pairs(history.versions.rows, version_rows, matched), rows, epoch)

    def _history(self, rows: _Due, fresh: Versions, state: StateStore) -> tuple[History, Ints]:
        """The versions of the keys of ``rows`` and ``fresh``; the key of each of ``rows``."""
        hashes = np.concatenate([rows.hashes(self), fresh.hashes])
        columns = [
            single(pa.chunked_array([single(rows.table.column(a)), b]))
            for a, b in zip(self.left.keys, fresh.keys(self), strict=True)
        ]
        groups = group_rows(hashes, columns)
        numbers = np.empty(len(hashes), np.int64)
        numbers[groups.order] = groups.ids()
        heads = groups.heads
        keys = [column.take(pa.array(heads)) for column in columns]
        stored, has_version = current_versions(self, hashes[heads], keys, state)
        every = np.concatenate([np.flatnonzero(has_version), numbers[len(rows.dues) :]])
        history = History.of(Versions.together([stored, fresh]), every, len(stored))
        return history, numbers[: len(rows.dues)]

    def _shown(self, pairs: _Pairs, rows: _Due, epoch: EpochContext) -> pa.Table:
        chosen = np.arange(len(rows.dues)) if self.outer else np.flatnonzero(pairs.matched)
        dues = rows.dues[chosen]
        arrival = np.zeros(len(dues), np.int64)
        if self.sequence:
            arrival = vector(single(rows.table.column(SEQUENCE_COLUMN))).values[chosen]
        chosen = chosen[np.lexsort((arrival, dues))]
        picks = pa.array(chosen)
        columns = [single(rows.table.column(name)).take(picks) for name in self.left.output]
        columns += [pairs.right(name, chosen) for name in self.right.output]
        if self.tells:
            columns.append(pa.array(pairs.matched[chosen]))
        if self.left.retracts:
            columns.append(single(rows.table.column(KIND_COLUMN)).take(picks))
        if self.sequence:
            columns.append(pa.array((epoch.epoch << 32) + np.arange(len(chosen), dtype=np.int64)))
        if self.keeps_time:
            # Operators by time above get the row just before the watermark reaches its time.
            columns.append(to_arrow(Vec(rows.dues[chosen] - 1), pa.int64()))
        return pa.table(columns, schema=self.output_schema())


@dataclass(frozen=True, slots=True)
class _Due:
    """The left rows that are due in this epoch, and the watermark that each waited for."""

    table: pa.Table
    dues: Ints

    @classmethod
    def of(cls, shape: TemporalJoinShape, table: pa.Table, state: StateStore, watermark: int) -> _Due:
        """The due rows among waiting and new rows; other rows are stored."""
        waiting = shape.waiting.take(state, watermark)
        if len(table):
            table = contiguous(by_arrival(table) if shape.sequence else table)
            times = vector(table.column(shape.times[0])).values // MICROSECONDS
            marks = all_held_back(vector(table.column(WATERMARK_COLUMN)).values, shape.behind[0])
            # A row is due at the watermark of its time, or at the next watermark if that has passed.
            dues = np.maximum(times, np.where(marks == END, END, marks + 1))
            rows = shape.waiting.weighted(table, dues)
            ready = pa.array(dues <= watermark)
            shape.waiting.put(state, rows.filter(pc.invert(ready)))
            waiting = pa.concat_tables([waiting, rows.filter(ready)])
        due = each_copy(waiting) if len(waiting) else waiting
        return cls(contiguous(due), due_times(due))

    def times(self, shape: TemporalJoinShape) -> Ints:
        times: Ints = vector(single(self.table.column(shape.times[0]))).values // MICROSECONDS
        return times

    def comes(self, shape: TemporalJoinShape) -> Mask:
        """The mask of inserted rows; the others are retractions."""
        if not shape.left.retracts:
            return np.ones(len(self.dues), np.bool_)
        comes: Mask = vector(single(self.table.column(KIND_COLUMN))).values & 1 == 0
        return comes

    def hashes(self, shape: TemporalJoinShape) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        return hashes_of(self.table, [single(self.table.column(k)) for k in shape.left.keys])

    def matchable(self, shape: TemporalJoinShape) -> Mask:
        """The mask of rows whose keys can match."""
        return without_null(self.table, shape.left.keys, shape.null_safe)


@dataclass(slots=True)
class _Pairs:
    """``places``: the index of each left row's version. ``matched``: whether it counts."""

    versions: pa.Table
    places: Ints
    matched: Mask

    def right(self, name: str, rows: Ints) -> pa.Array:
        """A right column for some of the left rows, NULL for rows without a match."""
        there = self.matched[rows]
        source_rows = pa.array(np.where(there, self.places[rows], 0), mask=~there)
        return single(self.versions.column(name)).take(source_rows)
