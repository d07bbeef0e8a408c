"""Which event-time sources others wait for, and which sources wait for others.

A source without rows for its ``timeout`` is idle. Operators that also read other sources then continue
with the watermarks of the others, until the idle source has rows again. An epoch without rows may be
needed to say so. If the watermark of a source is ahead of the lowest watermark of its ``group`` by more
than ``drift``, the source gives no rows until the others have caught up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidemill.changelog.watermarks import END, NONE
from tidemill.config import watermark_options as o
from tidemill.config.option import Configuration
from tidemill.errors import NotSupportedError, ValidationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The pace of one source, in ms. With ``timeout`` 0 others always wait for it."""

    timeout: int = 0
    group: str = ""
    drift: int = 0


ALWAYS = Pace()
"""Waited for, and waiting for nobody."""


def pace_of(options: Mapping[str, str], idle_timeout: int) -> Pace:
    """The pace by a table's options. ``idle_timeout`` is the option for all tables."""
    known = {option.key for option in o.OF_TABLES}
    config = Configuration({key: value for key, value in options.items() if key in known})
    config.read(o.EMIT_STRATEGY)
    config.read(o.ALIGNMENT_UPDATE_INTERVAL)
    if config.read(o.EMIT_GAP) != 1:
        text = f"'{o.EMIT_GAP.key}' = '{options[o.EMIT_GAP.key]}' is not supported"
        raise NotSupportedError(text, expected=("1",))
    if (o.ALIGNMENT_GROUP.key in config) != (o.ALIGNMENT_MAX_DRIFT.key in config):
        raise ValidationError(
            f"'{o.ALIGNMENT_GROUP.key}' and '{o.ALIGNMENT_MAX_DRIFT.key}' must be set together"
        )
    own = o.SCAN_IDLE_TIMEOUT.key in config
    return Pace(
        timeout=config.read(o.SCAN_IDLE_TIMEOUT).milliseconds if own else idle_timeout,
        group=config.read(o.ALIGNMENT_GROUP),
        drift=config.read(o.ALIGNMENT_MAX_DRIFT).milliseconds,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Paces:
    """The paces of a job's event-time sources. ``active``: when each last had rows, or when the job began,
    in ms."""

    paces: Mapping[str, Pace]

    @property
    def waits_for_all(self) -> bool:
        """Whether no source can be idle. A single source is never idle."""
        return len(self.paces) < 2 or not any(pace.timeout for pace in self.paces.values())

    def least(self, marks: Mapping[str, int], idle: frozenset[str]) -> int | None:
        """The lowest watermark of the sources that others wait for; None before its begin and after its
        end."""
        waited = [marks.get(source, NONE) for source in self.paces if source not in idle]
        least = min(waited, default=NONE)
        return None if least in (NONE, END) else least

    def idle(self, active: Mapping[str, int], marks: Mapping[str, int], now: int) -> frozenset[str]:
        """The sources that are idle at ``now``."""
        return frozenset(s for s, time in self._timeouts(active, marks).items() if time <= now)

    def next_idle(self, active: Mapping[str, int], marks: Mapping[str, int], now: int) -> int | None:
        """When the next source becomes idle."""
        times = self._timeouts(active, marks).values()
        return min((time for time in times if time > now), default=None)

    def held(self, marks: Mapping[str, int], idle: frozenset[str]) -> frozenset[str]:
        """The sources that are too far ahead of their group."""
        groups: dict[str, list[str]] = {}
        for source, pace in self.paces.items():
            if pace.group and marks.get(source) != END:
                groups.setdefault(pace.group, []).append(source)
        held = set()
        for members in groups.values():
            least = min((marks.get(s, NONE) for s in members if s not in idle), default=END)
            held |= {s for s in members if marks.get(s, NONE) > least + self.paces[s].drift}
        return frozenset(held)

    def _timeouts(self, active: Mapping[str, int], marks: Mapping[str, int]) -> dict[str, int]:
        if self.waits_for_all:
            return {}
        return {
            source: active[source] + pace.timeout
            for source, pace in self.paces.items()
            if pace.timeout and marks.get(source) != END
        }
