"""Windows that show a change later than with its epoch: timers of processing time.

A timer is an entry by the time it is due; the earliest is what the operator asks an epoch for. Windows that
are shut before their timer is due still show what they had to: they are found by their end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import contiguous
from tidemill.changelog.columns import Ints
from tidemill.changelog.hashing import hash_columns
from tidemill.operators.api import TIMER, EpochContext
from tidemill.operators.window.store.partial_aggregates import END, ends_of
from tidemill.operators.window.triggers.trigger import Trigger
from tidemill.state.layout import Layout
from tidemill.state.run import DUE
from tidemill.state.store import StateStore


@dataclass(frozen=True, kw_only=True)
class Timers:
    """``identity``: of windows, their end and the key."""

    identity: pa.Schema

    @cached_property
    def timers(self) -> Layout:
        return Layout(name="timers", keys=tuple(self.identity), by_time=True)

    @cached_property
    def waiting(self) -> Layout:
        keys = tuple(f for f in self.identity if f.name != END)
        return Layout(name="waiting", keys=keys, by_time=True)

    def put(self, state: StateStore, due: int, windows: pa.Table) -> None:
        """Wakes the distinct ``windows`` at ``due``."""
        self._put(state, self.timers, np.full(len(windows), due, np.int64), windows)

    def wait(
        self, trigger: Trigger, ended: pa.Table, ahead: pa.Table, state: StateStore, now: int
    ) -> list[pa.Table]:
        """Of distinct windows that have changed, after their end or before it: those that show the change at
        once. The others are woken when ``trigger`` says."""
        at_once = []
        for windows, delay in ((ended, trigger.late), (ahead, trigger.early)):
            if delay == 0:
                at_once.append(windows)
            elif delay is not None:
                self.put(state, trigger.due(now, delay), windows)
        return at_once

    def take(self, state: StateStore, now: int) -> pa.Table:
        """The windows whose time has come, some more than once."""
        return state.timeline(self.timers).take_due(now).select(self.identity.names).cast(self.identity)

    def remember(self, state: StateStore, windows: pa.Table) -> None:
        """That the distinct ``windows`` have something to show before they are shut."""
        self._put(state, self.waiting, ends_of(windows), windows)

    def shutting(self, state: StateStore, shut: int) -> pa.Table:
        """The windows that were remembered and end at or before ``shut``."""
        names = [DUE if name == END else name for name in self.identity.names]
        taken = state.timeline(self.waiting).take_due(shut)
        return taken.select(names).rename_columns(self.identity.names).cast(self.identity)

    def report(self, state: StateStore, epoch: EpochContext) -> None:
        """Asks for an epoch when the next timer is due."""
        earliest = state.timeline(self.timers).earliest()
        if earliest is not None:
            epoch.notes[TIMER] = earliest

    def _put(self, state: StateStore, layout: Layout, dues: Ints, windows: pa.Table) -> None:
        windows = contiguous(windows)
        columns = {f.name: windows.column(f.name).chunk(0) for f in layout.keys} if len(windows) else {}
        hashes = hash_columns(list(columns.values()), len(windows))
        state.timeline(layout).put(dues, hashes, columns)
