"""What the records of an epoch say: its plan, and its commit."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field, replace
from typing import Any, Self

from tidemill.connectors.api import Offset
from tidemill.runtime.event_time.timers import Timers
from tidemill.runtime.hot_keys import Hot
from tidemill.state.slices import Slice, Slices


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochPlan:
    """The intent: per source the range (start, end]. ``time``: the epoch's clock in milliseconds. ``ended``:
    the sources that give no row after this epoch. ``idle``: the sources that the epoch does not wait for."""

    epoch: int
    time: int
    start: dict[str, Offset | None]
    end: dict[str, Offset]
    ended: list[str] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochCommit:
    """The fact.

    - ``manifests``: operator id -> partition -> slices. A slice is a manifest's path with its first key group
      and the key group after its last.
    - ``tokens``: sink id -> tokens.
    - ``watermarks``: of sources and operators, in milliseconds, if there is event time.
    - ``timers``: processing times at which operators need an epoch, by operator and partition.
    - ``active``: the last time when each source of event time had rows; ``idle``: the sources that the epoch
      did not wait for.
    - ``hot``: hashes of the keys whose rows operators get in all buckets.
    """

    epoch: int
    time: int
    offsets: dict[str, Offset]
    manifests: dict[str, dict[str, list[list[Any]]]]
    tokens: dict[str, list[str]]
    published: bool = field(default=False)
    watermarks: dict[str, int] = field(default_factory=dict)
    timers: Timers = field(default_factory=dict)
    active: dict[str, int] = field(default_factory=dict)
    idle: list[str] = field(default_factory=list)
    hot: Hot = field(default_factory=dict)

    def of(self, operators: Container[str]) -> Self:
        """Without what it says of other operators than these."""
        return replace(
            self,
            manifests={key: parts for key, parts in self.manifests.items() if key in operators},
            timers={key: times for key, times in self.timers.items() if key in operators},
            hot={key: hashes for key, hashes in self.hot.items() if key in operators},
        )

    @property
    def slices(self) -> Slices:
        return {
            operator: {int(p): tuple(Slice(*part) for part in slices) for p, slices in parts.items()}
            for operator, parts in self.manifests.items()
        }


def recorded(slices: Slices) -> dict[str, dict[str, list[list[Any]]]]:
    """As a commit record has them."""
    return {
        operator: {str(p): [[s.manifest, s.first, s.stop] for s in part] for p, part in sorted(parts.items())}
        for operator, parts in slices.items()
    }
