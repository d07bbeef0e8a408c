"""Rows that an operator keeps of its inputs: the operator itself takes in the rows of a new table.

So the state is that of a job that has read these rows: the operator nets equal rows, counts the matches of
an outer side, leaves out rows that it would never look at, and cuts what is beyond a Top-N.

    query:   (k=1, v=5), (k=1, v=5), (k=NULL, v=7)
    join:    (k=1, v=5, weight 2)                        NULL matches nothing
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import COPIES, HASH_COLUMN
from tidemill.changelog.columns import Hashes, Vec, single, to_arrow, vector
from tidemill.changelog.grouping import Groups, group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.operators.api import EpochContext, TakesRows
from tidemill.runtime.state_tables.invariants import Broken, check_times
from tidemill.state.layout import Layout
from tidemill.state.run import WEIGHT
from tidemill.state.store import StateStore

_TIED = "is NULL, and another row is equal in ORDER BY: give the column, a number that grows with arrival"


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """``operator`` takes in the rows of the table ``layout`` on input ``port``. ``columns``: of this input.
    ``keys``: those whose hash says where a row lies. ``arrived``: columns that have the time of arrival; if a
    query does not give them, that of building."""

    operator: TakesRows
    port: int
    layout: Layout
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    arrived: frozenset[str] = frozenset()

    @property
    def times(self) -> str:
        """The column that says how often a row is there, '' if it is there once."""
        return WEIGHT if self.layout.additive else self.layout.counts

    @property
    def given(self) -> tuple[str, ...]:
        """The columns that a query gives; the operator derives the others."""
        own = {*self.columns, *self.optional}
        stored = (*self.layout.identity, *self.layout.columns)
        return (*(f.name for f in stored if f.name in own), *([WEIGHT] if self.layout.additive else []))

    @property
    def optional(self) -> frozenset[str]:
        """The columns that a query may leave out: rows count once each, and arrival may decide nothing."""
        return frozenset({self.times, SEQUENCE_COLUMN, *self.arrived} - {""})

    @property
    def _has_sequence(self) -> bool:
        return self.layout.arrival == SEQUENCE_COLUMN

    def hashes(self, rows: pa.Table) -> Hashes:
        return hash_columns([single(rows.column(name)) for name in self.keys], len(rows))

    def twice(self, rows: pa.Table, named: Collection[str]) -> Groups | None:
        """The rows by identity, if none may be there twice: if the query counts them, or if a key has one
        row. ``named``: the columns that the query gives."""
        if self.times and self.times not in named:
            return None
        identity = [single(rows.column(f.name)) for f in self.layout.identity]
        return group_rows(hash_columns(identity, len(rows)), identity)

    def broken(self, rows: pa.Table, named: Collection[str]) -> Iterator[Broken]:
        """What does not hold."""
        if self.times in named:
            yield from check_times({self.times: single(rows.column(self.times))}, self.times)
        order = self.operator.kept_rows.order
        if self._has_sequence and SEQUENCE_COLUMN not in named and order is not None:
            ranked = self._groups(rows, dict.fromkeys((*(f.name for f in self.layout.keys), *order)))
            ids = np.empty(len(rows), np.int64)
            ids[ranked.order] = ranked.ids()
            whole = self._groups(rows, self.columns)
            heads = whole.heads
            tied = np.bincount(ids[heads], minlength=ranked.count) > 1
            yield tied[ids], SEQUENCE_COLUMN, _TIED

    def _groups(self, rows: pa.Table, names: Collection[str]) -> Groups:
        columns = [single(rows.column(name)) for name in names]
        return group_rows(hash_columns(columns, len(rows)), columns)

    def take_in(self, rows: pa.Table, named: Collection[str], store: StateStore, epoch: EpochContext) -> None:
        columns = {name: rows.column(name) for name in self.columns}
        now = pa.scalar(epoch.time, pa.timestamp("ms", "UTC"))
        for name in self.arrived.difference(named):
            columns[name] = columns[name].fill_null(now.cast(columns[name].type))
        columns[HASH_COLUMN] = to_arrow(Vec(self.hashes(rows)), pa.uint64())
        if self.times in named:
            columns[COPIES] = rows.column(self.times)
        if self._has_sequence:
            columns[SEQUENCE_COLUMN] = _numbered(rows)
        self.operator.take_in(self.port, pa.table(columns), store, epoch)


def _numbered(rows: pa.Table) -> pa.Array:
    """Places in the sequence, below 0: all rows to come are behind them."""
    given = vector(single(rows.column(SEQUENCE_COLUMN).fill_null(0))).values
    numbers, places = np.unique(given, return_inverse=True)
    return pa.array((places - len(numbers)).astype(np.int64))
