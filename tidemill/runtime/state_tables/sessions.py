"""Rows of open sessions: bounds and accumulators. The other tables of sessions follow from them.

    row:     (city=a, session_start=10, session_end=45, COUNT(*)=3)
    tables:  the accumulators by session; its bounds; when the operator looks at its key next

What must hold of the sessions of a key, besides what holds of all records:

- A session ends a gap after its last row, so at least a gap after its start.
- Sessions do not touch: rows of both would be one session.
- The watermark has not passed a session: it would have been shown, and its rows would be late.

A row without a name is a new session.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Hashes, Ints, Mask, Vec, single, to_arrow, vector
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.watermarks import NONE
from tidemill.operators.rows.keyed_values import Keys
from tidemill.operators.window.assigners.spans import Spans, clusters_of
from tidemill.operators.window.store.sessions import (
    LAST,
    SESSION,
    START,
    Open,
    OpenSessions,
    OpenTables,
    matching,
)
from tidemill.runtime.state_tables.invariants import ROWS, Broken
from tidemill.state.store import StateStore

BOUNDS = tuple(pa.field(name, pa.int64()) for name in (START, LAST))
_FIRST = 1 << 31
"""Within the names of an epoch those that no step has given."""
_NEW = "$new"
HEAD = "$head"
"""Of rows that are one session the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRules:
    """``gap`` in ms; ``watermark``: how far time has come."""

    keys: tuple[pa.Field, ...]
    gap: int
    watermark: int = NONE

    def named(self, rows: pa.Table, store: StateStore) -> pa.Table:
        """``rows`` with names for those that have none, which the column ``_NEW`` tells."""
        column = single(rows.column(SESSION))
        new = column.is_null().to_numpy(zero_copy_only=False)
        rows = rows.append_column(_NEW, pa.array(new))
        if not new.any():
            return rows
        names = vector(column.fill_null(0)).values.copy()
        names[new] = self._free_name(store) + np.arange(np.count_nonzero(new))
        return _with_names(rows, names)

    def named_by_bounds(self, rows: pa.Table, store: StateStore) -> tuple[pa.Table, Mask]:
        """``rows`` of new sessions, those with one key and the same bounds of one; the first row of each."""
        columns = [single(rows.column(name)) for name in (*(f.name for f in self.keys), START, LAST)]
        groups = group_rows(hash_columns(columns, len(rows)), columns)
        names, first = np.empty(len(rows), np.int64), np.zeros(len(rows), np.bool_)
        names[groups.order] = self._free_name(store) + groups.ids()
        first[groups.heads] = True
        rows = rows.append_column(_NEW, pa.array(np.ones(len(rows), np.bool_)))
        return _with_names(rows, names), first

    def _free_name(self, store: StateStore) -> int:
        """From here on names are free."""
        first = (store.epoch << 32) + _FIRST
        held = store.table(self._tables.sessions).everything().column(SESSION)
        given = vector(single(held)).values
        own = given[(given >= first) & (given < (store.epoch + 1) << 32)]
        return int(own.max(initial=first - 1)) + 1

    def of(self, rows: pa.Table, hashes: Hashes, store: StateStore) -> SessionRows:
        """What ``named`` rows are beside the sessions of their keys."""
        columns = [single(rows.column(f.name)) for f in self.keys]
        keys, numbers = Keys.of(columns, hashes)
        state = OpenSessions(tables=self._tables, store=store, keys=keys)
        start, end = (vector(single(rows.column(name)).fill_null(0)).values for name in (START, LAST))
        names = vector(single(rows.column(SESSION))).values
        sessions = Open(keys=numbers, names=names, starts=start, ends=end, wakes=end)
        new = vector(single(rows.column(_NEW))).values
        return SessionRows(rules=self, rows=rows, sessions=sessions, new=new, state=state)

    @property
    def _tables(self) -> OpenTables:
        return OpenTables(keys=self.keys)


def _with_names(rows: pa.Table, names: Ints) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index(SESSION), SESSION, to_arrow(Vec(names), pa.int64()))


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRows:
    """``sessions``: of the rows."""

    rules: SessionRules
    rows: pa.Table
    sessions: Open
    new: Mask
    state: OpenSessions

    def broken(self, deletes: Mask) -> Iterator[Broken]:
        """What does not hold; of rows that go only that they are there."""
        held, gap, stays = self.state.open(), self.rules.gap, ~deletes
        there, others = self._apart(held)
        yield ~(self.new | there), SESSION, "is not that of an open session of its key"
        starts, ends = self.sessions.starts, self.sessions.ends
        short = ends - starts < gap
        yield short & stays, LAST, f"must be {gap} ms or more after 'session_start': the gap"
        if ROWS in self.rows.column_names:
            alone = vector(single(self.rows.column(ROWS)).fill_null(0)).values == 1
            yield alone & (ends - starts > gap) & stays, LAST, f"must be {gap} ms after the start of one row"
        passed = (ends - 1 <= self.rules.watermark) & (self.rules.watermark != NONE)
        yield passed & stays, LAST, "has passed: the watermark of the operator is beyond it"
        yield self._touching(others, stays), START, "touches another session of its key"

    def put(self, deletes: Mask) -> None:
        """Keeps the sessions, and wakes their keys when they end. Old times to wake a key do no harm."""
        self.state.forget(self.sessions.take(deletes))
        stays = self.sessions.take(~deletes)
        self.state.keep(stays)
        self.state.look_again(stays)

    def _apart(self, held: Open) -> tuple[Mask, Open]:
        """Which rows are of sessions that are ``held``, and the sessions that no row is of."""
        there, free = np.zeros(len(self.sessions), np.bool_), np.ones(len(held), np.bool_)
        if len(held):
            rows, of = matching(self.sessions.keys, self.sessions.names, held)
            there[rows], free[of] = True, False
        return there, held.take(free)

    def _touching(self, others: Open, stays: Mask) -> Mask:
        own = self.sessions.take(stays)
        marks: Ints = np.full(len(own), NONE, np.int64)
        clusters = clusters_of(Spans.behind(others, own.keys, own.starts, own.ends, marks))
        found = np.zeros(len(stays), np.bool_)
        found[stays] = (np.bincount(clusters) > 1)[clusters][len(others) :] if len(own) else False
        return found
