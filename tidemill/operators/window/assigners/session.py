"""Assigns rows to sessions: rows of a key whose spans [time, time + gap) overlap or touch.

Sessions grow row by row, in the order of arrival, and are gone when the watermark has reached their last
millisecond: a later row meets only sessions that are still open. A row that meets a session is never late. A
row that meets none is late if its own span has ended.

Cost: that of ``spans``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidemill.changelog.columns import Ints
from tidemill.operators.window.assigners.kind import WindowKind
from tidemill.operators.window.assigners.spans import LATE, Clusters, Spans, lowest_from_here


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
    clusters = Clusters.of(spans)
    of, count = clusters.labels(), len(clusters)
    for cluster in clusters.members(clusters.mixed):
        labels, used = _one_by_one(spans, cluster)
        of[cluster] = np.where(labels == LATE, LATE, labels + count)
        count += used
    return _sessions(spans, of)


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


def _root(merged: list[int], label: int) -> int:
    while merged[label] != label:
        merged[label] = merged[merged[label]]
        label = merged[label]
    return label


def _sessions(spans: Spans, of: Ints) -> Sessions:
    on_time = np.flatnonzero(of != LATE)
    _, dense = np.unique(of[on_time], return_inverse=True)
    dense = dense.reshape(-1)
    numbers = np.full(len(spans), LATE, np.int64)
    numbers[on_time] = dense
    order = on_time[np.argsort(dense, kind="stable")]
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


KIND = WindowKind(
    name="SESSION",
    parameters=("GAP", "OFFSET"),
    required=1,
    size="GAP",
    grouped=("size",),
    explained=(("gap", "size"),),
    is_data_driven=True,
)
