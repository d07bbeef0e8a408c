"""State by time, for windows that consist of their remaining rows (see ``assigners.retractable_sessions``).

For each key and time the state has the number of rows, and their pieces. Windows are formed from the times
when their key is processed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import weights_of
from tidemill.changelog.columns import Ints, Mask, Vec, single, to_arrow, vector
from tidemill.operators.window.assigners.retractable_sessions import Times
from tidemill.operators.window.assigners.spans import LATE
from tidemill.operators.window.store.partial_aggregates import END, ends_of
from tidemill.operators.window.store.sessions import SESSION, Open, SessionState, Tables, rewritten
from tidemill.state.layout import Layout

_COUNT = "$count"


@dataclass(frozen=True, kw_only=True)
class TimesTables(Tables):
    """``sessions`` are those of one time, named by it."""

    @cached_property
    def sessions(self) -> Layout:
        named = (pa.field(SESSION, pa.int64()),)
        columns = (pa.field(_COUNT, pa.int64()),)
        return Layout(name="times", keys=self.keys, values=named, columns=columns)


@dataclass(frozen=True, kw_only=True)
class TimesState(SessionState):
    """The tables of one step, over the keys that the step processes; windows end ``gap`` ms after their last
    row."""

    gap: int

    def times(self) -> tuple[Open, Ints]:
        """All times of the keys, and the number of rows of each."""
        owners, rows = self.store.table(self.tables.sessions).gather(self.keys.hashes, self.keys.columns)
        at, counts = (vector(single(rows.column(name))).values for name in (SESSION, _COUNT))
        return self._sessions_of_one(owners, at), counts

    def update(self, before: Open, times: Times, rows: pa.Table, *, needed: Mask, ended: Mask) -> pa.Table:
        """Stores ``times``, made of those ``before`` and of ``rows``, without the ``ended`` ones.

        Gives the pieces of the ``needed`` times; ``$end`` is the number of the time. Both masks are by time.
        """
        stored_of, rows_of = times.of[: len(before)], times.of[len(before) :]
        came, there = (np.zeros(len(times.at), np.bool_) for _ in range(2))
        there[stored_of] = True
        came[rows_of[rows_of != LATE]] = True
        gone = ended | (times.counts == 0)
        grows = came & ~gone if rewritten(self.tables.pieces) else np.zeros_like(came)
        chosen = (needed | gone | grows)[stored_of]
        of = stored_of[chosen]
        old = self.take(before.take(chosen), of, gone[of])
        new = self._pieces_of(rows, rows_of)
        self._count(times, gone, came, there)
        stays = pa.concat_tables([_at(old, grows), _at(new, ~gone)])
        self.put(stays, times.keys, times.at)
        return _at(pa.concat_tables([old, new]), needed)

    def _pieces_of(self, rows: pa.Table, of: Ints) -> pa.Table:
        chosen = np.flatnonzero(of != LATE)
        if len(chosen) == 0:
            return self.tables.pieces.schema.empty_table()
        rows = rows.append_column(END, to_arrow(Vec(of), pa.int64()))
        return self.tables.pieces.cut(rows.take(pa.array(chosen)))

    def _count(self, times: Times, gone: Mask, came: Mask, there: Mask) -> None:
        """Stores the remaining times, and when their keys are processed: when a window could end with
        them."""
        # In this order: a time may go with its window, and come again.
        for changed, counts in ((gone & there, np.zeros_like(times.counts)), (came & ~gone, times.counts)):
            self._put_counts(times.keys[changed], times.at[changed], counts[changed])
        new = came & ~gone & ~there
        self.look_again(self._sessions_of_one(times.keys[new], times.at[new]))

    def _put_counts(self, keys: Ints, at: Ints, counts: Ints) -> None:
        """Stores the number of rows of times; times without rows are removed."""
        layout = self.tables.sessions
        names = to_arrow(Vec(at), pa.int64())
        columns = {f.name: c for f, c in zip(layout.keys, self.keys.take(keys), strict=True)}
        columns[SESSION], columns[_COUNT] = names, to_arrow(Vec(counts), pa.int64())
        codes = layout.codes(self.keys.hashes[keys], [names])
        self.store.table(layout).put(codes, columns, counts == 0)

    def _sessions_of_one(self, keys: Ints, at: Ints) -> Open:
        """Each time as a session of its own, named by it."""
        return Open(keys=keys, names=at, starts=at, ends=at + self.gap, wakes=at + self.gap)


def _at(pieces: pa.Table, chosen: Mask) -> pa.Table:
    """The pieces of the ``chosen`` times."""
    return pieces.filter(pa.array(chosen[ends_of(pieces)]))


def weights(rows: pa.Table) -> Ints:
    """The weight of each row; a retraction has a negative weight."""
    signed = weights_of(rows) if len(rows) else None
    return np.ones(len(rows), np.int64) if signed is None else signed
