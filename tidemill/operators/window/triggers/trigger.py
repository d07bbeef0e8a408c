"""The times at which windows emit their results.

Every trigger emits a window at its end. ``AT_END`` never emits it again: the window is shut at its end.
Other triggers may emit it early, before its end, and late, after its end, until ``lateness`` ms have passed
beyond the end. Then the window is shut: it can no longer change, and its state is removed.

``early`` and ``late`` are the most milliseconds of processing time that a change waits; with 0 the change
is emitted in its own epoch. The waits end at multiples of their own length (``due``), which are the same for
all windows. So many waiting windows are due together, and each window is asked for once.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.changelog.columns import Ints
from tidemill.changelog.watermarks import all_held_back, held_back
from tidemill.operators.api import EpochContext
from tidemill.operators.window.clock import Clock


@dataclass(frozen=True, kw_only=True)
class Trigger:
    """``early`` None: windows show nothing before their end. ``repeats``: what a window has shown is
    remembered, because the window may be shown again."""

    early: int | None = None
    late: int = 0
    lateness: int = 0
    repeats: bool = True

    def due(self, time: int, delay: int) -> int:
        """When a change that comes at ``time`` is shown."""
        return time // delay * delay + delay

    def horizons(self, clock: Clock, epoch: EpochContext) -> Horizons:
        before, upto = clock.ended(epoch.before), clock.ended(epoch.watermark)
        if not self.lateness:
            return Horizons(before=before, upto=upto, shut_before=before, shut=upto)
        return Horizons(
            before=before,
            upto=upto,
            shut_before=clock.ended(held_back(epoch.before, self.lateness)),
            shut=clock.ended(held_back(epoch.watermark, self.lateness)),
        )

    def judged(self, marks: Ints) -> Ints:
        """The watermarks that rows are late by."""
        return all_held_back(marks, self.lateness)


AT_END = Trigger(repeats=False)
"""Shows every window once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Horizons:
    """In local time, before and after an epoch: windows that end at or before ``before`` / ``upto`` have come
    to their end, those at or before ``shut_before`` / ``shut`` never change again."""

    before: int
    upto: int
    shut_before: int
    shut: int
