"""What aggregations in sessions are told, whether they show these once or more often, and what they do of
their work before the exchange."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import by_arrival, contiguous, hashes_of, with_types
from tidemill.changelog.columns import Ints, single, vector
from tidemill.operators.rows.numbered_keys import Keys
from tidemill.operators.window.local_sessions import LocalSessions
from tidemill.operators.window.shape import WindowShape
from tidemill.operators.window.store.partial_aggregates import Pieces
from tidemill.operators.window.store.sessions import Tables
from tidemill.state.run import HASH
from tidemill.state.store import StateStore


@dataclass(frozen=True, kw_only=True)
class SessionShape(WindowShape):
    """``gap`` in milliseconds. ``partial_input``: rows come as pieces of stretches. A gap is a time that has
    passed: of TIMESTAMP_LTZ sessions are made of instants, and their bounds shown by ``columns.shown_by``."""

    gap: int
    partial_input: bool = False

    @cached_property
    def tables(self) -> Tables:
        fields = tuple(pa.field(name, kind) for name, kind in self.keys)
        return Tables(keys=fields, pieces=self.counted)

    @property
    def counted_by(self) -> str:
        """What the times in state are, of which local ones are not told apart."""
        return " of instants" if self.columns.shown_by.zone else ""

    @property
    def pieces(self) -> Pieces:
        return self.tables.pieces

    def asked_about(self, table: pa.Table, state: StateStore, upto: int) -> tuple[pa.Table, Keys, Ints]:
        """The rows of ``table`` in the order they came; the keys that they and what is due at ``upto`` have;
        and the number of each row's key."""
        table = with_types(table, self.types)
        rows = contiguous(by_arrival(table) if len(table) else table)
        due = state.timeline(self.tables.wake).take_due(upto)
        names = [name for name, _ in self.keys]
        both = [pa.concat_arrays([single(rows.column(n)), single(due.column(n))]) for n in names]
        own = hashes_of(rows, [single(rows.column(n)) for n in names])
        keys, numbers = Keys.of(both, np.concatenate([own, vector(due.column(HASH)).values]))
        return rows, keys, numbers[: len(rows)]

    @property
    def needs_sequence(self) -> bool:
        """Which sessions a row meets depends on the rows before it."""
        return True

    @cached_property
    def local(self) -> LocalSessions:
        """The phase before the exchange."""
        return LocalSessions(
            pieces=self.pieces, keys=self.keys, time=self.time, gap=self.gap, clock=self.clock
        )

    @property
    def combinable(self) -> bool:
        return self.aggregates_rows_that_stay

    def combine(self, table: pa.Table) -> pa.Table:
        """One row per stretch, and what its pieces tell apart."""
        return self.local.combine(table)

    def condensed(self, table: pa.Table) -> pa.Table:
        """As ``combine``, whatever it saves."""
        return self.local.condensed(table)

    def merged(self, raw: list[pa.Table], combined: list[pa.Table]) -> tuple[Self, pa.Table]:
        """Where some of the rows came combined, the others stand for themselves."""
        rest = [self.local.apart(pa.concat_tables(raw))] if raw else []
        return replace(self, partial_input=True), pa.concat_tables([*combined, *rest])
