"""The state that windows keep by slice, in one epoch.

A window consists of slices (see ``assigners``), and the state of a slice serves all windows that contain
it. *Strays* are kept by window: they came when the row's own source was already beyond earlier windows of its
slice, while other sources were still waited for.

Cost of an epoch: the slices that it touches, and the pieces of the windows that end. Slices that no later
window needs are removed without being read (see ``state.timeline``). The slices of a CUMULATE become one
slice when they are shut.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask
from tidemill.changelog.watermarks import END as FOREVER
from tidemill.changelog.watermarks import NONE
from tidemill.operators.window.assigners.assigner import Assigner
from tidemill.operators.window.store.overlapping import by_window
from tidemill.operators.window.store.partial_aggregates import Accumulated, at_ends, ends_of, layout_by_window
from tidemill.operators.window.triggers.trigger import Horizons
from tidemill.state.layout import Layout
from tidemill.state.store import StateStore
from tidemill.state.timeline import TimeTable


class Kept(Protocol):
    """What is kept of rows, in tables by time."""

    @property
    def layout(self) -> Layout: ...

    def add(self, pieces: pa.Table, slices: TimeTable) -> None: ...

    def folded(self, pieces: pa.Table) -> pa.Table: ...

    def stored(self, entries: pa.Table) -> pa.Table: ...

    def together(self, ended: pa.Table, fresh: pa.Table) -> pa.Table: ...


@dataclass(frozen=True, slots=True)
class Slices:
    """``whole``: a slice is a window. ``at``: the windows that end in this epoch, and those that are shut."""

    kept: Kept
    windows: Assigner
    whole: bool
    at: Horizons
    slices: TimeTable
    strays: TimeTable

    @staticmethod
    def of(kept: Kept, windows: Assigner, whole: bool, at: Horizons, state: StateStore) -> Slices:
        """The tables of ``kept``."""
        tables = state.timeline(kept.layout), state.timeline(layout_by_window(kept.layout))
        return Slices(kept, windows, whole, at, *tables)

    @property
    def fires(self) -> bool:
        """Whether any window ends: as long as none does, nothing that is kept is looked at."""
        return self._any_end(self.at.before, self.at.upto)

    def _any_end(self, after: int, upto: int) -> bool:
        if upto in (NONE, FOREVER):
            return upto > after
        (last,) = self.windows.fired(np.array([upto], np.int64)).tolist()
        return bool(last > after)

    # -- windows that are shown once -------------------------------------------------------------------

    def fired(self, after: Ints, cut: Callable[[Mask], pa.Table]) -> pa.Table:
        """What the windows that end hold, of accumulators one piece each; the rest stays. ``after``: up to
        where windows were shut when each row came; ``cut`` makes what is kept of rows."""
        clean, kept = after <= self.at.shut_before, self.kept
        if self.whole:
            return self._whole(cut(clean))
        kept.add(cut(clean), self.slices)
        found = self.by_window(self.due(), self.at.before, self.at.upto)
        found = kept.together(found, kept.stored(self.strays.take_due(self.at.upto)))
        for value in np.unique(after[~clean]).tolist():
            # Windows that ended between this epoch's rows do not see the rows behind them.
            strays = cut(after == value)
            if value <= self.at.upto:
                found = kept.together(found, self.by_window(strays, value, self.at.upto))
            self.keep_strays(strays, value)
        self.forget()
        return found

    def due(self) -> pa.Table:
        """The pieces of which windows end, and no others that come later."""
        first, last = (NONE, self.at.upto) if self.fires else (1, 0)
        return self.kept.stored(self.slices.range(first, last))

    def _whole(self, fresh: pa.Table) -> pa.Table:
        """What the windows hold that end, where a slice is a window and ``fresh`` came: what is not kept is
        not written. No row of such a window comes when it has ended, so there are no strays."""
        over = ends_of(fresh) <= self.at.upto
        self.kept.add(fresh.filter(pa.array(~over)), self.slices)
        ended = self.kept.stored(self.slices.take_due(self.at.upto))
        return self.kept.together(ended, fresh.filter(pa.array(over)))

    # -- windows of slices -----------------------------------------------------------------------------

    def containing(self, ends: Ints, after: Ints, upto: Ints) -> tuple[Ints, Ints]:
        """The windows of slices that end in (``after``, ``upto``]: the slice's place, the window's end."""
        if not self.whole:
            # No window ends before its slice; NONE is too far below to be counted from.
            return self.windows.containing(ends, after, np.maximum(upto, ends - 1))
        rows = np.flatnonzero((ends > after) & (ends <= upto))
        return rows, ends[rows]

    def by_window(self, pieces: pa.Table, after: int, upto: int) -> pa.Table:
        """``pieces`` of slices as those of the windows that end in (``after``, ``upto``]."""
        if isinstance(self.kept, Accumulated) and not self.whole:
            return by_window(self.kept, pieces, self.windows, after, upto)
        ends = ends_of(pieces)
        bounds = np.full(len(ends), after, np.int64), np.full(len(ends), upto, np.int64)
        return at_ends(pieces, *self.containing(ends, *bounds))

    def keep_strays(self, pieces: pa.Table, after: int) -> None:
        """Keeps ``pieces`` of rows that count in the windows that end after ``after``, and in no others."""
        if after <= self.at.shut:
            self.kept.add(pieces, self.slices)
        elif len(pieces):
            ends = ends_of(pieces)
            bound = np.full(len(ends), after, np.int64)
            places = self.containing(ends, bound, self.windows.last_ends(ends))
            self.kept.add(self.kept.folded(at_ends(pieces, *places)), self.strays)

    # -- what goes -------------------------------------------------------------------------------------

    @property
    def expired(self) -> int:
        """No window that is not shut has a slice that ends at or before this."""
        if self.at.shut in (NONE, FOREVER):
            return self.at.shut
        return self.windows.expired(self.at.shut)

    def forget(self) -> None:
        """What no window needs that can still change goes; a CUMULATE's slices that are shut become one."""
        before, shut = self.at.shut_before, self.at.shut
        if shut == NONE or (shut == before != FOREVER):
            return
        self.strays.forget_due(shut)
        if self.whole or shut == FOREVER:
            self.slices.forget_due(shut)
        elif self._any_end(before, shut):
            self.slices.forget_due(self.expired)
            self._settle()

    def _settle(self) -> None:
        if not self.windows.cumulates or not isinstance(self.kept, Accumulated):
            return
        (settled,) = self.windows.fired(np.array([self.at.shut])).tolist()
        taken = self.kept.stored(self.slices.take_due(settled))
        if len(taken):
            self.kept.add(self.kept.settle(taken, settled), self.slices)
