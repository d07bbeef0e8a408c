"""The event time of a job between two epochs: which sources have ended or are idle, which operators are due.

All answers follow from the last commit and from the offsets of a plan. Nothing is stored here but the time at
which the job started.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tidemill.changelog.watermarks import END, split_key
from tidemill.connectors.api import Offset, Source, SplitSource
from tidemill.errors import StateError
from tidemill.runtime import graph as g
from tidemill.runtime.checkpoint.epochs import EpochCommit, EpochPlan
from tidemill.runtime.event_time import timers
from tidemill.runtime.event_time.pace import Pace, Paces
from tidemill.runtime.spark.kernel import EpochTime, Report


class EventTime:
    """``started``: ms since 1970."""

    def __init__(self, sources: Mapping[str, Source], nodes: Sequence[g.ExecNode]) -> None:
        marked = [n for n in nodes if isinstance(n, g.AssignWatermark)]
        self.started = 0
        self._marked = {n.source for n in marked}
        self._sources = sources
        self._paces = Paces(paces={n.source: n.pace for n in marked})
        self._clocked = [n for n in nodes if isinstance(n, g.Keyed) and n.clocked]
        self._by_time = {n.operator for n in nodes if isinstance(n, g.Keyed) and n.works_by_time}
        self._timed = self._marked.union(*(n.clocked for n in self._clocked))
        self._splits = _split_sources(sources, self._paces.paces)

    def held(self, commit: EpochCommit) -> frozenset[str]:
        """Sources that wait for slower ones."""
        return self._paces.held(commit.watermarks, frozenset(commit.idle))

    def idle(self, commit: EpochCommit, now: int) -> frozenset[str]:
        """Sources without rows for longer than their timeout, if the next epoch has none either."""
        return self._paces.idle(self._active(commit), commit.watermarks, now)

    def idle_splits(
        self, commit: EpochCommit, start: Mapping[str, Offset | None], end: Mapping[str, Offset], now: int
    ) -> set[str]:
        return idle_splits(self._splits, start, end, commit.active, now)

    def next_timer(self, commit: EpochCommit, now: int) -> int | None:
        """When an operator is due or a source becomes idle, in ms since 1970."""
        idle = self._paces.next_idle(self._active(commit), commit.watermarks, now)
        return min((t for t in (timers.earliest(commit.timers), idle) if t is not None), default=None)

    def ended(self, end: Mapping[str, Offset]) -> set[str]:
        """The sources that have nothing after ``end``."""
        sources = {key: self._sources[key] for key in self._timed}
        return {key for key, s in sources.items() if s.is_bounded and s.is_finished(end[key])}

    def open(self, commit: EpochCommit) -> list[str]:
        """The sources that are not at the end of time."""
        return sorted(key for key in self._timed if commit.watermarks.get(key) != END)

    def check_open(self, commit: EpochCommit, busy: set[str], tables: Mapping[str, str]) -> None:
        """StateError if one of the ``busy`` sources was at the end of time: operators would drop its rows.
        ``tables``: the paths of their tables."""
        for key in sorted(busy & self._marked) if self._by_time else ():
            if commit.watermarks.get(key) == END:
                raise StateError(
                    f"{tables.get(key, key)} has new rows, but its event time ended at epoch {commit.epoch}:"
                    " all of them would be late.",
                    hint="Event time ends with the last row of a bounded source, and WITH DRAIN. Start the"
                    " job with a checkpoint directory of its own, or from a savepoint without DRAIN. A source"
                    " that gets rows later must be unbounded; 'source.monitor-interval' makes files so.",
                )

    def has_news(self, commit: EpochCommit, ended: set[str], idle: frozenset[str], now: int) -> bool:
        """Whether operators need an epoch even without rows: a timer is due, or a source has ended or become
        idle since the last commit."""
        news = self._is_new(commit, ended) or timers.due(commit.timers, now) or idle - set(commit.idle)
        return bool(news)

    def of_epoch(self, commit: EpochCommit, plan: EpochPlan) -> EpochTime:
        """Tells operators that the last rows of their sources have come, even if the epoch has no rows."""
        due, ended = timers.due(commit.timers, plan.time), frozenset(plan.ended)
        ends = self._is_new(commit, ended)
        if ends:
            due |= {node.operator for node in self._clocked if node.clocked & ended}
        if ends or set(plan.idle) - set(commit.idle):
            # A source without new rows may have no task that tells them.
            due |= self._by_time
        return EpochTime(
            reached=commit.watermarks,
            ended=ended,
            idle=frozenset(plan.idle),
            due=due,
            previous=commit.time if commit.epoch else None,
            relaxed=not self._paces.waits_for_all or bool(self._splits),
        )

    def active_after(self, commit: EpochCommit, plan: EpochPlan) -> dict[str, int]:
        """When sources and splits last had rows, in ms."""
        paced = ((key, self._sources[key]) for key in self._paces.paces)
        busy = {key for key, s in paced if not s.is_empty(plan.start[key], plan.end[key])}
        busy |= busy_splits(self._splits, plan.start, plan.end)
        return {**commit.active, **dict.fromkeys(busy, plan.time)}

    def watermarks_after(self, commit: EpochCommit, plan: EpochPlan, report: Report) -> dict[str, int]:
        """The watermarks of the epoch, the same for every task. A source that has ended is at the end of
        time."""
        marks = dict(commit.watermarks)
        for task in report.values():
            marks.update(task["marks"])
        marks.update(dict.fromkeys(plan.ended, END))
        return marks

    def least_watermark(self, commit: EpochCommit) -> int | None:
        return self._paces.least(commit.watermarks, frozenset(commit.idle))

    def _is_new(self, commit: EpochCommit, ended: Iterable[str]) -> bool:
        """Whether the end of a source is new. Then waiting operators must be told, even without rows."""
        return any(commit.watermarks.get(key) != END for key in ended)

    def _active(self, commit: EpochCommit) -> dict[str, int]:
        """When event-time sources last had rows. Time in which the job did not run does not count."""
        return {key: max(commit.active.get(key, 0), self.started) for key in self._paces.paces}


def _split_sources(
    sources: Mapping[str, Source], paces: Mapping[str, Pace]
) -> dict[str, tuple[SplitSource, int]]:
    """Those by event time, with the ms after which a split without rows is not waited for; 0 for never."""
    found: dict[str, tuple[SplitSource, int]] = {}
    for key, pace in paces.items():
        source = sources[key]
        if isinstance(source, SplitSource):
            found[key] = source, pace.timeout
    return found


Timed = Mapping[str, tuple[SplitSource, int]]
"""By id, sources with the timeout of their splits in ms, 0 for none."""


def busy_splits(sources: Timed, start: Mapping[str, Offset | None], end: Mapping[str, Offset]) -> set[str]:
    """Keys of those that have rows between two offsets."""
    return {
        split_key(source, name)
        for source, (made, _) in sources.items()
        for _, name in made.splits(start[source], end[source]).read
    }


def idle_splits(
    sources: Timed,
    start: Mapping[str, Offset | None],
    end: Mapping[str, Offset],
    active: Mapping[str, int],
    now: int,
) -> set[str]:
    """``active``: when splits and sources had rows last, in ms."""
    busy = busy_splits(sources, start, end)
    found = set()
    for source, (made, timeout) in sources.items():
        for name in made.splits(start[source], end[source]).names if timeout else ():
            key = split_key(source, name)
            if key not in busy and active.get(key, 0) + timeout <= now:
                found.add(key)
    return found
