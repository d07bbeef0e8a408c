"""Which rows are in one window that grows: DYNAMIC_CUMULATE, whose windows rows open and which show at every
step what they hold.

A window takes rows in as a session does (see ``merging``), from the first one's time floored to the step.
What it has shown stays: where a row brings two windows together, or makes one begin earlier, what they were
ends with the step that had been shown when the row came, and what they become shows the steps after it. Such
rows come behind a step that was shown; where there are none, all rows that meet are one window.

Cost: that of sessions, twice where rows come behind a step that was shown. Only the windows in which such a
row may have met two are gone through one by one.
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
        found = np.arange(len(self))
        while True:
            heirs = self.heirs[found]
            if (heirs < 0).all():
                return found
            found = np.where(heirs < 0, found, heirs)


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
    found: list[_Window] = []
    for members in clusters.members(doubtful):
        labels = np.array(_one_by_one(spans, members, step, shown, found), np.int64)
        of[members] = np.where(labels == LATE, LATE, labels + count)
    return _growth(spans, step, of, count, found)


def _may_meet_two(spans: Spans, step: int, shown: Ints, found: Clusters) -> Mask:
    """Clusters with a row behind what was shown, which may begin a window earlier, or bring two together."""
    clusters, late = found.numbers, found.late
    behind = ~late & (shown > spans.starts)
    behind[: spans.stored] = False
    result = np.zeros(len(found), np.bool_)
    if not behind.any():
        return result
    rest = np.flatnonzero(~late & ~behind)
    starts = _floor(spans.starts, step)
    earliest = np.full(len(result), END, np.int64)
    np.minimum.at(earliest, clusters[rest], starts[rest])
    result[clusters[behind & (starts < earliest[clusters])]] = True
    apart = Spans(
        keys=spans.keys[rest],
        starts=spans.starts[rest],
        ends=spans.ends[rest],
        marks=spans.marks[rest],
        stored=0,
    )
    _, heads = np.unique(clusters_of(apart), return_index=True)
    parts = np.bincount(clusters[rest[heads]], minlength=len(result))
    has_behind = np.bincount(clusters[behind], minlength=len(result)) > 0
    return (result | (parts > 1)) & has_behind & (np.bincount(clusters[~late], minlength=len(result)) > 1)


def _one_by_one(spans: Spans, members: Ints, step: int, shown: Ints, found: list[_Window]) -> list[int]:
    """The window of each of ``members``, in ``found``: the definition itself, for one cluster."""
    columns = (spans.starts[members], spans.ends[members], spans.marks[members], shown[members])
    lowest = lowest_from_here(spans.marks[members])
    rows = zip(*(c.tolist() for c in (*columns, lowest, members < spans.stored)), strict=True)
    live: list[int] = []
    labels: list[int] = []
    for time, end, mark, passed, low, stored in rows:
        live = [i for i in live if stored or found[i].end - 1 > low]
        seen = (i for i in live if stored or found[i].end - 1 > mark)
        met = [i for i in seen if found[i].first <= end and found[i].end >= time]
        if not met and not stored and end - 1 <= mark:
            labels.append(LATE)
            continue
        start = min([time // step * step, *(found[i].start for i in met)])
        heir = next((i for i in met if found[i].start == start), len(found))
        if heir == len(found):
            found.append(_Window(time, end, start))
        for i in met:
            if i != heir:
                found[i].until, found[i].heir = passed, heir
        found[heir].first = min([time, found[heir].first, *(found[i].first for i in met)])
        found[heir].end = max([end, found[heir].end, *(found[i].end for i in met)])
        live = [i for i in live if i not in met] + [heir]
        labels.append(heir)
    return labels


def _growth(spans: Spans, step: int, of: Ints, count: int, found: list[_Window]) -> Growth:
    """Windows by small numbers; those in ``found`` are ``count`` and more in ``of``."""
    kept = np.flatnonzero(of != LATE)
    distinct, dense = np.unique(of[kept], return_inverse=True)
    numbers = np.full(len(spans), LATE, np.int64)
    numbers[kept] = dense.reshape(-1)
    size = len(distinct)
    firsts, ends = np.full(size, END, np.int64), np.full(size, -END, np.int64)
    np.minimum.at(firsts, numbers[kept], spans.starts[kept])
    np.maximum.at(ends, numbers[kept], spans.ends[kept])
    keys = np.zeros(size, np.int64)
    keys[numbers[kept]] = spans.keys[kept]
    until, heirs = np.full(size, END, np.int64), np.full(size, -1, np.int64)
    first = size - len(found)
    for number, window in enumerate(found, first):
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
