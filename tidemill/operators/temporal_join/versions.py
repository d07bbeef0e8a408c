"""Versions: the right side's rows by time, and the version that a left row sees.

A version is valid from its time until the time of its key's next version. It came *behind* a watermark if its
side's watermark had reached its time (``marks``); left rows that were due by then do not see it. So the
version of a row follows from the order of each side's rows, and not from the cut of epochs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import by_arrival, contiguous, hashes_of
from tidemill.changelog.columns import Hashes, Ints, Mask, Vec, single, to_arrow, validity, vector
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.rowkind import KIND_COLUMN, RowKind
from tidemill.changelog.watermarks import NONE, WATERMARK_COLUMN, all_held_back
from tidemill.operators.temporal_join.shape import ALIVE, MARK, TIME, TemporalJoinShape
from tidemill.state.store import StateStore
from tidemill.state.timeline import TimeTable

MICROSECONDS = 1000
_NUMBER = pa.int64()


@dataclass(frozen=True, slots=True)
class Versions:
    """``rows``: keys, values and ``$alive``; ``times`` and ``marks`` (NONE: came in time) in ms; ``hashes``
    of the keys."""

    rows: pa.Table
    times: Ints
    marks: Ints
    hashes: Hashes

    def __len__(self) -> int:
        return len(self.times)

    @property
    def settles(self) -> Ints:
        """The watermark from which on all rows see the versions."""
        latest: Ints = np.maximum(self.times, self.marks)
        return latest

    def take(self, rows: Ints) -> Versions:
        if len(rows) == len(self) and (rows == np.arange(len(rows))).all():
            return self
        return Versions(self.rows.take(pa.array(rows)), self.times[rows], self.marks[rows], self.hashes[rows])

    def keys(self, shape: TemporalJoinShape) -> list[pa.Array]:
        return [single(self.rows.column(name)) for name in shape.right.keys]

    @staticmethod
    def together(parts: list[Versions]) -> Versions:
        return Versions(
            contiguous(pa.concat_tables([p.rows for p in parts])),
            np.concatenate([p.times for p in parts]),
            np.concatenate([p.marks for p in parts]),
            np.concatenate([p.hashes for p in parts]),
        )


def rows_schema(shape: TemporalJoinShape) -> pa.Schema:
    """Of ``Versions.rows``."""
    return pa.schema([*shape.right.key_fields, *shape.right.value_fields, pa.field(ALIVE, pa.bool_())])


def without_null(table: pa.Table, keys: tuple[str, ...], null_safe: tuple[bool, ...]) -> Mask:
    """The mask of rows without a NULL in keys that are not null-safe."""
    there = np.ones(len(table), np.bool_)
    for name, safe in zip(keys, null_safe, strict=True):
        valid = None if safe else validity(single(table.column(name)))
        there &= True if valid is None else valid
    return there


def arrived_versions(shape: TemporalJoinShape, table: pa.Table, state: StateStore) -> Versions:
    """The epoch's rows as versions, in order of arrival. A deletion is an invisible version."""
    table = by_arrival(table) if len(table) else table
    keep = without_null(table, shape.right.keys, shape.null_safe)
    alive = np.ones(len(table), np.bool_)
    if KIND_COLUMN in table.schema.names:
        kinds = vector(table.column(KIND_COLUMN)).values
        keep &= kinds != RowKind.UPDATE_BEFORE
        alive &= kinds != RowKind.DELETE
    if shape.alive:
        passes = vector(single(table.column(shape.alive)))
        alive &= passes.values & passes.mask()
    times: Ints = vector(single(table.column(shape.times[1]))).values // MICROSECONDS
    marks = all_held_back(vector(single(table.column(WATERMARK_COLUMN))).values, shape.behind[1])
    schema = rows_schema(shape)
    columns = [single(table.column(f.name)) for f in schema if f.name != ALIVE]
    rows = pa.table([*columns, to_arrow(Vec(alive), pa.bool_())], names=schema.names).cast(schema)
    hashes = hashes_of(table, [single(table.column(name)) for name in shape.right.keys])
    came = Versions(contiguous(rows), times, np.where(marks >= times, marks, NONE), hashes)
    came = came.take(np.flatnonzero(keep))
    return _latest(shape, came, state) if shape.latest else came


def _latest(shape: TemporalJoinShape, came: Versions, state: StateStore) -> Versions:
    """The versions that are not older than an earlier version of their key."""
    if len(came) == 0:
        return came
    table, keys = state.table(shape.newest), came.keys(shape)
    groups = group_rows(came.hashes, keys)
    heads = groups.heads
    keys = [key.take(pa.array(heads)) for key in keys]
    stored = table.lookup(came.hashes[heads], keys)
    latest_times = np.where(stored.there, stored.vec(TIME).values, NONE)
    ordered = came.times[groups.order]
    reached = _running_maximum(ordered, groups.ids(), latest_times)
    last = reached[np.append(groups.starts[1:], len(ordered)) - 1]
    moved = np.flatnonzero(last > latest_times)
    columns = {name: key.take(pa.array(moved)) for name, key in zip(shape.right.keys, keys, strict=True)}
    table.put(came.hashes[heads][moved], {**columns, TIME: to_arrow(Vec(last[moved]), _NUMBER)})
    return came.take(np.sort(groups.order[ordered >= reached]))


def _running_maximum(times: Ints, owners: Ints, initial: Ints) -> Ints:
    """Per row the greatest time of its owner up to it; ``owners`` ascend. It uses ranks, so all ranks of a
    later owner are above the ranks of an earlier owner."""
    start = np.maximum(times, initial[owners])
    distinct, ranks = np.unique(start, return_inverse=True)
    lifted = np.maximum.accumulate(owners * len(distinct) + ranks.reshape(-1))
    reached: Ints = distinct[lifted - owners * len(distinct)]
    return reached


def settled_versions(shape: TemporalJoinShape, came: Versions, state: StateStore, watermark: int) -> Versions:
    """The stored and new versions that all later rows see at ``watermark``; other versions wait in state."""
    coming = state.timeline(shape.coming)
    stored = _stored(shape, coming, watermark)
    now = came.settles <= watermark
    _put(shape, came.take(np.flatnonzero(~now)), coming)
    return Versions.together([stored, came.take(np.flatnonzero(now))])


def _stored(shape: TemporalJoinShape, coming: TimeTable, watermark: int) -> Versions:
    entries = coming.take_due(watermark)
    rows = contiguous(entries.select(rows_schema(shape).names))
    times, marks = (vector(single(entries.column(name))).values for name in (TIME, MARK))
    return Versions(rows, times, marks, hashes_of(rows, [single(rows.column(k)) for k in shape.right.keys]))


def _put(shape: TemporalJoinShape, waiting: Versions, coming: TimeTable) -> None:
    """Stores waiting versions; of versions with one identity the last arrival."""
    if len(waiting) == 0:
        return
    layout = coming.layout
    names = [to_arrow(Vec(waiting.times), _NUMBER), to_arrow(Vec(waiting.marks), _NUMBER)]
    codes = layout.codes(waiting.hashes, names)
    groups = group_rows(codes, [*waiting.keys(shape), *names])
    chosen = groups.order[np.append(groups.starts[1:], len(groups.order)) - 1]
    picks = pa.array(chosen)
    columns = {name: single(waiting.rows.column(name)).take(picks) for name in waiting.rows.column_names}
    columns |= {TIME: names[0].take(picks), MARK: names[1].take(picks)}
    coming.put(waiting.settles[chosen], codes[chosen], columns)


@dataclass(frozen=True, slots=True)
class History:
    """Versions of the keys in question, by key (``owners``) and time; ``fresh``: settled in this epoch."""

    versions: Versions
    owners: Ints
    fresh: Mask

    @staticmethod
    def of(versions: Versions, owners: Ints, stored_count: int) -> History:
        """The history of ``versions`` in order of arrival; the first ``stored_count`` are not fresh. Of
        several versions of one key and time the last counts."""
        order = np.lexsort((versions.marks, versions.times, owners))
        owners, versions = owners[order], versions.take(order)
        same = owners[1:] == owners[:-1]
        same &= versions.times[1:] == versions.times[:-1]
        same &= versions.marks[1:] == versions.marks[:-1]
        last = np.flatnonzero(np.append(~same, True)[: len(owners)])
        return History(versions.take(last), owners[last], order[last] >= stored_count)

    def seen(self, owners: Ints, times: Ints, dues: Ints) -> Ints:
        """For each row (key, time, due time) the index of the latest version that it sees, or -1. Cost: a
        sort of both, and a step per consecutive version that came too late."""
        version_rows = self._upto(owners, times)
        looking = np.flatnonzero(version_rows >= 0)
        while len(looking):
            at = version_rows[looking]
            looking, at = (x[self.versions.marks[at] >= dues[looking]] for x in (looking, at))
            before = np.maximum(at - 1, 0)
            there = (at > 0) & (self.owners[before] == self.owners[at])
            version_rows[looking] = np.where(there, before, -1)
            looking = looking[there]
        return version_rows

    def _upto(self, owners: Ints, times: Ints) -> Ints:
        size = len(self.owners)
        row = np.repeat([0, 1], [size, len(owners)])
        every = np.concatenate([self.versions.times, times]), np.concatenate([self.owners, owners])
        order = np.lexsort((row, *every))
        last = np.maximum.accumulate(np.where(order < size, order, -1))
        rows = order >= size
        version_rows = np.empty(len(owners), np.int64)
        version_rows[order[rows] - size] = last[rows]
        is_found = version_rows >= 0
        is_found[is_found] = self.owners[version_rows[is_found]] == owners[is_found]
        return np.where(is_found, version_rows, -1)

    def keep_last(self, shape: TemporalJoinShape, state: StateStore) -> None:
        """Stores every key's last version if it is fresh: no row will see earlier versions. A version that
        was read is renewed."""
        last = np.append(self.owners[1:] != self.owners[:-1], True)[: len(self.owners)]
        chosen = self.versions.take(np.flatnonzero(last & (self.fresh | (shape.state_ttl > 0))))
        columns = {name: single(chosen.rows.column(name)) for name in chosen.rows.column_names}
        times = to_arrow(Vec(chosen.times), _NUMBER)
        state.table(shape.current).put(chosen.hashes, {**columns, TIME: times})


def current_versions(
    shape: TemporalJoinShape, hashes: Hashes, keys: list[pa.Array], state: StateStore
) -> tuple[Versions, Mask]:
    """The latest settled versions of distinct keys, and which of the keys have one."""
    stored = state.table(shape.current).lookup(hashes, keys)
    rows = np.flatnonzero(stored.there)
    picks = pa.array(rows)
    columns = dict(zip(shape.right.keys, keys, strict=True))
    columns |= {f.name: stored.array(f.name) for f in shape.current.columns}
    schema = rows_schema(shape)
    table = pa.table([columns[name].take(picks) for name in schema.names], schema=schema)
    times = vector(columns[TIME].take(picks)).values
    return Versions(table, times, np.full(len(rows), NONE), hashes[rows]), stored.there
