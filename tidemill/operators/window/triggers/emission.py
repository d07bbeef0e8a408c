"""When windows show what they have, other than once at their end.

``early``: before it; ``late``: after it, as long as ``lateness`` ms have not passed beyond it too. Both are
the most milliseconds of processing time that a change waits to be shown, 0: it is shown with its epoch. They
are waited for in steps of their own length (``due``), the same for all windows: however many wait, they are
due together, and a window is asked for once."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.changelog.columns import Ints
from tidemill.changelog.watermarks import all_held_back, held_back
from tidemill.operators.api import EpochContext
from tidemill.operators.window.clock import Clock


@dataclass(frozen=True, kw_only=True)
class Emission:
    """``early`` None: windows show nothing before their end."""

    early: int | None = None
    late: int = 0
    lateness: int = 0

    def due(self, time: int, delay: int) -> int:
        """When a change that comes at ``time`` is shown."""
        return time // delay * delay + delay

    def horizons(self, clock: Clock, epoch: EpochContext) -> Horizons:
        return Horizons(
            before=clock.ended(epoch.before),
            upto=clock.ended(epoch.watermark),
            shut_before=clock.ended(held_back(epoch.before, self.lateness)),
            shut=clock.ended(held_back(epoch.watermark, self.lateness)),
        )

    def judged(self, marks: Ints) -> Ints:
        """The watermarks that rows are late by."""
        return all_held_back(marks, self.lateness)


@dataclass(frozen=True, slots=True, kw_only=True)
class Horizons:
    """In local time, before and after an epoch: windows that end at or before ``before`` / ``upto`` have come
    to their end, those at or before ``shut_before`` / ``shut`` never change again."""

    before: int
    upto: int
    shut_before: int
    shut: int
