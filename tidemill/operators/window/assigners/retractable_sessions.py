"""Assigns rows to sessions if rows can be taken back: a session consists of the remaining rows.

A retracted row removes its time, unless other rows of its key have the same time. Then its session may get
shorter, fall apart or disappear. Otherwise sessions grow and end, and rows are late, as in ``merging``: one
by one in the order of arrival, and vectorised if the order cannot matter.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from tidemill.changelog.columns import Ints, Mask
from tidemill.operators.window.assigners.spans import LATE, Clusters, Spans, lowest_from_here

NOWHERE = -2
"""The session of a time that no row has any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Times of keys, none twice but where an earlier one's session is over: per time the number of its key,
    how many rows it has (less those taken back), and its session or ``NOWHERE``. ``of``: the time of each
    span, or ``LATE``. Per session its key and bounds."""

    of: Ints
    keys: Ints
    at: Ints
    counts: Ints
    sessions: Ints
    session_keys: Ints
    starts: Ints
    ends: Ints

    def of_sessions(self, chosen: Mask) -> Mask:
        """Which times are of the ``chosen`` sessions."""
        result = np.zeros(len(self.at), np.bool_)
        inside = self.sessions != NOWHERE
        result[inside] = chosen[self.sessions[inside]]
        return result


def netted(spans: Spans, weights: Ints, gap: int) -> Times:
    """What ``spans`` add up to, stored times first, each as often as its ``weights`` say."""
    clusters = Clusters.of(spans)
    eras = np.where(clusters.labels() == LATE, LATE, 0)
    for cluster in clusters.members(clusters.mixed):
        eras[cluster] = _OneByOne(gap).eras(spans, weights, cluster)
    is_counted = eras != LATE
    chosen = np.flatnonzero(is_counted)
    order = chosen[np.lexsort((spans.starts[chosen], eras[chosen], spans.keys[chosen]))]
    identity_columns = (spans.keys[order], eras[order], spans.starts[order])
    heads = np.ones(len(order), np.bool_)
    heads[1:] = np.logical_or.reduce([x[1:] != x[:-1] for x in identity_columns])
    of = np.full(len(spans), LATE, np.int64)
    of[order] = np.cumsum(heads) - 1
    first = np.flatnonzero(heads)
    counts = np.add.reduceat(weights[order], first) if len(first) else first
    keys, eras, at = (x[heads] for x in identity_columns)
    return _in_sessions(of, keys, eras, at, counts, gap)


def _in_sessions(of: Ints, keys: Ints, eras: Ints, at: Ints, counts: Ints, gap: int) -> Times:
    """``Times`` of those that are in the order of keys, eras and themselves."""
    there = np.flatnonzero(counts > 0)
    apart = np.ones(len(there), np.bool_)
    apart[1:] = np.logical_or(
        np.logical_or(np.diff(keys[there]) != 0, np.diff(eras[there]) != 0), np.diff(at[there]) > gap
    )
    sessions = np.full(len(at), NOWHERE, np.int64)
    sessions[there] = np.cumsum(apart) - 1
    first = there[apart]
    last = there[np.append(np.flatnonzero(apart)[1:], len(there)) - 1] if len(there) else first
    return Times(
        of=of,
        keys=keys,
        at=at,
        counts=counts,
        sessions=sessions,
        session_keys=keys[first],
        starts=at[first],
        ends=at[last] + gap,
    )


@dataclass(slots=True)
class _OneByOne:
    """The definition itself, for one cluster."""

    gap: int
    _there: list[int] = field(default_factory=list)
    """The times of rows of sessions that are not over, sorted."""
    _counts: dict[int, int] = field(default_factory=dict)
    _spans: dict[int, list[int]] = field(default_factory=dict)
    """By time: those that count, of sessions that are not over."""

    def eras(self, spans: Spans, weights: Ints, members: Ints) -> Ints:
        """A number for each session that is over, 0 for those that are not, LATE for late rows."""
        eras = np.zeros(len(members), np.int64)
        marks = spans.marks[members]
        columns = (spans.starts[members], marks, lowest_from_here(marks), weights[members])
        rows = zip(*(c.tolist() for c in columns), strict=True)
        stored, over = int(np.count_nonzero(members < spans.stored)), 0
        for span, (time, mark, low, weight) in enumerate(rows):
            if span >= stored:
                for ended in self._ended(low):
                    over += 1
                    eras[ended] = over
                if not self._is_taken(time, mark, weight):
                    eras[span] = LATE
                    continue
            self._spans.setdefault(time, []).append(span)
            self._add(time, weight)
        return eras

    def _ended(self, low: int) -> Iterator[list[int]]:
        """The spans of each session whose last millisecond is not after ``low``; they are forgotten."""
        while self._there and self._there[0] + self.gap - 1 <= low:
            last = self._last(0)
            if self._there[last] + self.gap - 1 > low:
                return
            times = self._there[: last + 1]
            del self._there[: last + 1]
            for time in times:
                del self._counts[time]
            yield [span for time in times for span in self._spans.pop(time)]

    def _is_taken(self, time: int, mark: int, weight: int) -> bool:
        """Whether a row is not late by itself, or an open session has it or touches it."""
        if time + self.gap - 1 > mark:
            return True
        index = bisect_left(self._there, time)
        if weight < 0:
            return self._counts.get(time, 0) > 0 and self._open(index, mark)
        after = index < len(self._there) and self._there[index] <= time + self.gap
        before = index > 0 and self._there[index - 1] + self.gap >= time
        return (after and self._open(index, mark)) or (before and self._open(index - 1, mark))

    def _open(self, index: int, mark: int) -> bool:
        return self._there[self._last(index)] + self.gap - 1 > mark

    def _last(self, index: int) -> int:
        """The last time of the session that the one at ``place`` is in."""
        while index + 1 < len(self._there) and self._there[index + 1] - self._there[index] <= self.gap:
            index += 1
        return index

    def _add(self, time: int, weight: int) -> None:
        before = self._counts.get(time, 0)
        self._counts[time] = before + weight
        if before <= 0 < before + weight:
            insort(self._there, time)
        elif before + weight <= 0 < before:
            del self._there[bisect_left(self._there, time)]
