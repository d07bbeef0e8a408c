"""Which rows are one session: rows of a key whose spans [time, time + gap) overlap or touch.

Sessions grow row by row, in the order rows came, and are gone once the watermark has reached their last
millisecond: a row that comes later meets only those that are still open. A row that meets one is never
late; one that meets none is late if its own span has come to its end.

Cost: two sorts. Spans that nothing but time tells apart are taken together; only where a row came behind
the watermark, and something near it may have been gone by then, its neighbours are gone through one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidemill.changelog.columns import Ints, Mask

LATE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """Open sessions (``stored`` of them), then rows in the order they came.

    ``keys``: small numbers; ``starts`` and ``ends`` (exclusive) in ms; ``marks``: the last time that had come
    before the row (of sessions: any time before their last).
    """

    keys: Ints
    starts: Ints
    ends: Ints
    marks: Ints
    stored: int

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sessions:
    """``of``: the session of each span, or LATE; per session its key, start, end, and how many spans of it
    are rows."""

    of: Ints
    keys: Ints
    starts: Ints
    ends: Ints
    rows: Ints

    def __len__(self) -> int:
        return len(self.keys)

    def heirs(self, stored: int) -> Ints:
        """Per session the first of the ``stored`` open ones that it goes on, or -1."""
        heirs = np.full(len(self), -1, np.int64)
        heirs[self.of[:stored][::-1]] = np.arange(stored)[::-1]
        return heirs


def merge(spans: Spans) -> Sessions:
    """The sessions that ``spans`` make: those that are open after the last row, and those gone by then."""
    clusters = clusters_of(spans)
    late = spans.ends - 1 <= spans.marks
    late[: spans.stored] = False
    count = int(clusters.max(initial=-1)) + 1
    alive = np.zeros(count, np.bool_)
    alive[clusters[~late]] = True
    mixed = np.zeros(count, np.bool_)
    mixed[clusters[late]] = True
    mixed[clusters[may_meet_the_gone(spans, late)]] = True
    of = np.where(alive[clusters], clusters, LATE)
    for cluster in members_of(clusters, mixed & alive):
        labels, used = _one_by_one(spans, cluster)
        of[cluster] = np.where(labels == LATE, LATE, labels + count)
        count += used
    return _sessions(spans, of)


def clusters_of(spans: Spans) -> Ints:
    """Spans of a key that touch, or are linked by others that do."""
    n = len(spans)
    order = np.lexsort((spans.starts, spans.keys))
    keys, starts, ends = spans.keys[order], spans.starts[order], spans.ends[order]
    distinct, ranks = np.unique(ends, return_inverse=True)
    # The furthest end so far of each key: keys ascend, so a later key's ranks are above all earlier ones.
    furthest = np.maximum.accumulate(keys * (n + 1) + ranks.reshape(-1)) - keys * (n + 1)
    apart = np.ones(n, np.bool_)
    apart[1:] = (keys[1:] != keys[:-1]) | (starts[1:] > distinct[furthest[:-1]])
    clusters = np.empty(n, np.int64)
    clusters[order] = np.cumsum(apart) - 1
    return clusters


def may_meet_the_gone(spans: Spans, late: Mask) -> Ints:
    """Rows, not late by themselves, for which a span of their key that they touch had ended: without such
    a span no session that they touch is gone. (Its end lies between the row's time and the watermark.)"""
    behind = np.flatnonzero(~late & (spans.starts - 1 <= spans.marks))
    behind = behind[behind >= spans.stored]
    if len(behind) == 0:
        return behind
    distinct, ranks = np.unique(spans.ends, return_inverse=True)
    width = len(distinct) + 1
    codes = np.sort(spans.keys * width + ranks.reshape(-1))
    base = spans.keys[behind] * width
    first = base + np.searchsorted(distinct, spans.starts[behind], side="left")
    last = base + np.searchsorted(distinct - 1, spans.marks[behind], side="right")
    found = np.searchsorted(codes, last, side="left") > np.searchsorted(codes, first, side="left")
    return behind[found]


def members_of(clusters: Ints, chosen: Mask) -> list[Ints]:
    """The spans of each chosen cluster, in their order."""
    spans = np.flatnonzero(chosen[clusters])
    if len(spans) == 0:
        return []
    spans = spans[np.argsort(clusters[spans], kind="stable")]
    return np.split(spans, np.flatnonzero(np.diff(clusters[spans])) + 1)


def _one_by_one(spans: Spans, members: Ints) -> tuple[Ints, int]:
    """Labels of sessions, and how many were given: the definition itself, for one cluster."""
    marks = spans.marks[members]
    columns = (spans.starts[members], spans.ends[members], marks, lowest_from_here(marks))
    rows = zip(*(c.tolist() for c in (*columns, members < spans.stored)), strict=True)
    labels: list[int] = []
    merged: list[int] = []
    open_: list[tuple[int, int, int]] = []
    for start, end, mark, low, stored in rows:
        open_ = [s for s in open_ if stored or s[1] - 1 > low]
        met = [s for s in open_ if s[0] <= end and s[1] >= start and (stored or s[1] - 1 > mark)]
        if not met and not stored and end - 1 <= mark:
            labels.append(LATE)
            continue
        label = met[0][2] if met else len(merged)
        if not met:
            merged.append(label)
        for _, _, other in met[1:]:
            merged[other] = label
        open_ = [s for s in open_ if s not in met]
        open_.append((min([start, *(s[0] for s in met)]), max([end, *(s[1] for s in met)]), label))
        labels.append(label)
    return np.array([LATE if i == LATE else _root(merged, i) for i in labels], np.int64), len(merged)


def lowest_from_here(marks: Ints) -> Ints:
    """From each row on the least: what had ended by then no later row meets. Rows of several sources come
    behind several watermarks, and what is gone for one row may be open for the next."""
    return np.minimum.accumulate(marks[::-1])[::-1]


def _root(merged: list[int], label: int) -> int:
    while merged[label] != label:
        merged[label] = merged[merged[label]]
        label = merged[label]
    return label


def _sessions(spans: Spans, of: Ints) -> Sessions:
    kept = np.flatnonzero(of != LATE)
    _, dense = np.unique(of[kept], return_inverse=True)
    dense = dense.reshape(-1)
    numbers = np.full(len(spans), LATE, np.int64)
    numbers[kept] = dense
    order = kept[np.argsort(dense, kind="stable")]
    heads = np.flatnonzero(np.diff(numbers[order], prepend=-1)) if len(order) else np.zeros(0, np.int64)
    rows = (order >= spans.stored).astype(np.int64)
    if len(order) == 0:
        nothing = np.zeros(0, np.int64)
        return Sessions(of=numbers, keys=nothing, starts=nothing, ends=nothing, rows=nothing)
    return Sessions(
        of=numbers,
        keys=spans.keys[order[heads]],
        starts=np.minimum.reduceat(spans.starts[order], heads),
        ends=np.maximum.reduceat(spans.ends[order], heads),
        rows=np.add.reduceat(rows, heads),
    )
