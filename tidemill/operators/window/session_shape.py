"""The common spec of aggregations in sessions, and their local phase."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import pyarrow as pa

from tidemill.operators.window.local_sessions import LocalSessions
from tidemill.operators.window.shape import DataDrivenShape
from tidemill.state.store import StateStore


@dataclass(frozen=True, kw_only=True)
class SessionShape(DataDrivenShape):
    """``gap`` in milliseconds. ``partial_input``: rows come as pieces of stretches. A gap is a time that has
    passed: of TIMESTAMP_LTZ sessions are made of instants, and their bounds shown by ``columns.shown_by``."""

    gap: int
    partial_input: bool = False

    @property
    def counted_by(self) -> str:
        """What the times in state are, of which local ones are not told apart."""
        return " of instants" if self.columns.shown_by.zone else ""

    def next_end(self, state: StateStore, ended: int) -> int | None:
        """See ``triggers.processing_time``."""
        return state.timeline(self.tables.wake).earliest()

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
        single_rows = [self.local.apart(pa.concat_tables(raw))] if raw else []
        return replace(self, partial_input=True), pa.concat_tables([*combined, *single_rows])
