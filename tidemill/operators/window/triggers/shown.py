"""The results that windows have emitted, so that the next emission contains only changes.

There is a record per window and key, ordered by the window's end. The record is removed when the window can
no longer change. The end (``$end``) and the key identify a window, as in ``store.partial_aggregates``. The
end of a session changes, so its name identifies it (``$session`` in ``store.sessions``)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import contiguous
from tidemill.changelog.columns import Hashes, Ints, Mask, single, vector
from tidemill.changelog.emit import Changes, net_changes, unchanged
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.rowkind import KIND_COLUMN, RowKind
from tidemill.changelog.watermarks import NONE
from tidemill.operators.window.store.partial_aggregates import END
from tidemill.state.layout import Layout
from tidemill.state.run import DUE
from tidemill.state.store import StateStore
from tidemill.state.timeline import TimeTable, by_time_order

START, LAST = "$start", "$last"
"""Of a window, in ms like its end: where it begins, and where it ends if it is not told by its end."""
_REPLACED = np.array([RowKind.INSERT, RowKind.DELETE, RowKind.INSERT, RowKind.DELETE], np.int8)
"""By kind, where an update is of another window than before."""


@dataclass(frozen=True, kw_only=True)
class ShownWindows:
    """``results``: what is shown of a window, (name, type), its start among it; where any of ``bounds``
    changes it is another window."""

    keys: tuple[tuple[str, pa.DataType], ...]
    results: tuple[tuple[str, pa.DataType], ...]
    bounds: tuple[str, ...] = ()
    update_before: bool = True

    @cached_property
    def layout(self) -> Layout:
        return Layout(
            name="shown",
            keys=tuple(pa.field(*key) for key in self.keys),
            columns=tuple(pa.field(*result) for result in self.results),
            by_time=True,
        )

    @cached_property
    def identity(self) -> pa.Schema:
        """Of windows: their end, and the key."""
        return pa.schema([pa.field(END, pa.int64()), *self.layout.keys])

    def table(self, state: StateStore) -> TimeTable:
        return state.timeline(self.layout)

    def changes(self, asked: pa.Table, now: pa.Table, state: StateStore) -> pa.Table:
        """From what the windows ``asked`` (distinct) have shown to ``now``, where they have anything: rows of
        ``now`` with their ``$kind``. It is shown then."""
        dues, hashes, keys = _by_time(asked)
        asked = pa.table([pa.array(dues), *keys], schema=self.identity)
        shown = self.table(state).lookup(dues, hashes, keys)
        places = places_in(now.select(self.identity.names), asked)
        exists, picks = places >= 0, pa.array(places, mask=places < 0)
        names = [name for name, _ in self.results]
        old = [shown.array(name) for name in names]
        new = [single(now.column(name)).take(picks) for name in names]
        same = shown.there & exists
        same[same] = unchanged(_chosen(old, same), _chosen(new, same), int(np.count_nonzero(same)))
        self._keep(asked, new, hashes, shown.there, exists, same, state)
        changes = net_changes(shown.there, exists, same, True)
        moved = np.zeros(len(asked), np.bool_)
        for name, a, b in zip(names, old, new, strict=True):
            if name in self.bounds:
                moved |= vector(a).values != vector(b).values
        changes = self._as_wanted(changes, moved)
        rows = pa.array(changes.owners)
        columns = {name: asked.column(name).take(rows) for name in asked.column_names}
        columns |= {name: changes.pick(a, b) for name, a, b in zip(names, old, new, strict=True)}
        columns[KIND_COLUMN] = changes.kind_column()
        return pa.table(columns)

    def forget(self, windows: pa.Table, state: StateStore) -> None:
        """Distinct ``windows`` that can change no more, and are not told by their end."""
        ends, hashes, keys = _columns(windows)
        columns = {name: key for (name, _), key in zip(self.keys, keys, strict=True)}
        self.table(state).put(ends, hashes, columns, np.ones(len(windows), np.bool_))

    def latest(self, state: StateStore) -> int:
        """No window that ends later has shown anything."""
        latest = self.table(state).latest()
        return NONE if latest is None else latest

    def ending(self, before: int, upto: int, state: StateStore) -> pa.Table:
        """The windows that have shown anything and end in (``before``, ``upto``]; of some nothing is left."""
        entries = self.table(state).range(before + 1, upto)
        names = [DUE, *(f.name for f in self.layout.keys)]
        return entries.select(names).rename_columns(self.identity.names).cast(self.identity)

    def there(self, windows: pa.Table, state: StateStore) -> Mask:
        """Which of ``windows`` (distinct) have shown anything."""
        if len(windows) == 0:
            return np.zeros(0, np.bool_)
        ends, hashes, keys = _columns(windows)
        order = by_time_order(ends, hashes)
        picks = pa.array(order)
        found = self.table(state).lookup(ends[order], hashes[order], [key.take(picks) for key in keys])
        there = np.empty(len(windows), np.bool_)
        there[order] = found.there
        return there

    def _as_wanted(self, changes: Changes, moved: Mask) -> Changes:
        """A window that has ``moved`` goes, and another comes; -U only where it is asked for."""
        kinds = np.where(moved[changes.owners], _REPLACED[changes.kinds], changes.kinds).astype(np.int8)
        if self.update_before:
            return Changes(changes.owners, changes.after, kinds)
        kept = kinds != RowKind.UPDATE_BEFORE
        return Changes(changes.owners[kept], changes.after[kept], kinds[kept])

    def _keep(
        self,
        asked: pa.Table,
        new: list[pa.Array],
        hashes: Hashes,
        existed: Mask,
        exists: Mask,
        same: Mask,
        state: StateStore,
    ) -> None:
        rows = np.flatnonzero((existed | exists) & ~same)
        picks = pa.array(rows)
        columns = {name: single(asked.column(name)).take(picks) for name, _ in self.keys}
        columns |= {name: c.take(picks) for (name, _), c in zip(self.results, new, strict=True)}
        ends = vector(asked.column(END)).values[rows]
        self.table(state).put(ends, hashes[rows], columns, ~exists[rows])


def _chosen(columns: list[pa.Array], rows: Mask) -> list[pa.Array]:
    picks = pa.array(np.flatnonzero(rows))
    return [column.take(picks) for column in columns]


def _columns(windows: pa.Table) -> tuple[Ints, Hashes, list[pa.Array]]:
    """Ends, the hashes of the keys, and the keys of windows."""
    windows = contiguous(windows)
    keys = [single(windows.column(name)) for name in windows.column_names if name != END]
    return vector(windows.column(END)).values, hash_columns(keys, len(windows)), keys


def _by_time(windows: pa.Table) -> tuple[Ints, Hashes, list[pa.Array]]:
    """Ends, hashes and keys of ``windows`` in the order in which tables by time are asked."""
    ends, hashes, keys = _columns(windows)
    order = by_time_order(ends, hashes)
    picks = pa.array(order)
    return ends[order], hashes[order], [key.take(picks) for key in keys]


def distinct(windows: pa.Table) -> pa.Table:
    """Each window once."""
    if len(windows) == 0:
        return windows
    windows = contiguous(windows)
    columns = [windows.column(name).chunk(0) for name in windows.column_names]
    return windows.take(pa.array(group_rows(hash_columns(columns, len(windows)), columns).heads))


def places_in(windows: pa.Table, rows: pa.Table) -> Ints:
    """Per row of ``rows`` its place among the distinct ``windows``, of the same columns; -1 where it is not
    there."""
    columns = [
        pa.concat_arrays([single(windows.column(name)), single(rows.column(name))])
        for name in windows.column_names
    ]
    size = len(windows) + len(rows)
    groups = group_rows(hash_columns(columns, size), columns)
    found = np.where(groups.heads < len(windows), groups.heads, -1)
    places = np.empty(size, np.int64)
    places[groups.order] = np.repeat(found, groups.sizes)
    return places[len(windows) :]
