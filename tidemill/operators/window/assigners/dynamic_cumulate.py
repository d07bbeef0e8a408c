"""Assigns rows to windows that grow (DYNAMIC_CUMULATE): rows open these windows, and the windows emit their
content at every step.

A window takes in rows as a session does (see ``merging``), from the time of its first row floored to the
step. Emitted results stay. If a row brings two windows together, or makes a window begin earlier, the old
windows end with the step that was emitted when the row came, and the new window emits the steps after it.
Such rows are behind an emitted step. If there are none, all rows that meet are one window.

Cost: as for sessions, and twice that if rows come behind an emitted step. Only the windows in which such a
row may have joined two windows are processed one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidemill.changelog.columns import Ints, Mask
from tidemill.changelog.watermarks import END
from tidemill.operators.window.assigners.kind import WindowKind
from tidemill.operators.window.assigners.spans import LATE, Clusters, Spans, clusters_of, lowest_from_here


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """``of``: the window of each span, or LATE. Per window its key, the time of its first row, its start and
    its end; ``until``: the last step it shows, after which ``heirs`` (-1: none) goes on."""

    of: Ints
    keys: Ints
    firsts: Ints
    starts: Ints
    ends: Ints
    until: Ints
    heirs: Ints

    def __len__(self) -> int:
        return len(self.keys)

    def final(self) -> Ints:
        """Per window the one that it is now."""
        latest = np.arange(len(self))
        while True:
            heirs = self.heirs[latest]
            if (heirs < 0).all():
                return latest
            latest = np.where(heirs < 0, latest, heirs)


@dataclass(slots=True)
class _Window:
    first: int
    end: int
    start: int
    until: int = END
    heir: int = -1


def grow(spans: Spans, step: int, shown: Ints) -> Growth:
    """``shown``: per span the last step that had been shown when it came."""
    clusters = Clusters.of(spans)
    doubtful = clusters.mixed | _may_meet_two(spans, step, shown, clusters)
    of, count = clusters.labels(), len(clusters)
    ordered_windows: list[_Window] = []
    for members in clusters.members(doubtful):
        labels = np.array(_one_by_one(spans, members, step, shown, ordered_windows), np.int64)
        of[members] = np.where(labels == LATE, LATE, labels + count)
    return _growth(spans, step, of, count, ordered_windows)


def _may_meet_two(spans: Spans, step: int, shown: Ints, clusters: Clusters) -> Mask:
    """Clusters with a row behind what was shown, which may begin a window earlier, or bring two together."""
    cluster_of, late = clusters.numbers, clusters.late
    behind = ~late & (shown > spans.starts)
    behind[: spans.stored] = False
    result = np.zeros(len(clusters), np.bool_)
    if not behind.any():
        return result
    on_time = np.flatnonzero(~late & ~behind)
    starts = _floor(spans.starts, step)
    earliest = np.full(len(result), END, np.int64)
    np.minimum.at(earliest, cluster_of[on_time], starts[on_time])
    result[cluster_of[behind & (starts < earliest[cluster_of])]] = True
    apart = Spans(
        keys=spans.keys[on_time],
        starts=spans.starts[on_time],
        ends=spans.ends[on_time],
        marks=spans.marks[on_time],
        stored=0,
    )
    _, heads = np.unique(clusters_of(apart), return_index=True)
    parts = np.bincount(cluster_of[on_time[heads]], minlength=len(result))
    has_behind = np.bincount(cluster_of[behind], minlength=len(result)) > 0
    return (result | (parts > 1)) & has_behind & (np.bincount(cluster_of[~late], minlength=len(result)) > 1)


def _one_by_one(spans: Spans, members: Ints, step: int, shown: Ints, windows: list[_Window]) -> list[int]:
    """The window of each of ``members``, in ``found``: the definition itself, for one cluster."""
    columns = (spans.starts[members], spans.ends[members], spans.marks[members], shown[members])
    lowest = lowest_from_here(spans.marks[members])
    rows = zip(*(c.tolist() for c in (*columns, lowest, members < spans.stored)), strict=True)
    live: list[int] = []
    labels: list[int] = []
    for time, end, mark, passed, low, stored in rows:
        live = [i for i in live if stored or windows[i].end - 1 > low]
        not_ended = (i for i in live if stored or windows[i].end - 1 > mark)
        met = [i for i in not_ended if windows[i].first <= end and windows[i].end >= time]
        if not met and not stored and end - 1 <= mark:
            labels.append(LATE)
            continue
        start = min([time // step * step, *(windows[i].start for i in met)])
        heir = next((i for i in met if windows[i].start == start), len(windows))
        if heir == len(windows):
            windows.append(_Window(time, end, start))
        for i in met:
            if i != heir:
                windows[i].until, windows[i].heir = passed, heir
        windows[heir].first = min([time, windows[heir].first, *(windows[i].first for i in met)])
        windows[heir].end = max([end, windows[heir].end, *(windows[i].end for i in met)])
        live = [i for i in live if i not in met] + [heir]
        labels.append(heir)
    return labels


def _growth(spans: Spans, step: int, of: Ints, count: int, ordered_windows: list[_Window]) -> Growth:
    """Windows by small numbers; those in ``found`` are ``count`` and more in ``of``."""
    on_time = np.flatnonzero(of != LATE)
    distinct, dense = np.unique(of[on_time], return_inverse=True)
    numbers = np.full(len(spans), LATE, np.int64)
    numbers[on_time] = dense.reshape(-1)
    size = len(distinct)
    firsts, ends = np.full(size, END, np.int64), np.full(size, -END, np.int64)
    np.minimum.at(firsts, numbers[on_time], spans.starts[on_time])
    np.maximum.at(ends, numbers[on_time], spans.ends[on_time])
    keys = np.zeros(size, np.int64)
    keys[numbers[on_time]] = spans.keys[on_time]
    until, heirs = np.full(size, END, np.int64), np.full(size, -1, np.int64)
    first = size - len(ordered_windows)
    for number, window in enumerate(ordered_windows, first):
        firsts[number], ends[number] = window.first, window.end
        until[number] = window.until
        heirs[number] = -1 if window.heir < 0 else window.heir + first
    starts = _floor(firsts, step)
    return Growth(of=numbers, keys=keys, firsts=firsts, starts=starts, ends=ends, until=until, heirs=heirs)


def _floor(times: Ints, step: int) -> Ints:
    floored: Ints = times // step * step
    return floored


KIND = WindowKind(
    name="DYNAMIC_CUMULATE",
    parameters=("STEP", "GAP"),
    required=1,
    size="GAP",
    slide="STEP",
    grouped=("slide", "size"),
    explained=(("step", "slide"), ("gap", "size")),
    is_data_driven=True,
    cumulates=True,
)
