"""The state of open sessions, in three tables.

- ``sessions``: per key and session its start, its end, and the time when it is processed next. A session's
  name is a number that no other session of its key ever gets. Bounds would not identify it: an ended session
  and a session that a late row extends backwards may have the same start.
- ``pieces``: the content by key and name. It stays in place as a session grows, and moves only if sessions
  merge.
- ``wake``: the keys to process, by time. A session that grew is processed at its old end, and only then gets
  its next time, so many extensions cost one entry per gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import contiguous
from tidemill.changelog.columns import Ints, Mask, Vec, single, to_arrow, vector
from tidemill.operators.rows.keyed_values import Keys
from tidemill.operators.window.store.partial_aggregates import END, Accumulated, PartialAggregates, ends_of
from tidemill.state.layout import Layout
from tidemill.state.run import WEIGHT
from tidemill.state.store import StateStore

SESSION = "$session"
SESSIONS, PIECES, WAKES = "sessions", "pieces", "wake"
START, LAST, WAKE = "$start", "$last", "$wake"
_NUMBER = pa.int64()


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """Sessions, row by row: the number of their key, their name, bounds, and when they are looked at."""

    keys: Ints
    names: Ints
    starts: Ints
    ends: Ints
    wakes: Ints

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, rows: Ints | Mask) -> Open:
        return Open(
            keys=self.keys[rows],
            names=self.names[rows],
            starts=self.starts[rows],
            ends=self.ends[rows],
            wakes=self.wakes[rows],
        )


@dataclass(frozen=True, kw_only=True)
class OpenTables:
    """The layouts: ``keys`` are those of the sessions, which go ``ttl`` ms after their last row, if any."""

    keys: tuple[pa.Field, ...]
    ttl: int = 0

    @cached_property
    def sessions(self) -> Layout:
        columns = tuple(pa.field(name, _NUMBER) for name in (START, LAST, WAKE))
        named = (pa.field(SESSION, _NUMBER),)
        return Layout(name=SESSIONS, keys=self.keys, values=named, columns=columns, ttl=self.ttl)

    @cached_property
    def wake(self) -> Layout:
        return Layout(name=WAKES, keys=self.keys, by_time=True)


@dataclass(frozen=True, kw_only=True)
class Tables(OpenTables):
    """With the content of the sessions."""

    pieces: PartialAggregates

    @cached_property
    def counted(self) -> Layout:
        below = self.pieces.layout
        values = (pa.field(SESSION, _NUMBER), *below.values)
        return Layout(
            name=PIECES, keys=self.keys, values=values, columns=below.columns, additive=below.additive
        )


@dataclass(frozen=True, kw_only=True)
class OpenSessions:
    """The open sessions of some keys, without their content."""

    tables: OpenTables
    store: StateStore
    keys: Keys

    def open(self) -> Open:
        """All sessions of the keys."""
        owners_and_rows = self.store.table(self.tables.sessions).gather(self.keys.hashes, self.keys.columns)
        owners, rows = owners_and_rows
        names, starts, ends, wakes = (
            vector(single(rows.column(name))).values for name in (SESSION, START, LAST, WAKE)
        )
        return Open(keys=owners, names=names, starts=starts, ends=ends, wakes=wakes)

    def new_names(self, count: int) -> Ints:
        """Of up to ``count`` sessions that begin in this epoch, whose step asks once."""
        names: Ints = (self.store.epoch << 32) + np.arange(count)
        return names

    def forget(self, gone: Open) -> None:
        self._put(gone, np.ones(len(gone), np.bool_))

    def keep(self, sessions: Open) -> None:
        self._put(sessions, None)

    def look_again(self, sessions: Open) -> None:
        """Wakes the keys of ``sessions`` at their ``wakes``."""
        keys = self.keys.take(sessions.keys)
        distinct = np.lexsort((sessions.wakes, sessions.keys))
        numbers, times = sessions.keys[distinct], sessions.wakes[distinct]
        fresh = np.ones(len(times), np.bool_)
        fresh[1:] = (numbers[1:] != numbers[:-1]) | (times[1:] != times[:-1])
        rows = distinct[fresh]
        columns = {f.name: c.take(pa.array(rows)) for f, c in zip(self.tables.keys, keys, strict=True)}
        self.store.timeline(self.tables.wake).put(
            sessions.wakes[rows], self.keys.hashes[sessions.keys[rows]], columns
        )

    def _put(self, sessions: Open, deleted: Mask | None) -> None:
        layout = self.tables.sessions
        names = to_arrow(Vec(sessions.names), _NUMBER)
        columns = {f.name: c for f, c in zip(layout.keys, self.keys.take(sessions.keys), strict=True)}
        columns[SESSION] = names
        bounds = {START: sessions.starts, LAST: sessions.ends, WAKE: sessions.wakes}
        columns |= {name: to_arrow(Vec(values), _NUMBER) for name, values in bounds.items()}
        codes = layout.codes(self.keys.hashes[sessions.keys], [names])
        self.store.table(layout).put(codes, columns, deleted)


@dataclass(frozen=True, kw_only=True)
class SessionState(OpenSessions):
    """The tables of one step, over the keys that the epoch is about."""

    tables: Tables

    def take(self, sessions: Open, targets: Ints, forget: Mask) -> pa.Table:
        """The pieces of ``sessions``, as of the windows ``targets``; those to ``forget`` are removed."""
        pieces, table = self.tables.pieces, self.store.table(self.tables.counted)
        if len(sessions) == 0:
            return pieces.schema.empty_table()
        numbers = np.unique(sessions.keys)
        owners, entries = table.gather(self.keys.hashes[numbers], self.keys.take(numbers))
        rows, owners = matching(numbers[owners], vector(single(entries.column(SESSION))).values, sessions)
        entries = entries.take(pa.array(rows))
        columns = {END: to_arrow(Vec(targets[owners]), _NUMBER)}
        own = self.keys.take(sessions.keys[owners])
        columns |= {f.name: column for f, column in zip(self.tables.keys, own, strict=True)}
        columns |= {name: single(entries.column(name)) for name in entries.column_names if name != SESSION}
        pieces_taken = pa.table([columns[name] for name in pieces.schema.names], schema=pieces.schema)
        gone = np.flatnonzero(forget[owners])
        self._write(
            pieces_taken.take(pa.array(gone)), sessions.keys[owners[gone]], sessions.names[owners[gone]], True
        )
        return pieces_taken

    def put(self, pieces: pa.Table, keys: Ints, names: Ints) -> None:
        """Keeps ``pieces`` of windows (``$end``) whose sessions have these keys and names."""
        if len(pieces):
            pieces = contiguous(self.tables.pieces.folded(pieces))
            targets = ends_of(pieces)
            self._write(pieces, keys[targets], names[targets], False)

    def _write(self, pieces: pa.Table, keys: Ints, names: Ints, gone: bool) -> None:
        layout = self.tables.counted
        named = {f.name: c for f, c in zip(layout.keys, self.keys.take(keys), strict=True)}
        named[SESSION] = to_arrow(Vec(names), _NUMBER)
        payload = {f.name: single(pieces.column(f.name)) for f in (*layout.values[1:], *layout.columns)}
        deleted = None
        if layout.additive:
            weights = vector(single(pieces.column(WEIGHT))).values
            payload[WEIGHT] = pa.array(-weights if gone else weights)
        elif gone:
            deleted = np.ones(len(pieces), np.bool_)
        columns = {**named, **payload}
        codes = layout.codes(self.keys.hashes[keys], [columns[f.name] for f in layout.values])
        self.store.table(layout).put(codes, columns, deleted)


def matching(keys: Ints, names: Ints, sessions: Open) -> tuple[Ints, Ints]:
    """The rows (their keys and names) that are of ``sessions``, and which one each is of."""
    distinct, ranks = np.unique(np.concatenate([sessions.names, names]), return_inverse=True)
    width, ranks = len(distinct), ranks.reshape(-1)
    wanted = sessions.keys * width + ranks[: len(sessions)]
    order = np.argsort(wanted, kind="stable")
    found = keys * width + ranks[len(sessions) :]
    places = np.minimum(np.searchsorted(wanted[order], found), len(order) - 1)
    rows = np.flatnonzero(wanted[order][places] == found)
    return rows, order[places[rows]]


def rewritten(pieces: PartialAggregates) -> bool:
    """Whether what is counted later replaces what was before; else it is put beside it."""
    return isinstance(pieces, Accumulated)
